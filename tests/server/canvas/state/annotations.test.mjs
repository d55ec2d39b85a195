// Comments and suggestions as the state has them: read, told of by events, moved with their passages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { annotationsOf, isBehind, newsOf, notesOf, suggestionBeside } from "../../../../server/canvas/state/annotations.js";
import { shownText } from "../../../../server/canvas/state/artifacts.js";
import { INITIAL, mayComment, mayEdit, reduce, shownArtifact } from "../../../../server/canvas/state/reducer.js";

const CANVAS = "urn:a2a-canvas:canvas:v1";
const contextId = "c";
const TEXT = "One two three four.\n";

const artifact = (text, version, { lastChunk = true, append = false, id = "a" } = {}) => ({
  type: "artifact-event",
  contextId,
  event: {
    artifactUpdate: {
      taskId: "t",
      artifact: { artifactId: id, name: "a.md", parts: [{ text }] },
      append,
      lastChunk,
      metadata: { [CANVAS]: { artifactVersion: version, author: "agent" } },
    },
  },
});
const comment = (annotationId, more = {}) => ({
  annotationId, artifactId: "a", number: 1, kind: "comment", state: "open", author: "user", at: "2026-01-01T00:00:00Z", taskId: "t",
  baseVersion: 1, quote: { exact: "two", prefix: "", suffix: "" }, thread: [{ author: "user", at: "2026-01-01T00:00:00Z", text: "Why?" }], ...more,
});
const suggestion = (annotationId, replacement, more = {}) => comment(annotationId, { kind: "suggestion", replacement, thread: [], ...more });
const placed = (annotation, start, end, version = 1) => ({ ...annotation, place: { selection: { start, end, unit: "utf16" }, version } });
const read = (annotations, news = 1) => ({ type: "annotations-read", contextId, artifactId: "a", annotations, news });
const told = (annotations, removed = [], taskId = "t") => ({ type: "annotations-changed", contextId, event: { taskId, artifactId: "a", annotations, removed } });
const start = [{ type: "server", server: { name: "", canvas: true, card: {} } }, { type: "context-opened", contextId }, artifact(TEXT, 1)];
const fold = (...actions) => [...start, ...actions].reduce(reduce, INITIAL);
const places = (state) => annotationsOf(state, "a").map(({ place }) => place && [place.start, place.end]);
const states = (state) => annotationsOf(state, "a").map(({ state: shown }) => shown);

test("the annotations of an artifact have to be read until they are", () => {
  assert.equal(isBehind(fold().annotations, "a"), true);
  const state = fold(read([placed(comment("n"), 4, 7)]));
  assert.equal(isBehind(state.annotations, "a"), false);
  assert.deepEqual(places(state), [[4, 7]]);
});

for (const [what, action] of [
  ["an event", told([comment("n")])],
  ["a new version", artifact("Zero. " + TEXT, 2)],
  ["the stream has begun again", { type: "subscribed", contextId }],
]) {
  test(`they have to be read again after ${what}`, () => {
    assert.equal(isBehind(fold(read([]), action).annotations, "a"), true);
  });
}

test("what comes while they are read is read afterwards", () => {
  const before = fold(read([]));
  const state = [told([comment("n")]), read([], newsOf(before.annotations, "a"))].reduce(reduce, before);
  assert.equal(isBehind(state.annotations, "a"), true);
});

test("what could not be read changes nothing", () => {
  const state = fold(read([placed(comment("n"), 4, 7)]), read(null));
  assert.deepEqual(places(state), [[4, 7]]);
});

test("a passage moves with the text, and is not marked where it was changed itself", () => {
  const state = fold(read([placed(comment("n"), 4, 7), placed(comment("m"), 14, 18)]));
  assert.deepEqual(places(reduce(state, artifact("Zero. " + TEXT, 2))), [[10, 13], [20, 24]]);
  assert.deepEqual(places(reduce(state, artifact(TEXT.replace("two", "2"), 2))), [null, [12, 16]]);
});

test("places of a version that is not here yet are not taken, those that are known stay", () => {
  const state = fold(read([placed(comment("n"), 4, 7)]), read([placed(comment("n"), 10, 13, 2), placed(comment("m"), 0, 3, 2)]));
  assert.deepEqual(places(state), [[4, 7], null]);
});

test("an event changes and adds what it has, takes away what was withdrawn, and leaves the places", () => {
  const before = fold(read([placed(comment("n"), 4, 7), placed(comment("m"), 0, 3)]));
  const state = reduce(before, told([comment("n", { state: "resolved" }), comment("new")], ["m"]));
  assert.deepEqual(annotationsOf(state, "a").map(({ annotationId, state: shown }) => [annotationId, shown]), [["n", "resolved"], ["new", "open"]]);
  assert.deepEqual(places(state), [[4, 7], null]);
});

test("an event says what is stored: what is stale stays so until it is read", () => {
  const before = fold(read([comment("n", { state: "stale" })]));
  assert.deepEqual(states(reduce(before, told([comment("n")]))), ["stale"]);
  assert.deepEqual(states(reduce(before, told([comment("n", { state: "resolved" })]))), ["resolved"]);
});

test("a task tells of annotations as the stream of the context does", () => {
  const task = { id: "t", contextId, status: { state: "TASK_STATE_WORKING" }, history: [] };
  const update = { taskId: "t", contextId, status: { state: "TASK_STATE_WORKING" }, metadata: { [CANVAS]: { annotations: { artifactId: "a", annotations: [comment("n")], removed: [] } } } };
  const events = [{ task }, { statusUpdate: update }].map((event) => ({ type: "task-event", contextId, stream: "s", event }));
  assert.deepEqual(annotationsOf(fold(...events), "a").map(({ annotationId }) => annotationId), ["n"]);
});

test("an operation whose message says nothing is known as one", () => {
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "" }], metadata: { [CANVAS]: { op: "accept", artifactId: "a" } } };
  const task = { id: "t", contextId, status: { state: "TASK_STATE_WORKING" }, history: [message] };
  assert.equal(fold({ type: "task-event", contextId, stream: "s", event: { task } }).tasks.t.operation.op, "accept");
});

for (const id of ["__proto__", "constructor", "toString"]) {
  test(`an artifact may have the id ${id}`, () => {
    const state = fold(artifact(TEXT, 1, { id }), { ...read([placed(comment("n"), 0, 3)]), artifactId: id });
    assert.equal(annotationsOf(state, id).length, 1);
    assert.equal(annotationsOf(fold(), id).length, 0);
  });
}

// ------------------------------------------------------------------------------------------------------- in the text

test("what is open and has a place is marked in the text; the chosen one lies over the others", () => {
  const items = [placed(suggestion("s", "2"), 4, 7), placed(comment("n"), 8, 13), comment("gone"), placed(suggestion("done", "x", { state: "accepted" }), 0, 3)];
  const state = fold(read(items), { type: "annotation-chosen", annotationId: "s" });
  assert.deepEqual(notesOf(state, "a").map(({ id, kind, text, chosen }) => [id, kind, text, chosen]), [["n", "comment", "", false], ["s", "suggestion", "2", true]]);
});

const edit = (phase, fields) => ({
  type: "task-event",
  contextId,
  stream: "s",
  event: { statusUpdate: { taskId: "t", contextId, status: { state: "TASK_STATE_WORKING" }, metadata: { [CANVAS]: { edit: { id: "e", artifactId: "a", phase, ...fields } } } } },
});
const suggesting = [
  { type: "task-event", contextId, stream: "s", event: { task: { id: "t", contextId, status: { state: "TASK_STATE_WORKING" }, history: [] } } },
  edit("start", { mode: "suggest", selection: { start: 4, end: 7 }, strategy: "replace", baseVersion: 1 }),
  edit("chunk", { chunk: "tw" }),
];

test("a suggestion grows beside the text, which stays as it is", () => {
  const state = fold(...suggesting);
  assert.deepEqual(notesOf(state, "a").map(({ text, growing }) => [text, growing]), [["tw", true]]);
  assert.equal(shownText(shownArtifact(state), Object.values(state.edits)).text, TEXT);
});

test("a suggestion that was written stays until the one that is kept has its place: nothing flickers", () => {
  const end = { type: "task-event", contextId, stream: "s", event: { statusUpdate: { taskId: "t", contextId, status: { state: "TASK_STATE_COMPLETED" } } } };
  const whole = [...suggesting, edit("chunk", { chunk: "ain" }), edit("suggested", { selection: { start: 4, end: 7 }, annotationId: "s" })];
  const kept = [told([suggestion("s", "twain")]), end, read([placed(suggestion("s", "twain"), 4, 7)])];
  kept.map((_, at) => fold(...whole, ...kept.slice(0, at + 1))).forEach((state) => assert.deepEqual(notesOf(state, "a").map(({ text }) => text), ["twain"]));
  assert.deepEqual(Object.keys(fold(...whole, ...kept).edits), []);
});

test("a suggestion that was cut off is gone with its task", () => {
  const end = { type: "task-event", contextId, stream: "s", event: { statusUpdate: { taskId: "t", contextId, status: { state: "TASK_STATE_CANCELED" } } } };
  assert.deepEqual(notesOf(fold(...suggesting, end), "a"), []);
  assert.deepEqual(notesOf(fold(...suggesting, edit("abort", {})), "a"), []);
});

// ---------------------------------------------------------------------------------------------------- what is gone to

test("the suggestions are gone through in the order of the text, around its end", () => {
  const items = fold(read([placed(suggestion("late", "x"), 14, 18), placed(comment("n"), 4, 7), placed(suggestion("early", "y"), 0, 3), suggestion("gone", "z")])).annotations.a.items;
  const go = (from, step) => suggestionBeside(items, from, step)?.annotationId;
  assert.deepEqual([go(null, 1), go("early", 1), go("late", 1), go(null, -1), go("early", -1)], ["early", "late", "early", "late", "late"]);
  assert.equal(suggestionBeside([], null, 1), null);
});

// ------------------------------------------------------------------------------------------------ a rewritten passage

const outcome = { artifactId: "a", version: 2, start: 4, end: 7, old: "two", instruction: "shorter", said: "" };

test("what was rewritten is marked until another version is current, or something is selected", () => {
  const state = fold(artifact(TEXT.replace("two", "2.0"), 2), { type: "rewritten", outcome });
  assert.deepEqual(notesOf(state, "a").map(({ kind }) => kind), ["rewritten"]);
  const selection = { artifactId: "a", version: 2, start: 0, end: 3, lineStart: 1, lineEnd: 1, text: "One" };
  for (const action of [artifact(TEXT, 1), artifact(TEXT, 3), { type: "selected", selection }, { type: "rewritten", outcome: null }]) {
    assert.equal(reduce(state, action).outcome, null);
  }
  assert.equal(reduce(state, artifact("x", 1, { id: "b" })).outcome, outcome);
});

// ----------------------------------------------------------------------------------------------------------- levels

for (const [level, edits, comments] of [["read", false, false], ["comment", false, true], ["edit", true, true], ["approve", true, true]]) {
  test(`who has a conversation to ${level} ${edits ? "edits" : comments ? "comments" : "reads"}`, () => {
    const state = fold({ type: "shared", contextId, shared: { owner: "ann", level } });
    assert.deepEqual([mayEdit(state), mayComment(state)], [edits, comments]);
  });
}
