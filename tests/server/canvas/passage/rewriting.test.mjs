// Why a change of a passage was not taken back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { notUndone } from "../../../../server/canvas/passage/rewriting.js";

test("an earlier version is current: it is undone already", () => assert.equal(notUndone(2, 1), "This change is already undone."));

test("a later version is current: the document has changed since", () => assert.match(notUndone(2, 3), /^The document has changed since/));

for (const current of [2, undefined]) {
  test(`with version ${current} the reason is the server's`, () => assert.equal(notUndone(2, current), ""));
}
