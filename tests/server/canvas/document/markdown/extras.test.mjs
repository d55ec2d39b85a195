/** What is known beside CommonMark, and nothing more of HTML. */

import assert from "node:assert/strict";
import { test } from "node:test";
import "../page.mjs";

const { splitBlocks, updateBlocks, NO_BLOCKS } = await import("../../../../../server/canvas/document/markdown/markdown_blocks.js");
const { renderBlock } = await import("../../../../../server/canvas/document/markdown/markdown_render.js");
const { documentNamed, numberRepeats, slugOf } = await import("../../../../../server/canvas/document/markdown/links.js");

/** @param {string} text */
function html(text) {
  const { list, starts, definitions } = updateBlocks(NO_BLOCKS, text).blocks;
  return list.map((block, at) => renderBlock(text.slice(starts[at], starts[at] + block.length), definitions).html).join("");
}

for (const [text, expected] of [
  ["a<br>b <BR /> c", "<p>a<br>b <br> c</p>"],
  ["<kbd>Ctrl</kbd>+<kbd>C</kbd>", "<p><kbd>Ctrl</kbd>+<kbd>C</kbd></p>"],
  ["H<sub>2</sub>O x<sup>**2**</sup>", "<p>H<sub>2</sub>O x<sup><strong>2</strong></sup></p>"],
  ["*a <sub>b* c</sub>", "<p>*a <sub>b* c</sub></p>"],
  ["area $a_1 b$, $x$", '<p>area <span class="document-math">a_1 b</span>, <span class="document-math">x</span></p>'],
  ["so $$x$$ and", '<p>so <span class="document-formula">x</span> and</p>'],
  ["so:\n$$\nx\n- y\n$$\nand", '<p>so:</p><div class="document-formula">x\n- y</div><p>and</p>'],
  ["$$ x $$", '<div class="document-formula">x</div>'],
  ["> $$\n> a\n> $$", '<blockquote><div class="document-formula">a</div></blockquote>'],
  ["$$\nx\n\ny\n$$", "<p>$$\nx</p><p>y\n$$</p>"],
  ["still $$x + y", "<p>still $$x + y</p>"],
  ["$5 and $10, US$5-$6", "<p>$5 and $10, US$5-$6</p>"],
  ["\\$x$ $x\\$ `$x$` $ x$", "<p>$x$ $x$ <code>$x$</code> $ x$</p>"],
  ["$a\\$b$", '<p><span class="document-math">a\\$b</span></p>'],
  ["$<b>$", '<p><span class="document-math">&lt;b&gt;</span></p>'],
  ["```mermaid\nA\n```", '<pre><code data-language="mermaid" data-complete>A</code></pre>'],
  ["> ~~~Mermaid x\n> A\n> ~~~~ ", '<blockquote><pre><code data-language="Mermaid" data-complete>A</code></pre></blockquote>'],
  ["```mermaid\nA\n", '<pre><code data-language="mermaid">A</code></pre>'],
  ["````mermaid\nA\n```", '<pre><code data-language="mermaid">A\n```</code></pre>'],
  ["<sub>open", "<p>&lt;sub&gt;open</p>"],
  ["`<br>` <b>x</b>", "<p><code>&lt;br&gt;</code> &lt;b&gt;x&lt;/b&gt;</p>"],
  ["<kbd onclick=x>k</kbd>", "<p>&lt;kbd onclick=x&gt;k&lt;/kbd&gt;</p>"],
  ["<details>\n<summary>S</summary>\n\n*t*\n\n</details>\nafter", "<details><summary>S</summary><p><em>t</em></p></details><p>after</p>"],
  ["<details><summary>S</summary>\nstill written", "<details open><summary>S</summary><p>still written</p></details>"],
  ["<details ontoggle=x>\n</details>", "<p>&lt;details ontoggle=x&gt;\n&lt;/details&gt;</p>"],
  ["<details>\n<details>\na\n</details>\nb\n</details>", "<details><details><p>a</p></details><p>b</p></details>"],
  ["a[^1]\n\n[^1]: note", '<p>a<sup><a href="#^1">1</a></sup></p><div class="document-note" data-note="1"><p>note</p></div>'],
  ["a[^1]", "<p>a[^1]</p>"],
  ["[top](#notes) ![](dot.png)", '<p><a href="#notes">top</a> <img src="dot.png" alt=""></p>'],
]) {
  test(`${JSON.stringify(text)} is ${expected}`, () => assert.equal(html(text), expected));
}

test("what is folded is one block, whatever is in it", () => {
  assert.equal(splitBlocks("one\n\n<details>\n\ntwo\n\nthree\n\n</details>\n\nfour\n").length, 3);
});

test("a text of tags that are not closed is parsed", () => {
  assert.ok(html("<sub>".repeat(50_000)).length > 0);
  assert.ok(html("<sub>".repeat(20_000) + "</sub>".repeat(20_000)).length > 0);
  assert.ok(html("<details>\n".repeat(5_000)).length > 0);
});

test("a text of formulas that are not closed is parsed", () => {
  assert.ok(html("$a ".repeat(50_000)).length > 0);
  assert.ok(html("$$\na\n".repeat(20_000)).length > 0);
  assert.ok(html("$$\n\n".repeat(20_000)).length > 0);
});

test("a heading has the name that other programs give it", () => {
  assert.deepEqual(["Notes & more", "Über uns!", "a_b-c"].map(slugOf), ["notes--more", "über-uns", "a_b-c"]);
  assert.deepEqual(numberRepeats(["a", "b", "a", "a"]), ["a", "b", "a-1", "a-2"]);
});

test("a document is found by its id, its name or that of its file", () => {
  const one = { artifactId: "x", name: "my notes.md", others: [] };
  const two = { artifactId: "y", name: "picture", others: [{ raw: "", filename: "dot.png" }] };
  const all = Object.assign(Object.create(null), { x: one, y: two });
  assert.equal(documentNamed(all, "./my%20notes.md#part"), one);
  assert.equal(documentNamed(all, "y"), two);
  assert.equal(documentNamed(all, "dot.png"), two);
  assert.equal(documentNamed(all, "constructor"), null);
  assert.equal(documentNamed(all, "%"), null);
});
