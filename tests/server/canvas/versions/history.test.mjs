import assert from "node:assert/strict";
import { test } from "node:test";
import { authorOf, changeWords, counterpartOf, hourOf, requestOf, stepsOf, timeOf } from "../../../../server/canvas/versions/history.js";

/** Versions by their parents; `current` is a number. */
const line = (parents, current) => parents.map((parent, at) => ({ number: at + 1, parent, current: at + 1 === current }));

test("the first version cannot be undone, the newest not redone", () => {
  assert.deepEqual(stepsOf([]), { undo: false, redo: false });
  assert.deepEqual(stepsOf(line([0], 1)), { undo: false, redo: false });
  assert.deepEqual(stepsOf(line([0, 1], 2)), { undo: true, redo: false });
  assert.deepEqual(stepsOf(line([0, 1], 1)), { undo: false, redo: true });
  assert.deepEqual(stepsOf(line([0, 1, 1], 3)), { undo: true, redo: false });
});

test("a version whose content was removed cannot be gone to", () => {
  const versions = line([0, 1, 2], 2);
  const without = (number) => versions.map((version) => ({ ...version, pruned: version.number === number }));
  assert.deepEqual(stepsOf(without(1)), { undo: false, redo: true });
  assert.deepEqual(stepsOf(without(3)), { undo: true, redo: false });
  assert.deepEqual(stepsOf([]), { undo: false, redo: false });
});

test("the current version is compared with what it was made of, an old one with the current", () => {
  assert.equal(counterpartOf(line([0, 1, 1], 3), 3), 1);
  assert.equal(counterpartOf(line([0, 1, 1], 3), 2), 3);
});

test("the first version, if it is the current one, is compared with the newest", () => {
  assert.equal(counterpartOf(line([0, 1, 2], 1), 1), 3);
  assert.equal(counterpartOf(line([0], 1), 1), 1);
});

test("a version says in words what it has changed, and in which section if there is one", () => {
  const headings = [{ text: "Tides", start: 0 }, { text: "Safety", start: 16 }];
  const text = "# Tides\n\nEbb.\n\n# Safety\n\nMind the waves.\n";
  assert.equal(changeWords(text.replace("Mind the ", "See "), text, headings), "+2 −1 words in Safety");
  assert.equal(changeWords(text.replace("Mind", "Mindful"), text, headings), "+1 −1 words in Safety");
  assert.equal(changeWords(text.replace("Ebb", "Flow").replace("waves", "sea"), text, headings), "+2 −2 words");
  assert.equal(changeWords("Ebb", "Ebb flow", []), "+1 word");
  assert.equal(changeWords(text, text, headings), "");
});

test("versions of an hour have the same hour", () => {
  const [now, at] = [new Date(2026, 0, 2, 12), (hour, minute) => new Date(2026, 0, 2, hour, minute).toISOString()];
  assert.equal(hourOf(at(9, 5), now), hourOf(at(9, 59), now));
  assert.notEqual(hourOf(at(9, 59), now), hourOf(at(10, 0), now));
  assert.equal(hourOf(undefined, now), "");
});

test("a version of today is told with its time alone", () => {
  const now = new Date(2026, 0, 2, 12);
  assert.ok(timeOf(new Date(2026, 0, 1, 9, 5).toISOString(), now).length > timeOf(now.toISOString(), now).length);
  assert.equal(timeOf(undefined, now), "");
});

test("a version is told with what was asked for, or as the changes of the user", () => {
  assert.equal(requestOf({ author: "agent", request: "add a section" }), "add a section");
  assert.equal(requestOf({ author: "agent" }), "Written");
  assert.equal(requestOf({ author: "user", request: "put" }), "Your changes");
  assert.equal(requestOf({ author: "user" }), "Your changes");
  assert.equal(requestOf({ author: "user", request: "restore" }), "Restored");
  assert.equal(requestOf({ author: "user", request: "shorter, please" }), "shorter, please");
});

test("a version is told with the user who made it or for whom the agent did, if there are several", () => {
  assert.equal(authorOf({ author: "user" }), "You");
  assert.equal(authorOf({ author: "agent" }), "Agent");
  assert.equal(authorOf({ author: "user", by: "ann" }), "ann");
  assert.equal(authorOf({ author: "user", by: "ann", via: "Cursor" }), "ann via Cursor");
  assert.equal(authorOf({ author: "agent", via: "Cursor" }), "Agent via Cursor");
  assert.equal(authorOf({ author: "agent", by: "ann" }), "Agent for ann");
  assert.equal(authorOf({ author: "user", by: "shared" }), "You");
});
