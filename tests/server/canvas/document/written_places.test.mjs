/** Places of the artifact's text in the text that is shown while edits are written. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { toArtifact, toShown } from "../../../../server/canvas/document/written_places.js";

// "one [two] three [four]": two is rewritten as "TWO AND", four as "".
const WRITTEN = [
  { start: 4, end: 11, of: { start: 4, end: 7 } },
  { start: 18, end: 18, of: { start: 14, end: 18 } },
];

for (const [artifact, shown] of [
  [{ start: 0, end: 3 }, { start: 0, end: 3 }],
  [{ start: 8, end: 13 }, { start: 12, end: 17 }],
  [{ start: 19, end: 20 }, { start: 19, end: 20 }],
]) {
  test(`${artifact.start} to ${artifact.end} is shown at ${shown.start}`, () => {
    assert.deepEqual(toShown(artifact, WRITTEN), shown);
    assert.deepEqual(toArtifact(shown, WRITTEN), artifact);
  });
}

test("what is being written is no place of the artifact", () => {
  assert.equal(toArtifact({ start: 2, end: 6 }, WRITTEN), null);
  assert.equal(toShown({ start: 5, end: 6 }, WRITTEN), null);
});
