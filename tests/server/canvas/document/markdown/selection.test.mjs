/** What is selected in the rendered view is found in the source, at the right place and as valid Markdown. */

import assert from "node:assert/strict";
import { test } from "node:test";
import "../page.mjs";
import { documents, examples, randomOf } from "../corpus.mjs";

const { createMarkdownView } = await import("../../../../../server/canvas/document/markdown/markdown.js");
const { passageOf, visibleRanges } = await import("../../../../../server/canvas/document/markdown/selection.js");

const WORD = /w\d{5}/g;
const TAKEN_WHOLE = ".document-math, .document-formula, kbd, sub, sup, em, strong, s, a, code, pre, tr, table";

/** @param {string} text */
function shown(text) {
  const view = createMarkdownView();
  view.update(text);
  view.renderAll();
  return view;
}

/** All characters that are seen, each with its place in the DOM. @param {Element} root */
function characters(root) {
  const walker = document.createTreeWalker(root, 4);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (let offset = 0; offset < node.data.length; offset++) {
      found.push({ node, offset, character: node.data[offset] });
    }
  }
  return found;
}

function rangeOf(first, last) {
  const range = document.createRange();
  range.setStart(first.node, first.offset);
  range.setEnd(last.node, last.offset + 1);
  return range;
}

/** Where a visible character of a word is in the source: the word is there once. */
function sourceOf(text, { node, offset }) {
  if (node.parentElement.closest(".document-image-link")) {
    return null;
  }
  for (const { 0: word, index } of node.data.matchAll(WORD)) {
    if (offset >= index && offset < index + word.length) {
      return text.indexOf(word) + offset - index;
    }
  }
  return null;
}

/** The words of what a selection has only a part of, and that is taken whole. */
function widenedWords(root, range) {
  const partly = [...root.querySelectorAll(TAKEN_WHOLE)].filter((element) => {
    const holds = element.contains(range.startContainer) && element.contains(range.endContainer);
    return range.intersectsNode(element) && !holds && (element.contains(range.startContainer) || element.contains(range.endContainer));
  });
  return new Set(partly.flatMap((element) => element.textContent.match(WORD) ?? []));
}

/** Some ranges of visible characters of each document. */
function* selections(text, count, seed) {
  const view = shown(text);
  const seen = characters(view.element);
  const words = [...view.element.textContent.matchAll(WORD)];
  const random = randomOf(seed);
  for (let at = 0; at < count && seen.length > 0; at++) {
    const from = random(seen.length);
    const to = Math.min(seen.length - 1, from + random(at % 2 ? seen.length : 12));
    const touched = words.filter(({ index }) => index <= to && index + 6 > from).map(([word]) => word);
    yield { view, first: seen[from], last: seen[to], range: rangeOf(seen[from], seen[to]), seen: seen.slice(from, to + 1), touched };
  }
}

const all = documents();

test("the corpus has at least 40 shapes, and all their words are seen", () => {
  assert.ok(all.length > 150);
  for (const { name, text } of all) {
    const visible = shown(text).element.textContent.match(WORD) ?? [];
    const hidden = [...text.matchAll(/!\[(w[^\]]*)\]\(data:/g)].flatMap(([, alt]) => alt.match(WORD) ?? []);
    assert.deepEqual([...visible, ...hidden].sort(), text.match(WORD).sort(), name);
  }
});

test("a selection has the source of what is selected, and of nothing else but what is taken whole", () => {
  for (const [seed, { name, text }] of all.entries()) {
    for (const { view, range, seen, first, last, touched } of selections(text, examples(40), seed + 1)) {
      const passage = passageOf(view, range);
      const selected = seen.map(({ character }) => character).join("");
      const told = `${name}: ${JSON.stringify(selected)} is ${JSON.stringify(passage?.text)}`;
      assert.ok(passage, told);
      assert.equal(passage.text, text.slice(passage.start, passage.end), told);
      const allowed = widenedWords(view.element, range);
      const [start, end] = [sourceOf(text, first), sourceOf(text, last)];
      if (start !== null) {
        assert.ok(passage.start <= start, told);
        assert.ok((text.slice(passage.start, start).match(/w\d+/g) ?? []).every((word) => [...allowed].some((one) => one.startsWith(word))), told);
      }
      if (end !== null) {
        assert.ok(passage.end > end, told);
        assert.ok((text.slice(end + 1, passage.end).match(WORD) ?? []).every((word) => allowed.has(word)), told);
      }
      for (const word of selected.match(WORD) ?? []) {
        assert.ok(passage.text.includes(word), told);
      }
      for (const word of passage.text.match(WORD) ?? []) {
        assert.ok(touched.includes(word) || allowed.has(word) || isAlt(text, word), `${told}: ${word}`);
      }
    }
  }
});

/** A word that is not seen: what an image says to who cannot see it. */
const isAlt = (text, word) => new RegExp(`!\\[[^\\]]*${word}`).test(text);

test("a selection within one piece of text is that piece exactly", () => {
  let checked = 0;
  for (const [seed, { name, text }] of all.entries()) {
    for (const { view, range, first, last } of selections(text, examples(40), seed + 100)) {
      const [start, end] = [sourceOf(text, first), sourceOf(text, last)];
      if (first.node === last.node && start !== null && end !== null && !/\r|\n/.test(range.toString())) {
        const passage = passageOf(view, range);
        assert.deepEqual([passage.start, passage.end], [start, end + 1], name);
        checked++;
      }
    }
  }
  assert.ok(checked > examples(1000), `${checked}`);
});

test("repeated passages are told apart: the words do not matter, only where they are", () => {
  for (const [seed, { name, text }] of all.entries()) {
    const alike = text.replace(WORD, "wwwwww");
    const others = selections(alike, examples(20), seed + 1);
    for (const { view, range } of selections(text, examples(20), seed + 1)) {
      const other = others.next().value;
      const [mine, its] = [passageOf(view, range), passageOf(other.view, other.range)];
      assert.deepEqual([its?.start, its?.end], [mine?.start, mine?.end], name);
    }
  }
});

test("what replaces a selection leaves the markup of the rest whole", () => {
  // A footnote of one word would be the definition of a link: Markdown has no footnotes.
  for (const [seed, { name, text }] of all.filter(({ text }) => !text.includes("[^1]")).entries()) {
    for (const { view, range, touched } of selections(text, examples(15), seed + 1)) {
      const passage = passageOf(view, range);
      // Whether a marker opens or closes depends on the blanks beside it: they stay.
      const [, before, behind] = /^(\s*)[^]*?(\s*)$/.exec(range.toString());
      const replaced = text.slice(0, passage.start) + before + "new" + behind + text.slice(passage.end);
      const after = shown(replaced).element;
      const told = `${name}: ${JSON.stringify(passage.text)} -> ${JSON.stringify(after.textContent)}`;
      const gone = new Set([...touched, ...(passage.text.match(WORD) ?? [])]);
      const rest = (view.element.textContent.match(WORD) ?? []).filter((word) => !gone.has(word));
      for (const word of rest) {
        assert.ok(after.textContent.includes(word), told);
      }
      for (const sign of ["*", "`", "~~", "]("]) {
        assert.ok(count(after.textContent, sign) <= count(view.element.textContent, sign), told);
      }
    }
  }
});

const count = (text, sign) => text.split(sign).length - 1;

test("a passage is shown where it was selected", () => {
  for (const [seed, { name, text }] of all.entries()) {
    for (const { view, range, first, last } of selections(text, examples(20), seed + 1)) {
      const passage = passageOf(view, range);
      const ranges = visibleRanges(view, passage.start, passage.end);
      const marked = ranges.map(String).join("");
      for (const word of range.toString().match(WORD) ?? []) {
        assert.ok(marked.includes(word), `${name}: ${marked}`);
      }
      if (first.node === last.node && sourceOf(text, first) !== null && sourceOf(text, last) !== null) {
        assert.equal(marked, range.toString(), name);
      }
    }
  }
});

test("inside bold text it is the text alone, across its border the markers, too", () => {
  for (const [from, to, expected] of [
    ["w00001", "w00001", "w00001"],
    ["w00002", "w00003", "w00002 w00003"],
    ["w00003", "w00004", "**w00002 w00003** w00004"],
    ["w00001", "w00003", "w00001 **w00002 w00003**"],
    ["w00001", "w00004", "w00001 **w00002 w00003** w00004"],
  ]) {
    const view = shown("w00001 **w00002 w00003** w00004");
    const seen = characters(view.element);
    const text = seen.map(({ character }) => character).join("");
    const passage = passageOf(view, rangeOf(seen[text.indexOf(from)], seen[text.indexOf(to) + 5]));
    assert.equal(passage.text, expected);
  }
});

test("over several blocks it takes the marker of the first", () => {
  const text = "p\n\n## w00001\n\n- w00002\n- w00003\n\nq";
  const view = shown(text);
  const seen = characters(view.element);
  const visible = seen.map(({ character }) => character).join("");
  const select = (from, to) => passageOf(view, rangeOf(seen[visible.indexOf(from)], seen[visible.indexOf(to) + to.length - 1])).text;
  assert.equal(select("w00001", "w00001"), "w00001");
  assert.equal(select("w00001", "w00002"), "## w00001\n\n- w00002");
  assert.equal(select("w00002", "w00003"), "- w00002\n- w00003");
  assert.equal(select("00002", "w00003"), "00002\n- w00003");
});

test("lines are counted as the server counts them", () => {
  const view = shown("# w00001\n\nw00002\nw00003\n");
  const seen = characters(view.element);
  const passage = passageOf(view, rangeOf(seen[0], seen.at(-1)));
  assert.deepEqual([passage.lineStart, passage.lineEnd], [1, 4]);
});
