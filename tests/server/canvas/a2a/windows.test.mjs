// How many windows of the page are shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createWindows } from "../../../../server/canvas/a2a/windows.js";

test("a window counts the others that are shown", async () => {
  const shown = [true, true, false, true].map((each) => createWindows({ visible: () => each }));
  assert.equal(await shown[0].others(), 2);
  assert.equal(await shown[2].others(), 3);
  shown.forEach((each) => each.close());
});

test("one alone has no others", async () => {
  const alone = createWindows({ visible: () => true });
  assert.equal(await alone.others(), 0);
  alone.close();
});
