/** Formulas are drawn, and what is selected of one is its source. */

import assert from "node:assert/strict";
import { test } from "node:test";
import "../page.mjs";

// A style sheet is there at once.
const { append } = document.head;
document.head.append = (...nodes) => (append.call(document.head, ...nodes), nodes.forEach((node) => node.dispatchEvent(new window.Event("load"))));

const { createMarkdownView } = await import("../../../../../server/canvas/document/markdown/markdown.js");
const { drawFormulas } = await import("../../../../../server/canvas/document/markdown/formulas.js");
const { passageOf, visibleRanges } = await import("../../../../../server/canvas/document/markdown/selection.js");

/** The view of a text, once its formulas are drawn. @param {string} text */
async function drawn(text) {
  const loaded = new Promise((resolve) => {
    const view = createMarkdownView({ dress: (made) => drawFormulas(made, () => (view.refresh(), resolve(view))) });
    view.update(text);
    view.renderAll();
    view.element.querySelector("[data-source]") && resolve(view);
  });
  document.body.append((await loaded).element);
  return loaded;
}

/** What the document says where a range begins and ends. */
function selected(view, start, end) {
  const range = document.createRange();
  range.setStart(...start);
  range.setEnd(...end);
  return passageOf(view, range)?.text;
}

/** The text node that has a word. */
function wordIn(root, word) {
  const walker = document.createTreeWalker(root, 4);
  while (walker.nextNode()) {
    const at = walker.currentNode.data.indexOf(word);
    if (at !== -1) return [walker.currentNode, at];
  }
  throw new Error(`${word} is not there`);
}

const TEXT = "Before $a^2$ between **bold** and $$\\frac{b}{c}$$ after.\n\n$$\nd\n- e\n$$\n\nEnd.\n";

test("a formula is drawn in its place, and says its TeX to a screen reader", async () => {
  const view = await drawn(TEXT);
  const formulas = [...view.element.querySelectorAll("[role=math]")];
  assert.deepEqual(formulas.map((each) => each.getAttribute("aria-label")), ["a^2", "\\frac{b}{c}", "d\n- e"]);
  assert.ok(formulas.every((each) => each.querySelector(".katex")));
  assert.equal(formulas[0].textContent, "a2");
});

test("what is selected beside, across and within formulas is the source", async () => {
  const view = await drawn(TEXT);
  const [first, second, third] = view.element.querySelectorAll("[role=math]");
  const inside = (formula) => wordIn(formula, formula.textContent.trim()[0]);
  assert.equal(selected(view, wordIn(view.element, "between"), wordIn(view.element, " and")), "between **bold**");
  assert.equal(selected(view, wordIn(view.element, "Before"), wordIn(view.element, "between")), "Before $a^2$ ");
  assert.equal(selected(view, inside(first), [first, first.childNodes.length]), "a^2");
  assert.equal(selected(view, inside(second), wordIn(view.element, "after")), "$$\\frac{b}{c}$$ ");
  assert.equal(selected(view, wordIn(view.element, "and "), inside(second).map((each, at) => (at ? each + 1 : each))), "and $$\\frac{b}{c}$$");
  assert.equal(selected(view, [third, 0], [third, third.childNodes.length]), "d\n- e");
});

test("the source of a formula is seen as the whole formula", async () => {
  const view = await drawn(TEXT);
  const [first] = view.element.querySelectorAll("[role=math]");
  const [range] = visibleRanges(view, TEXT.indexOf("^2"), TEXT.indexOf("^2") + 1);
  assert.ok(range.intersectsNode(first) && range.toString() === "a2");
  const [behind] = visibleRanges(view, TEXT.indexOf("between"), TEXT.indexOf("between") + 7);
  assert.equal(behind.toString(), "between");
});

test("a formula that is wrong stays TeX, and says why", async () => {
  const view = await drawn("$a$ and $\\frac{b$");
  const wrong = view.element.querySelectorAll(".document-math")[1];
  assert.equal(wrong.textContent, "\\frac{b");
  assert.match(wrong.title, /KaTeX parse error/);
});

for (const tex of [
  "\\href{javascript:alert(1)}{x}",
  "\\url{https://evil.example/}",
  "\\includegraphics{https://evil.example/x.png}",
  "\\htmlClass{button}{x}",
  "\\htmlId{chat}{x}",
  "\\htmlStyle{position:fixed;inset:0}{x}",
  "\\htmlData{source=x}{x}",
  "\\text{<img src=x onerror=alert(1)>}",
  "\\def\\a{\\a\\a}\\a",
]) {
  test(`${tex} links to nothing, loads nothing and has no class or style of its own`, async () => {
    const view = await drawn(`$a$ $${tex}$`);
    assert.equal(view.element.querySelector("a[href], img, [id], .button, [onerror]"), null);
    assert.doesNotMatch(view.element.innerHTML, /style="[^"]*(?:fixed|url\()/);
    assert.equal(view.element.querySelectorAll("[data-source]").length <= 2, true);
  });
}
