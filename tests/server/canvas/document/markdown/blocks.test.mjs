/** The blocks of a text that has changed are those of the text parsed anew, and few are parsed for it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { documents, randomOf } from "../corpus.mjs";
import markdownIt from "../../../../../server/canvas/vendor/markdown-it.js";

const { NO_BLOCKS, splitBlocks, updateBlocks } = await import("../../../../../server/canvas/document/markdown/markdown_blocks.js");
const { renderBlock } = await import("../../../../../server/canvas/document/markdown/markdown_render.js");

const all = documents().map(({ text }) => text);

/** Blocks as plain values. */
const plain = ({ text, list, definitions }) => ({ text, list: list.map(({ length, definitions }) => ({ length, definitions })), definitions });
const anew = (text) => plain(updateBlocks(NO_BLOCKS, text).blocks);

/** All of a text as HTML. */
function html(text) {
  const { blocks } = updateBlocks(NO_BLOCKS, text);
  return blocks.list.map(({ length }, at) => renderBlock(text.slice(blocks.starts[at], blocks.starts[at] + length), blocks.definitions).html).join("");
}

test("blocks tile the text", () => {
  for (const text of all) {
    assert.equal(splitBlocks(text).reduce((sum, { length }) => sum + length, 0), text.length);
  }
});

test("a text that grows has the blocks of the whole, wherever it is cut", () => {
  const random = randomOf(3);
  for (let at = 0; at + 3 < all.length; at += 3) {
    const text = all.slice(at, at + 3).join("\n\n");
    let blocks = NO_BLOCKS;
    for (let end = 0; end <= text.length; end += 1 + random(9)) {
      blocks = updateBlocks(blocks, text.slice(0, end)).blocks;
      assert.deepEqual(plain(blocks), anew(text.slice(0, end)));
    }
  }
});

test("a text that is edited has the blocks of the text that comes of it", () => {
  const random = randomOf(11);
  const pieces = [...all, "\n", "\n\n", "```\n", "- ", "> ", "    ", "|", "---\n", "[ref]: /x\n", "# ", "\r\n", "1. ", "'title'", "$$\n", "$$", "$", "[a]: /b 't\n"];
  for (let round = 0; round < 60; round++) {
    let text = Array.from({ length: 12 }, () => all[random(all.length)]).join("\n\n");
    let blocks = updateBlocks(NO_BLOCKS, text).blocks;
    for (let edit = 0; edit < 30; edit++) {
      const start = random(text.length + 1);
      const end = Math.min(text.length, start + random(4) * random(20));
      text = text.slice(0, start) + (random(3) ? pieces[random(pieces.length)] : "") + text.slice(end);
      const change = updateBlocks(blocks, text);
      const kept = [...blocks.list.slice(0, change.from), ...blocks.list.slice(change.from + change.removed)];
      const keptNow = [...change.blocks.list.slice(0, change.from), ...change.blocks.list.slice(change.from + change.added)];
      assert.ok(kept.length === keptNow.length && kept.every((block, at) => block === keptNow[at]), "blocks that have not changed are the same");
      blocks = change.blocks;
      assert.deepEqual(plain(blocks), anew(text), JSON.stringify(text));
    }
  }
});

test("a change in a long text concerns few blocks", () => {
  const text = Array.from({ length: 3000 }, (_, at) => `Paragraph ${at} with **bold** words.\n\n- one\n- two\n\n`).join("");
  const { blocks } = updateBlocks(NO_BLOCKS, text);
  const middle = text.length / 2;
  const change = updateBlocks(blocks, text.slice(0, middle) + "changed" + text.slice(middle));
  assert.ok(change.removed <= 8 && change.added <= 8);
  const grown = updateBlocks(blocks, text + "more");
  assert.ok(grown.removed <= 3 && grown.added <= 3);
});

test("a definition that comes, changes or goes is known", () => {
  const without = updateBlocks(NO_BLOCKS, "[a] and [b]\n\ntext\n").blocks;
  const first = updateBlocks(without, "[a] and [b]\n\ntext\n\n[a]: https://x.y\n");
  assert.deepEqual([...first.labels], ["A"]);
  const second = updateBlocks(first.blocks, "[a] and [b]\n\ntext\n\n[a]: https://x.y\n[a]: https://z\n");
  assert.deepEqual([...second.labels], [], "the first one counts");
  const gone = updateBlocks(second.blocks, "[a] and [b]\n\ntext\n\n[a]: https://z\n");
  assert.deepEqual([...gone.labels], ["A"]);
  const nested = updateBlocks(without, "[a] and [b]\n\n> - [b]: https://q\n");
  assert.deepEqual([...nested.labels], ["B"]);
});

test("a rendered block says which labels it depends on", () => {
  const { labels } = renderBlock("[a] [text][B c] ![image][d] [inline](https://x.y)\n", new Map());
  assert.ok(["A", "B C", "D"].every((label) => labels.has(label)));
});

/** What it has and CommonMark has not (extras.test.mjs). */
const EXTRAS = /\[\^|\$|<(?:br|kbd|sub|sup|details)/;

/** HTML without what the page adds or leaves out on purpose. */
function comparable(text) {
  return text
    .replace(/<span class="document-task"[^>]*aria-checked="(\w+)"[^>]*><\/span>/g, (_, done) => (done === "true" ? "[x] " : "[ ] "))
    .replace(/ style="text-align:(\w+)"/g, ' align="$1"')
    .replace(/<a class="document-image-link"[^>]*>(.*?)<\/a>/g, "IMAGE $1")
    .replace(/<img[^>]* alt="([^"]*)"[^>]*>/g, (tag, alt) => (tag.includes("data:") ? tag.replace(/^<img src="([^"]*)" alt="([^"]*)".*/, "<img $1 $2>") : `IMAGE ${alt}`))
    .replace(/ (data-language|class)="[^"]*"/g, "")
    .replace(/<br>\n/g, "<br>")
    .replace(/>\n+</g, "><")
    .replace(/\n<\/code>/g, "</code>")
    .replace(/(<\/?(?:blockquote|ul|ol|li|p|table|thead|tbody|tr|td|th|pre|hr|h\d)[^>]*>)\n+/g, "$1")
    .replace(/\n+(<\/?(?:blockquote|ul|ol|li|p|table|thead|tbody|tr|td|th|pre|hr|h\d)[^>]*>)/g, "$1")
    .trim();
}

test("it is rendered as markdown-it does", () => {
  const stock = markdownIt({ html: false, linkify: true });
  stock.core.ruler.disable("linkify");
  for (const text of all.filter((each) => !EXTRAS.test(each))) {
    assert.equal(comparable(html(text)), comparable(stock.render(text)), JSON.stringify(text));
  }
});
