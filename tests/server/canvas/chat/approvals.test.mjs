import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { APPROVED, DECLINED, YES, approves } from "../../../../server/canvas/chat/approvals.js";

const SERVER = readFileSync(new URL("../../../../server/wire.py", import.meta.url), "utf8");

test("the page and the server take the same words for a yes", () => {
  const [, words] = SERVER.match(/^YES = \((.*)\)$/m);
  assert.deepEqual(YES, JSON.parse(`[${words}]`));
});

for (const words of [APPROVED, "yes", "Yes, please", "ok.", '{"approved": true}', "true"]) {
  test(`approves: ${words}`, () => assert.equal(approves(words), true));
}

for (const words of [DECLINED, "no", "", "nope", "not yes", '{"approved": false}', "{}", "[1]", "null", "yesterday"]) {
  test(`does not approve: ${words}`, () => assert.equal(approves(words), false));
}
