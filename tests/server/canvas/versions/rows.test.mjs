/** Which blocks of a text became which of another one. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { diff } from "../../../../server/canvas/vendor/merge.js";
import { changedWords, foldRows, placesOf, rowsOf } from "../../../../server/canvas/versions/rows.js";

const rows = (old, next) => rowsOf(old, next, diff).map(({ old: one, next: other }) => [one, other]);

const [TIDES, CRABS, WAVES] = ["The tide comes in twice a day.", "Crabs hide under stones.", "Mind the waves near the rocks."];

test("equal blocks are rows of their own", () => {
  assert.deepEqual(rows([], []), []);
  assert.deepEqual(rows([TIDES, CRABS], [TIDES, CRABS]), [[0, 0], [1, 1]]);
});

test("a block that was changed became the one that has most of its words", () => {
  assert.deepEqual(rows([TIDES, CRABS], [TIDES, "Small crabs hide under stones."]), [[0, 0], [1, 1]]);
  assert.deepEqual(rows([TIDES], ["# A heading", "The tide comes in two times a day."]), [[null, 0], [0, 1]]);
  assert.deepEqual(rows([CRABS, TIDES], ["The tide comes in two times a day."]), [[0, null], [1, 0]]);
});

test("a block that has little in common with another one is new, and the other one gone", () => {
  assert.deepEqual(rows([TIDES], ["Nobody lives here."]), [[null, 0], [0, null]]);
  assert.deepEqual(rows([TIDES, WAVES], [TIDES, CRABS, WAVES]), [[0, 0], [null, 1], [1, 2]]);
});

test("every block of both texts is in one row, in order, whatever was done to it", () => {
  let seed = 7;
  const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
  for (let round = 0; round < 200; round++) {
    const old = Array.from({ length: random(12) }, () => [TIDES, CRABS, WAVES, `${random(5)} words`][random(4)]);
    const next = old.flatMap((each) => [[each], [], [each.replace(/\w+/, "Some")], [each, `${random(9)} more`]][random(4)]);
    const found = rowsOf(old, next, diff);
    assert.deepEqual(found.flatMap((row) => row.old ?? []), old.map((_, at) => at));
    assert.deepEqual(found.flatMap((row) => row.next ?? []), next.map((_, at) => at));
  }
});

test("more blocks than there are characters are compared, too", () => {
  const old = Array.from({ length: 70_000 }, (_, at) => `Paragraph ${at}.`);
  const next = [...old.slice(0, 69_000), "Another one.", ...old.slice(69_001)];
  const found = rowsOf(old, next, diff);
  const changed = found.filter((row) => row.old === null || row.next === null || old[row.old] !== next[row.next]);
  assert.ok(changed.length > 0 && changed.every((row) => row.old === null || row.old === 69_000), JSON.stringify(changed));
});

test("what is far from a change is folded, but not a single block", () => {
  const fold = (signs) => foldRows([...signs], (sign) => sign === "x").map(({ rows: some, folded }) => (folded ? `(${some.join("")})` : some.join("")));
  assert.deepEqual(fold("abcdexfghijk"), ["(abc)", "dexfg", "(hijk)"]);
  assert.deepEqual(fold("abcx"), ["a", "bcx"]);
  assert.deepEqual(fold("abcd"), ["(abcd)"]);
  assert.deepEqual(fold(""), []);
});

test("words are other words as a whole, and neighbours are one change", () => {
  const words = (old, next) => changedWords(old, next, diff).map(({ fromA, toA, fromB, toB }) => [old.slice(fromA, toA), next.slice(fromB, toB)]);
  assert.deepEqual(words("It comes in.", "It goes out."), [["comes in", "goes out"]]);
  assert.deepEqual(words("It doesn't.", "It does."), [["doesn't", "does"]]);
  assert.deepEqual(words("one\ntwo", "1\n2"), [["one", "1"], ["two", "2"]]);
  assert.deepEqual(words("潮が満ちる", "潮が引く"), [["満ちる", "引く"]]);
  assert.deepEqual(words("same", "same"), []);
  assert.deepEqual(words("", "😀 new"), [["", "😀 new"]]);
});

const change = (fromB, toB) => ({ fromA: 0, toA: 0, fromB, toB });

test("a change is in the pieces that it shares characters with, and has the one before it", () => {
  const pieces = ["one", "two", "", "three"].map((text, at) => ({ text, at: [0, 3, 6, 7][at] }));
  const places = (...changes) => placesOf(pieces, changes).map(({ before, first, end }) => [before, first, end]);
  assert.deepEqual(places(change(0, 2), change(2, 4)), [[0, 0, 1], [0, 0, 2]]);
  assert.deepEqual(places(change(3, 6), change(7, 9), change(10, 12)), [[0, 1, 2], [2, 3, 4], [3, 3, 4]]);
  assert.deepEqual(places(change(0, 0), change(4, 4), change(6, 6), change(12, 12)), [[0, 0, 0], [1, 1, 2], [2, 3, 3], [3, 4, 4]]);
});

test("the pieces of all changes are found in one pass", () => {
  let reads = 0;
  const pieces = Array.from({ length: 50_000 }, (_, nth) => ({ text: "four", get at() {
    reads++;
    return nth * 5;
  } }));
  const places = placesOf(pieces, Array.from({ length: 10_000 }, (_, nth) => change(nth * 25, nth * 25 + 4)));
  assert.deepEqual(places.at(-1), { before: 49_994, first: 49_995, end: 49_996 });
  assert.ok(reads < 4 * pieces.length, `${reads} steps`);
});
