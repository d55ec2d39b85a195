/** The rendered view shows the text, and a change leaves alone what it does not concern. */

import assert from "node:assert/strict";
import { test } from "node:test";
import "../page.mjs";
import { documents, examples, randomOf } from "../corpus.mjs";

const { createMarkdownView } = await import("../../../../../server/canvas/document/markdown/markdown.js");

/** @param {string} text */
function viewOf(text) {
  const view = createMarkdownView();
  document.body.append(view.element);
  show(view, text);
  return view;
}

function show(view, text) {
  view.update(text);
  view.renderAll();
}

/** The blocks as they are shown, without the chunks that they stand in. */
const blocks = (view) => [...view.element.querySelectorAll(".document-block")].map((block) => block.innerHTML);

test("after any change it shows what a new view shows", () => {
  const all = documents().map(({ text }) => text);
  const random = randomOf(5);
  for (let round = 0; round < examples(15); round++) {
    let text = Array.from({ length: 8 }, () => all[random(all.length)]).join("\n\n");
    const view = viewOf(text);
    for (let edit = 0; edit < 12; edit++) {
      const start = random(text.length);
      const piece = ["", "word", "\n\n", "**", "```\n", all[random(all.length)]][random(6)];
      text = text.slice(0, start) + piece + text.slice(start + random(30));
      show(view, text);
      assert.deepEqual(blocks(view), blocks(viewOf(text)), JSON.stringify(text));
    }
  }
});

test("what has not changed stays the same element, and so does a selection in it", () => {
  const view = viewOf("# Title\n\nfirst\n\nsecond\n\nthird\n");
  const [title, , , third] = view.element.querySelectorAll(".document-block > *");
  show(view, "# Title\n\nfirst\n\nsecond one\n\nthird\n");
  const now = view.element.querySelectorAll(".document-block > *");
  assert.equal(now[0], title);
  assert.equal(now[3], third);
});

test("a text that grows is appended to the text node that is there", () => {
  const view = viewOf("It gro");
  const node = view.element.querySelector("p").firstChild;
  show(view, "It grows **well");
  assert.equal(view.element.querySelector("p").firstChild, node);
  assert.equal(node.data, "It grows **well");
});

test("it says what of the text is new once that is shown", () => {
  let shown = [];
  const view = createMarkdownView({ onShow: ({ start, end }) => shown.push([view.text().slice(start, end), view.element.textContent]) });
  document.body.append(view.element);
  const newIn = (text) => ((shown = []), show(view, text), shown);
  newIn("# Title\n\nIt gro");
  assert.deepEqual(newIn("# Title\n\nIt grows **well**"), [["ws **well**", "TitleIt grows well"]]);
  assert.deepEqual(newIn("# Title\n\nIt grows **well now**"), [[" now", "TitleIt grows well now"]]);
  assert.deepEqual(newIn("# Title\n\nIt grows **well now**\n\nMore"), [["\n\nMore", "TitleIt grows well nowMore"]]);
  assert.deepEqual(newIn("# Title\n\nIt grows **well now**\n\nMore"), []);
});

test("a definition at the end makes links of what is far before it", () => {
  const filler = "text\n\n".repeat(200);
  const view = viewOf(`[a]\n\n${filler}`);
  assert.equal(view.element.querySelector("a"), null);
  show(view, `[a]\n\n${filler}[a]: https://x.y\n`);
  assert.equal(view.element.querySelector("a").href, "https://x.y/");
  show(view, `[a]\n\n${filler}[a]: https://z\n`);
  assert.equal(view.element.querySelector("a").href, "https://z/");
});
