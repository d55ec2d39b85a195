import "../page.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";

const { NO_LINE, moveLine, stepsTo } = await import("../../../../../server/canvas/document/saving/unsaved.js");

const seen = (...versions) => versions.reduce((line, [version, text]) => moveLine(line, version, text), NO_LINE);
const THREE = [[1, "a"], [2, "ab"], [3, "abc"]];

test("a text that the document had is reached by undo", () => {
  assert.deepEqual(stepsTo(seen(...THREE), "a"), { op: "undo", count: 2, version: 1 });
});

test("and after that by redo", () => {
  assert.deepEqual(stepsTo(seen(...THREE, [1, "a"]), "abc"), { op: "redo", count: 2, version: 3 });
});

test("what was undone is out of reach after another change", () => {
  assert.equal(stepsTo(seen(...THREE, [1, "a"], [4, "aX"]), "abc"), null);
});

test("the nearest of equal texts is gone to", () => {
  assert.deepEqual(stepsTo(seen([1, "a"], [2, "ab"], [3, "a"], [4, "abc"]), "a"), { op: "undo", count: 1, version: 3 });
});

test("the current text is no step", () => assert.equal(stepsTo(seen(...THREE), "abc"), null));

test("only the latest versions are kept", () => {
  const many = Array.from({ length: 50 }, (_, index) => [index + 1, `text ${index + 1}`]);
  assert.equal(stepsTo(seen(...many), "text 1"), null);
  assert.equal(stepsTo(seen(...many), "text 45").count, 5);
});
