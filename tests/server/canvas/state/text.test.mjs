import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOf, linesOf, mapRange, utf16Offset } from "../../../../server/canvas/state/text.js";

test("equal texts have no change", () => assert.equal(changeOf("abc", "abc"), null));

test("a change is the smallest range that was replaced", () => {
  assert.deepEqual(changeOf("one two three", "one 2 three"), { start: 4, end: 7, inserted: 1 });
  assert.deepEqual(changeOf("aa", "aaa"), { start: 2, end: 2, inserted: 1 });
  assert.deepEqual(changeOf("", "x"), { start: 0, end: 0, inserted: 1 });
});

test("a change splits no surrogate pair", () => {
  assert.deepEqual(changeOf("a😀b", "a😁b"), { start: 1, end: 3, inserted: 2 });
});

test("a change applied to the old text is the new text, for all short texts", () => {
  const texts = ["", "a", "b"].flatMap((x) => ["", "a", "b"].flatMap((y) => ["", "a", "b", "ab"].map((z) => x + y + z)));
  for (const old of texts) {
    for (const text of texts) {
      const change = changeOf(old, text);
      if (change) {
        const { start, end, inserted } = change;
        assert.equal(old.slice(0, start) + text.slice(start, start + inserted) + old.slice(end), text);
      }
    }
  }
});

test("the change of a long text is found wherever it is", () => {
  const old = "0123456789".repeat(1000);
  for (let at = 0; at <= old.length; at += 997) {
    assert.deepEqual(changeOf(old, `${old.slice(0, at)}x${old.slice(at)}`), { start: at, end: at, inserted: 1 });
    assert.deepEqual(changeOf(`${old.slice(0, at)}x${old.slice(at)}`, old), { start: at, end: at + 1, inserted: 0 });
  }
});

test("a range moves with what stands before it, and is lost where it is touched", () => {
  const range = { start: 4, end: 7 };
  assert.deepEqual(mapRange(range, { start: 0, end: 0, inserted: 2 }), { start: 6, end: 9 });
  assert.deepEqual(mapRange(range, { start: 7, end: 9, inserted: 0 }), range);
  assert.deepEqual(mapRange(range, { start: 4, end: 4, inserted: 1 }), { start: 5, end: 8 });
  assert.equal(mapRange(range, { start: 6, end: 8, inserted: 1 }), null);
});

test("lines are counted as operations count them", () => {
  assert.deepEqual(linesOf("a\nb\nc", 0, 1), { lineStart: 1, lineEnd: 1 });
  assert.deepEqual(linesOf("a\nb\nc", 0, 2), { lineStart: 1, lineEnd: 1 });
  assert.deepEqual(linesOf("a\nb\nc", 2, 5), { lineStart: 2, lineEnd: 3 });
});

test("code points become UTF-16 units", () => assert.equal(utf16Offset("a😀b", 2), 3));
