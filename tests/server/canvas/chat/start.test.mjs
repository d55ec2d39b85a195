// The examples of a new conversation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { examplesOf } from "../../../../server/canvas/chat/start.js";

test("they are those of the agent's own skills, three at most", () => {
  const skills = [{ id: "notes", examples: ["Notes for 2.1", 7, " "] }, { id: "x" }, { id: "log", examples: ["a", "b", "c"] }];
  assert.deepEqual(examplesOf({ skills }), ["Notes for 2.1", "a", "b"]);
});

test("the skills that every agent has have none: most of theirs need a document", () => {
  assert.deepEqual(examplesOf({ skills: [{ id: "write-artifacts", examples: ["Add a section"] }] }), []);
  assert.deepEqual(examplesOf(null), []);
});
