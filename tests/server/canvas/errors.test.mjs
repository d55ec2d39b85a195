import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestFailed } from "../../../server/canvas/a2a/request_failed.js";
import { OWN_WORDS, sentence } from "../../../server/canvas/errors.js";

/** The codes whose words the page shows as they are. */
const SERVERS_WORDS = [401, 403, 409, 413, 422, 429, 500, 501, 503, -32000, -32013, -32043, -32603];
const SAID = "A string has half of a \\uD800-\\uDFFF pair; send both halves";

test("words for developers of clients are not shown to users", () => {
  for (const code of OWN_WORDS.keys()) {
    const shown = sentence(new RequestFailed(SAID, code));
    assert.match(shown, /^[A-Z][a-z ]+.*\.$/, `${code}`);
    assert.notEqual(shown, SAID, `${code}`);
  }
});

test("what the server says of access, limits and failures is shown", () => {
  for (const code of [...SERVERS_WORDS, 0]) {
    assert.equal(sentence(new RequestFailed("Try again in 3 s.", code)), "Try again in 3 s.");
  }
  assert.equal(sentence(new Error("No connection.")), "No connection.");
});

test("a dialog says in words of its own what the server could not use", () => {
  assert.equal(sentence(new RequestFailed(SAID, 400), "Invite somebody else."), "Invite somebody else.");
  assert.equal(sentence(new RequestFailed(SAID, 404), "Invite somebody else."), "This no longer exists.");
});
