import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOf, changesOf, linesOf, mapRange, stepsTo, utf16Offset } from "../../../../server/canvas/state/text.js";
import { randomOf } from "../document/corpus.mjs";

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

/** A text after changes, of which what is inserted is taken from the new text. */
function applied(old, changes, text) {
  let by = 0;
  let result = "";
  let at = 0;
  for (const { start, end, inserted } of changes) {
    assert.ok(at <= start && start <= end, "in order");
    result += old.slice(at, start) + text.slice(start + by, start + by + inserted);
    by += inserted - (end - start);
    at = end;
  }
  return result + old.slice(at);
}

const lines = (from, to) => Array.from({ length: to - from }, (_, at) => `Line ${from + at} of the tides: ebb and flow.\n`).join("");

test("changes that stand apart are changes of their own", () => {
  const old = lines(0, 100);
  const text = `First.\n${old.replace("Line 40 of", "Line forty of").replace("Line 70 of the tides", "Line 70")}`;
  const changes = changesOf(old, text);
  assert.equal(applied(old, changes, text), text);
  assert.deepEqual(changes.map(({ start, end, inserted }) => [old.slice(start, end), inserted]), [["", 7], ["40", 5], [" of the tides", 0]]);
});

test("the text between two changes of one sentence stays", () => {
  const old = "The tide comes in, and the crabs hide under the stones.";
  const text = "A tide comes in, and the crabs hide under a stone.";
  assert.deepEqual(mapRange({ start: 23, end: 32 }, changesOf(old, text)), { start: 21, end: 30 });
});

test("changes in characters of two units split none", () => {
  const old = `\u{1f600}${lines(0, 20)}\u{1f600}`;
  const text = `\u{1f601}${lines(0, 20)}\u{1f601}`;
  assert.deepEqual(changesOf(old, text), [{ start: 0, end: 2, inserted: 2 }, { start: old.length - 2, end: old.length, inserted: 2 }]);
});

test("changes applied to the old text are the new text, wherever they are, and they are few", () => {
  const random = randomOf(3);
  for (let round = 0; round < 300; round++) {
    const old = random(2) ? lines(0, 1 + random(60)) : "ebb and flow ".repeat(1 + random(30));
    let text = old;
    for (let count = random(5); count > 0; count--) {
      const at = random(text.length);
      text = text.slice(0, at) + ["", "x", "\u{1f600}", lines(90, 92), "ebb "][random(5)] + text.slice(at + random(20));
    }
    const changes = changesOf(old, text);
    assert.equal(applied(old, changes, text), text);
    assert.ok(changes.length <= 8);
    assert.deepEqual(stepsTo(old, text).slice(-1), old === text ? [] : [text]);
  }
});

test("of two megabytes, changes at both ends are two", () => {
  const old = lines(0, 50_000);
  const text = `x${old}y`;
  assert.deepEqual(changesOf(old, text), [{ start: 0, end: 0, inserted: 1 }, { start: old.length, end: old.length, inserted: 1 }]);
  assert.deepEqual(stepsTo(old, text), [`x${old}`, text]);
});

test("a range moves with what stands before it, and is lost where it is touched", () => {
  const range = { start: 4, end: 7 };
  assert.deepEqual(mapRange(range, [{ start: 0, end: 0, inserted: 2 }]), { start: 6, end: 9 });
  assert.deepEqual(mapRange(range, [{ start: 7, end: 9, inserted: 0 }]), range);
  assert.deepEqual(mapRange(range, [{ start: 4, end: 4, inserted: 1 }]), { start: 5, end: 8 });
  assert.equal(mapRange(range, [{ start: 6, end: 8, inserted: 1 }]), null);
  assert.deepEqual(mapRange(range, [{ start: 0, end: 1, inserted: 4 }, { start: 9, end: 9, inserted: 2 }]), { start: 7, end: 10 });
  assert.equal(mapRange(range, [{ start: 0, end: 1, inserted: 4 }, { start: 5, end: 5, inserted: 2 }]), null);
  assert.deepEqual(mapRange(range, []), range);
});

test("lines are counted as operations count them", () => {
  assert.deepEqual(linesOf("a\nb\nc", 0, 1), { lineStart: 1, lineEnd: 1 });
  assert.deepEqual(linesOf("a\nb\nc", 0, 2), { lineStart: 1, lineEnd: 1 });
  assert.deepEqual(linesOf("a\nb\nc", 2, 5), { lineStart: 2, lineEnd: 3 });
});

test("code points become UTF-16 units", () => assert.equal(utf16Offset("a😀b", 2), 3));
