// Where a rewritten passage is, and why a change of it was not taken back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { notUndone, placeAfter } from "../../../../server/canvas/passage/rewriting.js";

test("an earlier version is current: it is undone already", () => assert.equal(notUndone(2, 1), "This change is already undone."));

test("a later version is current: the document has changed since", () => assert.match(notUndone(2, 3), /^The document has changed since/));

for (const current of [2, undefined]) {
  test(`with version ${current} the reason is the server's`, () => assert.equal(notUndone(2, current), ""));
}

const BEFORE = "The first line.\nThe second line is long.\nMuch more is said before the third line.\n";
const range = { start: 16, end: 40 };

for (const [what, after, found] of [
  ["something shorter", BEFORE.replace("The second line is long.", "Short."), "Short."],
  ["nothing", BEFORE.replace("The second line is long.", ""), ""],
  ["something that has words in common", BEFORE.replace("second line is long", "2nd line is quite long"), "The 2nd line is quite long."],
  ["the same passage, while others changed the text before it", BEFORE.replace("first", "very first").replace("is long", "is short"), "The second line is short."],
  ["the same passage, while others changed the text behind it", BEFORE.replace("third", "last").replace("is long", "is short"), "The second line is short."],
]) {
  test(`a passage that became ${what} is found`, () => {
    const place = placeAfter(BEFORE, after, range);
    assert.equal(after.slice(place.start, place.end), found);
  });
}

test("a passage over whose end a change reaches is not found", () => {
  assert.equal(placeAfter(BEFORE, "The first line.\nAnother one.\n", { start: 16, end: 30 }), null);
});
