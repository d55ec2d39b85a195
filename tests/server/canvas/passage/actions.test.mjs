// Which quick actions a passage has: those of the agent card, else those of a language model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { actionsFor, rewritesPassages } from "../../../../server/canvas/passage/actions.js";

const PROSE = { name: "tea.md", mediaType: "text/markdown" };
const CODE = { name: "tea.py", mediaType: "text/x-python" };
const card = (quickActions) => ({ capabilities: { extensions: [{ uri: "urn:a2a-canvas:canvas:v1", params: { quickActions } }] } });
const labels = (artifact, told) => actionsFor(artifact, told).map(({ label }) => label);

test("without a word of the card they are those of a language model, for prose and for code", () => {
  assert.ok(labels(PROSE, { capabilities: { extensions: [{ uri: "urn:a2a-canvas:canvas:v1" }] } }).includes("Shorter"));
  assert.ok(labels(CODE).includes("Add types"));
});

test("those of the card take their place, each for what it is for", () => {
  const told = card([{ label: "List", instruction: "List it", for: "prose" }, { label: "Delete", instruction: "Delete it" }]);
  assert.deepEqual(labels(PROSE, told), ["List", "Delete"]);
  assert.deepEqual(labels(CODE, told), ["Delete"]);
  assert.deepEqual(labels(PROSE, card([])), []);
});

test("what is no action is left out", () => {
  assert.deepEqual(labels(PROSE, card([null, {}, { label: "", instruction: "x" }, { label: 1, instruction: "x" }, { label: "Empty", instruction: " " }])), []);
});

test("passages are rewritten unless the card says that edits are off", () => {
  const told = (params) => ({ capabilities: { extensions: [{ uri: "urn:a2a-canvas:canvas:v1", ...params }] } });
  assert.ok([undefined, {}, told({}), told({ params: {} }), told({ params: { edits: true } })].every(rewritesPassages));
  assert.ok(!rewritesPassages(told({ params: { edits: false, quickActions: [] } })));
});
