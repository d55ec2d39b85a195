// How writers are called, and whose annotations one may take away.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mayWithdraw, writerOf } from "../../../../server/canvas/review/writers.js";

const ann = { identity: { signedIn: true, required: true, user: "ann" }, shared: null };
const guest = { identity: { signedIn: true, required: true, user: "" }, shared: { owner: "ann", level: "comment" } };
const alone = { identity: null, shared: null };
const user = (by) => ({ author: "user", by });

for (const [state, writer, name] of [
  [ann, { author: "agent" }, "Agent"],
  [ann, user("ann"), "You"],
  [ann, user("joe"), "joe"],
  [ann, user("guest"), "Guest"],
  [guest, user("guest"), "You"],
  [guest, user("ann"), "ann"],
  [alone, user(undefined), "You"],
  [ann, user("a\u202eb"), "ab"],
]) {
  test(`${JSON.stringify(writer)} is ${name} to ${state.identity?.user ?? "somebody without a name"}`, () => assert.equal(writerOf(state, writer), name));
}

test("the owner may take away any annotation, others their own", () => {
  assert.equal(mayWithdraw(ann, user("joe")), true);
  assert.equal(mayWithdraw(guest, user("guest")), true);
  assert.equal(mayWithdraw(guest, user("ann")), false);
  assert.equal(mayWithdraw({ ...guest, shared: { owner: "ann", level: "read" } }, user("guest")), false);
});
