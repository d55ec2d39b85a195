/** Two versions of a Markdown text as one: without what is gone it reads as the new one, without what is new as the old one. */

import "../document/page.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf } from "../../../../server/canvas/document/markdown/formatted.js";
import { diff } from "../../../../server/canvas/vendor/merge.js";
import { createRendered } from "../../../../server/canvas/versions/rendered.js";

function compare(old, text) {
  const both = blocksOf(old, text);
  return createRendered(both.old, both.next, diff).dom;
}

/** The words of a comparison, without the elements of a tag. */
function wordsWithout(dom, tag) {
  const copy = dom.cloneNode(true);
  copy.querySelectorAll(tag).forEach((each) => each.remove());
  return copy.textContent.replace(/\s+/g, "");
}

/** The words of a text. */
const wordsOf = (text) => blocksOf("", text).next.map((block) => block.render().textContent).join("").replace(/\s+/g, "");

const marked = (old, text) => {
  const dom = compare(old, text);
  return ["del", "ins"].map((tag) => [...dom.querySelectorAll(tag)].map(({ textContent }) => textContent.trim()));
};

test("words that were replaced are struck, those in their place underlined", () => {
  assert.deepEqual(marked("The tide comes in twice a day.\n", "The tide goes out twice a day.\n"), [["comes in"], ["goes out"]]);
  assert.deepEqual(marked("The **tide** comes in twice.\n", "The **high tide** comes in twice.\n"), [[], ["high"]]);
  assert.deepEqual(marked("It comes in twice a day.\n", "It comes in twice.\n"), [["a day"], []]);
});

test("an item, a cell and a paragraph that came or went are marked whole", () => {
  assert.deepEqual(marked("- one\n- three\n", "- one\n- two\n- three\n"), [[], ["two"]]);
  assert.deepEqual(marked("- one\n- two\n- three\n", "- one\n- three\n"), [["two"], []]);
  assert.deepEqual(marked("| a | b |\n|---|---|\n| low | 9 |\n", "| a | b |\n|---|---|\n| low | 11 |\n"), [["9"], ["11"]]);
  assert.deepEqual(marked("First.\n\nLast.\n", "First.\n\nThe one between.\n\nLast.\n"), [[], ["The one between."]]);
  assert.deepEqual(marked("First.\n\nThe one between.\n\nLast.\n", "First.\n\nLast.\n"), [["The one between."], []]);
});

test("a rewritten paragraph is not mixed with the old one", () => {
  assert.deepEqual(marked("The tide comes in.\n", "Nobody lives here any more.\n"), [["The tide comes in."], ["Nobody lives here any more."]]);
});

test("what says the same and looks otherwise is marked where it does", () => {
  const [del, ins] = marked("See [this](https://a.example/) page.\n", "See [this](https://b.example/) page.\n");
  assert.deepEqual([del, ins], [["this"], ["this"]]);
  const ticked = compare("- [ ] one\n- [ ] two\n", "- [ ] one\n- [x] two\n");
  assert.deepEqual([...ticked.querySelectorAll("del [role=checkbox]")].map((box) => box.getAttribute("aria-checked")), ["false"]);
  assert.deepEqual([...ticked.querySelectorAll("ins [role=checkbox]")].map((box) => box.getAttribute("aria-checked")), ["true"]);
  assert.deepEqual(marked("some bold words\n", "some **bold** words\n"), [["some bold words"], ["some bold words"]]);
});

test("a link is marked where its definition changed, came or went", () => {
  const far = "First.\n\nSecond.\n\nThird.\n\n";
  const text = (definition) => `See [this page][x] of the [atlas](https://c.example/).\n\n${far}${definition}`;
  assert.deepEqual(marked(text("[x]: https://a.example/\n"), text("[x]: https://b.example/\n")), [["this page"], ["this page"]]);
  assert.deepEqual(marked("See [X] of [y].\n\n[x]: a.md\n[y]: c.md\n", "See [X] of [y].\n\n[x]: b.md\n[y]: c.md\n"), [["X"], ["X"]]);
  assert.deepEqual(marked(text(""), text("[x]: https://b.example/\n")), [["[", "][x]"], []]);
  assert.deepEqual(marked("# [x]\n\n[x]: a.md\n", "# [x]\n\n[x]: a.md\n[x]: b.md\n"), [[], []]);
});

test("a link that leads elsewhere is marked beside words that changed", () => {
  const [del, ins] = marked("See [this](https://a.example/) page of the tides.\n", "See [this](https://b.example/) page of all tides.\n");
  assert.deepEqual([del, ins], [["this", "the"], ["this", "all"]]);
  assert.deepEqual(marked("See [this](a.md) and [that](b.md) page.\n", "See [this](a.md) and [those](c.md) page.\n"), [["that"], ["those"]]);
});

test("what changed only in the source is counted, with the way there", () => {
  const said = (old, text) => [...compare(old, text).querySelectorAll(":scope > p")].map(({ textContent }) => textContent);
  const one = ["Changes in 1 paragraph can be seen only in Source."];
  assert.deepEqual(said("High * low tide.\n", "High \\* low tide.\n"), one);
  assert.deepEqual(said("The tide\ncomes in.\n", "The tide comes\nin.\n"), one);
  assert.deepEqual(said("```\nlow tide\nhigh tide\n```\n", "```\nlow tide high\ntide\n```\n"), []);
  assert.deepEqual(said("Tides.\n", "Tides.\n\n[x]: a.md\n"), one);
  assert.deepEqual(said("Tides.\n\n[x]: a.md\n", "Tides.\n"), one);
  assert.deepEqual(said("[x]: a.md\n\n# Tides\n", "[x]: b.md\n\nTides\n=====\n"), ["Changes in 2 paragraphs can be seen only in Source."]);
  assert.deepEqual(said("Tides.\n\nIt comes in.\n", "Tides.\n\nIt goes out.\n"), []);
  assert.deepEqual(said("Two ~~or three~~ tides.\n", "Two ~~or three~~\ntides.\n"), one);
  assert.deepEqual(marked("Tides.\n", "Tides.\n\n[x]: a.md\n"), [[], []]);
});

test("a step draws so much text, in however many blocks it is, and at least one", () => {
  const drawn = (count, length) => {
    let rendered = 0;
    const blocks = (sign) => Array.from({ length: count }, (_, at) => ({ source: `${at} ${sign.repeat(length)}`, relinked: false, render: () => (rendered++, document.createElement("div")) }));
    createRendered(blocks("a"), blocks("b"), diff).destroy();
    return rendered;
  };
  assert.equal(drawn(30, 1), 60);
  assert.ok(drawn(1000, 1) < 1000);
  assert.ok(drawn(30, 3_000) < 20);
  assert.equal(drawn(30, 100_000), 1);
});

test("a table of 5,000 cells, of which a fifth changed, is marked cell by cell", () => {
  const table = (wordOf) => {
    const dom = document.createElement("div");
    for (let row = 0; row < 500; row++) {
      const cells = dom.appendChild(document.createElement("p"));
      for (let cell = 0; cell < 10; cell++) {
        cells.appendChild(document.createElement("td")).textContent = wordOf(row * 10 + cell);
      }
    }
    return dom;
  };
  const block = (sign) => [{ source: `A table of ${sign} words.`, relinked: false, render: () => table((at) => (at % 5 === 0 ? sign : "same")) }];
  const byPlace = (a, b) => [...a].flatMap((sign, at) => (sign === b[at] ? [] : { fromA: at, toA: at + 1, fromB: at, toB: at + 1 }));
  const { dom } = createRendered(block("old"), block("new"), byPlace);
  assert.equal(dom.querySelectorAll("ins").length, 1_000);
  assert.equal(dom.querySelectorAll("del").length, 1_000);
});

test("texts in which nothing that is read differs say so", () => {
  assert.equal(compare("One.\n\n\nTwo.\n", "One.\n\nTwo.\n").textContent, "Nothing that can be read has changed.");
});

test("without one kind of marks it is the other version, of any two texts", () => {
  const parts = ["The tide comes in twice a day.", "- one *two*\n- three\n- four", "> quoted words here", "| a | b |\n|---|---|\n| c | d |", "`code` and **bold words** again", "```\ncode line\nanother line\n```", "1. first\n2. second"];
  const words = ["ebb", "flow", "rocks", "**deep** water", "`x`"];
  let seed = 11;
  const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 40; round++) {
    const old = Array.from({ length: 1 + random(4) }, () => parts[random(parts.length)]);
    const next = old.flatMap((each) => [[each], [], [each.replace(/\b[a-z]+\b/, words[random(words.length)])], [each, parts[random(parts.length)]], [each.replace(/[a-z]+(?= |$)/, "")]][random(5)]);
    const [before, after] = [old.join("\n\n"), next.join("\n\n")];
    const dom = compare(before, after);
    if (dom.querySelector(".comparison-fold") === null && dom.querySelector("ins, del") !== null) {
      assert.equal(wordsWithout(dom, "del"), wordsOf(after), JSON.stringify([before, after, dom.innerHTML]));
      assert.equal(wordsWithout(dom, "ins"), wordsOf(before), JSON.stringify([before, after, dom.innerHTML]));
    }
  }
});
