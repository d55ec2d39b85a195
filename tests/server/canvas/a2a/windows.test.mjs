// How many other windows of the page have streams of their own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createWindows } from "../../../../server/canvas/a2a/windows.js";

/** Windows that show these conversations. */
function opened(conversations, options = {}) {
  return conversations.map((contextId, at) => createWindows({ shown: () => contextId, visible: () => at !== options.hidden, shares: true, ...options }));
}

async function counted(windows) {
  const counts = await Promise.all(windows.map((each) => each.others()));
  windows.forEach((each) => each.close());
  return counts;
}

test("windows of one conversation share their streams, and a start page has none", async () => {
  assert.deepEqual(await counted(opened(["a", "a", "b", "b", "c", null])), [2, 2, 2, 2, 2, 3]);
});

test("a hidden window has no streams", async () => {
  assert.deepEqual(await counted(opened(["a", "b", "c"], { hidden: 1 })), [1, 2, 1]);
});

test("where windows cannot share, each has streams of its own", async () => {
  assert.deepEqual(await counted(opened(["a", "a", "a"], { shares: false })), [2, 2, 2]);
});

test("one alone has no others", async () => assert.deepEqual(await counted(opened(["a"])), [0]));
