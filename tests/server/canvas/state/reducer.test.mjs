import assert from "node:assert/strict";
import { test } from "node:test";
import { shownText } from "../../../../server/canvas/state/artifacts.js";
import { INITIAL, isIdentified, reduce, shownArtifact } from "../../../../server/canvas/state/reducer.js";
import { conversation, textOf } from "../../../../server/canvas/state/task.js";

const TURN = "urn:a2a-canvas:turn:v1";
const CANVAS = "urn:a2a-canvas:canvas:v1";
const contextId = "c";
const server = { name: "", description: "", canvas: true, card: {} };

const start = [
  { type: "server", server },
  { type: "context-opened", contextId },
];
const said = (role, text, messageId = text) => ({ messageId, role, parts: [{ text }] });
const task = (fields = {}, canvas = {}) => ({
  task: {
    id: "t",
    contextId,
    status: { state: "TASK_STATE_SUBMITTED" },
    history: [said("ROLE_USER", "write", "m")],
    metadata: { [CANVAS]: { artifacts: {}, openEdits: [], ...canvas }, [TURN]: { epoch: 1, generation: 1 } },
    ...fields,
  },
});
const status = (state, message, metadata = {}) => ({ statusUpdate: { taskId: "t", contextId, status: { state, message }, metadata } });
const working = (metadata) => status("TASK_STATE_WORKING", undefined, metadata);
const label = (text) => status("TASK_STATE_WORKING", said("ROLE_AGENT", text), { [TURN]: { label: true } });
const turn = (event_type, data = {}) => working({ [TURN]: { event_type, data, epoch: 1, generation: 2 } });
const edit = (phase, fields) => working({ [CANVAS]: { edit: { id: "e", artifactId: "a", phase, ...fields } } });
const events = (...list) => list.map((event) => ({ type: "task-event", contextId, stream: "s", event }));
const artifact = (text, version, { append = false, lastChunk = true, id = "a", taskId = "t" } = {}) => ({
  type: "artifact-event",
  contextId,
  event: {
    artifactUpdate: {
      taskId,
      contextId,
      artifact: { artifactId: id, name: append ? "" : `${id}.md`, parts: [{ text, mediaType: append ? "" : "text/markdown" }] },
      append,
      lastChunk,
      metadata: { [CANVAS]: { artifactVersion: version, author: "agent" } },
    },
  },
});
const fold = (...actions) => [...start, ...actions].reduce(reduce, INITIAL);
const shown = (state) => shownText(shownArtifact(state), Object.values(state.edits)).text;

test("the status line is overwritten, and cleared at the end", () => {
  const before = [task(), label("Working…"), label("Writing a.md…")];
  assert.equal(fold(...events(...before)).tasks.t.status, "Writing a.md…");
  const state = fold(...events(...before, turn("completed"), status("TASK_STATE_COMPLETED", said("ROLE_AGENT", "Done."))));
  assert.equal(state.tasks.t.status, "");
  assert.deepEqual(conversation(state.tasks.t).map(textOf), ["write", "Done."]);
});

test("a reply grows, and its text of an earlier round is replaced", () => {
  const round1 = [task(), turn("message_start"), turn("text_delta", { text: "First." })];
  assert.equal(fold(...events(...round1)).tasks.t.reply, "First.");
  const between = [...round1, status("TASK_STATE_WORKING", said("ROLE_AGENT", "First."))];
  assert.deepEqual(conversation(fold(...events(...between)).tasks.t).map(textOf), ["write", "First."]);
  const state = fold(...events(...between, turn("message_start"), turn("text_delta", { text: "Sec" })));
  assert.deepEqual(conversation(state.tasks.t).map(textOf), ["write"]);
  assert.equal(state.tasks.t.reply, "Sec");
});

test("thinking and tool calls leave nothing", () => {
  const before = fold(...events(task()));
  const after = fold(...events(task(), turn("thinking", { content: "hm" }), turn("tool_use_input_delta", { partial_json: "{" })));
  assert.deepEqual(after, before);
});

test("events of a stream that another one has replaced are ignored", () => {
  const late = { type: "task-event", contextId, stream: "old", event: turn("text_delta", { text: "twice" }) };
  assert.equal(fold(...events(task()), late).tasks.t.reply, "");
});

test("events of another conversation are ignored", () => {
  assert.deepEqual(Object.keys(fold({ ...artifact("x", 1), contextId: "other" }).artifacts), []);
});

test("a message is on its way until a task has it", () => {
  const sending = { type: "sending", contextId, message: said("ROLE_USER", "write", "m") };
  assert.deepEqual(Object.keys(fold(sending).outgoing), ["m"]);
  assert.deepEqual(Object.keys(fold(sending, ...events(task())).outgoing), []);
  assert.equal(fold(sending, { type: "not-sent", messageId: "m", error: "No." }).outgoing.m.error, "No.");
});

test("an artifact grows by what is appended", () => {
  const state = fold(artifact("# A", 1, { lastChunk: false }), artifact("\n\nb", 1, { append: true }));
  assert.deepEqual([state.artifacts.a.text, state.artifacts.a.name, state.artifacts.a.open], ["# A\n\nb", "a.md", false]);
});

test("the artifact that changed last is shown, until the user chooses one", () => {
  const two = [artifact("1", 1), artifact("2", 1, { id: "b" })];
  assert.equal(shownArtifact(fold(...two)).artifactId, "b");
  const chosen = [...two, { type: "artifact-shown", artifactId: "a", version: null }, artifact("3", 2, { id: "b" })];
  assert.equal(shownArtifact(fold(...chosen)).artifactId, "a");
  assert.equal(shownArtifact(fold(...chosen, artifact("n", 1, { id: "new", lastChunk: false }))).artifactId, "new");
});

const begin = edit("start", { selection: { start: 4, end: 7 }, unit: "utf16", strategy: "replace", baseVersion: 1 });
const chunk = (text) => edit("chunk", { selection: { start: 4, end: 7 }, chunk: text });
const complete = edit("complete", { selection: { start: 4, end: 7 }, strategy: "replace", baseVersion: 1, updatedContent: "2nd" });

test("an edit is shown in its place, chunk by chunk, and goes with its version", () => {
  const text = artifact("one two three", 1);
  assert.equal(shown(fold(text, ...events(task(), begin))), "one two three");
  assert.equal(shown(fold(text, ...events(task(), begin, chunk("2")))), "one 2 three");
  const whole = [text, ...events(task(), begin, chunk("2"), complete)];
  assert.equal(shown(fold(...whole)), "one 2nd three");
  const state = fold(...whole, artifact("one 2nd three", 2));
  assert.equal(shown(state), "one 2nd three");
  assert.deepEqual(Object.keys(state.edits), []);
});

test("an edit whose version has come before its end is over", () => {
  const state = fold(artifact("one two three", 1), ...events(task(), begin), artifact("one 2nd three", 2), ...events(complete));
  assert.equal(shown(state), "one 2nd three");
  assert.deepEqual(Object.keys(state.edits), []);
});

test("an edit moves with a change before it", () => {
  const state = fold(artifact("one two three", 1), ...events(task(), begin, chunk("2")), artifact("Zero, one two three", 2));
  assert.equal(shown(state), "Zero, one 2 three");
});

test("an aborted edit, and one of a task that has ended, leave nothing", () => {
  const before = [artifact("one two three", 1), ...events(task(), begin, chunk("2"))];
  assert.deepEqual(Object.keys(fold(...before, ...events(edit("abort", {}))).edits), []);
  assert.deepEqual(Object.keys(fold(...before, ...events(status("TASK_STATE_CANCELED"))).edits), []);
});

test("who joins an edit has its beginning", () => {
  const open = { id: "e", artifactId: "a", selection: { start: 4, end: 7 }, unit: "utf16", strategy: "replace", baseVersion: 1, text: "2" };
  const state = fold(artifact("one two three", 1), ...events(task({}, { openEdits: [open] }), chunk("nd")));
  assert.equal(shown(state), "one 2nd three");
});

test("a selection moves with changes elsewhere, and is dropped where it is touched", () => {
  const selection = { artifactId: "a", version: 1, start: 4, end: 7, lineStart: 1, lineEnd: 1, text: "two" };
  const before = [artifact("one two three", 1), { type: "selected", selection }];
  const moved = fold(...before, artifact("0\none two three", 2)).selection;
  assert.deepEqual(moved, { ...selection, version: 2, start: 6, end: 9, lineStart: 2, lineEnd: 2 });
  assert.equal(fold(...before, artifact("one 2 three", 2)).selection, null);
});

test("a selection between two changes of one version stays with its words", () => {
  const text = "The tide comes in.\nThe crabs hide.\nThe stars wait.\n";
  const selection = { artifactId: "a", version: 1, start: 19, end: 34, lineStart: 2, lineEnd: 2, text: "The crabs hide." };
  const next = "Slowly the tide comes in.\nThe crabs hide.\nThe sea stars wait.\n";
  const moved = fold(artifact(text, 1), { type: "selected", selection }, artifact(next, 2)).selection;
  assert.equal(next.slice(moved.start, moved.end), selection.text);
});

test("what was said of a conversation goes with it", () => {
  const notice = (contextId) => ({ type: "notice", kind: "info", text: "Renamed.", contextId });
  const told = [notice("c1"), notice("c2"), notice(undefined)].reduce(reduce, INITIAL);
  const { notices } = reduce(told, { type: "context-removed", contextId: "c1" });
  assert.deepEqual(notices.map((each) => each.contextId), ["c2", undefined]);
});

test("a conversation that the server gives another id stays as it is, with what is on its way", () => {
  const message = said("ROLE_USER", "write", "m");
  const before = [{ type: "sending", contextId, message }, { type: "sending", contextId: "another", message: { ...message, messageId: "n" } }];
  const state = fold(...before, { type: "context-renamed", from: contextId, to: "theirs" });
  assert.deepEqual([state.contextId, state.givenId], ["theirs", contextId]);
  assert.deepEqual(Object.values(state.outgoing).map((each) => each.contextId), ["theirs", "another"]);
  const next = [{ type: "task-event", contextId: "theirs", stream: "s", event: task({ contextId: "theirs" }) }].reduce(reduce, state);
  assert.deepEqual([Object.keys(next.tasks), Object.keys(next.outgoing)], [["t"], ["n"]]);
});

test("a conversation that was left is renamed where it waits", () => {
  const message = said("ROLE_USER", "write", "m");
  const left = fold({ type: "sending", contextId, message }, { type: "context-opened", contextId: "another" });
  const state = reduce(left, { type: "context-renamed", from: contextId, to: "theirs" });
  assert.deepEqual([state.contextId, state.givenId, state.outgoing.m.contextId], ["another", null, "theirs"]);
});

test("what failed in a conversation goes when another one is opened, what failed in the page stays", () => {
  const failed = (contextId) => ({ type: "notice", kind: "error", text: "It failed.", contextId });
  const told = [{ type: "context-opened", contextId: "c1" }, failed("c1"), failed(undefined)].reduce(reduce, INITIAL);
  const { notices } = reduce(told, { type: "context-opened", contextId: "c2" });
  assert.deepEqual(notices.map((each) => each.contextId), [undefined]);
});

test("of the versions that a task has made the newest is kept, for each document", () => {
  const versions = [{ number: 1, taskId: "t1" }, { number: 2, taskId: "t1" }, { number: 3, taskId: "t2" }];
  const open = reduce(INITIAL, { type: "context-opened", contextId });
  const read = reduce(open, { type: "versions", contextId, artifactId: "a", versions });
  assert.deepEqual(structuredClone(read.made), { t1: { a: 2 }, t2: { a: 3 } });
  assert.deepEqual(structuredClone(reduce(read, { type: "versions", contextId, artifactId: "b", versions: versions.slice(2) }).made.t2), { a: 3, b: 3 });
  assert.equal(reduce(open, { type: "versions", contextId: "another", artifactId: "a", versions }), open);
});

test("a task that made a document keeps it when another one changes it", () => {
  const state = fold(artifact("one", 1, { taskId: "t1" }), artifact("ONE", 2, { taskId: "t2" }), artifact("one!", 3, { taskId: "t3" }));
  assert.deepEqual(structuredClone(state.made), { t1: { a: 1 }, t2: { a: 2 } });
});

test("a draft that another task took over was never a version", () => {
  const state = fold(artifact("on", 1, { taskId: "t1", lastChunk: false }), artifact("ONE", 1, { taskId: "t2" }));
  assert.deepEqual(structuredClone(state.made), {});
});

const offer = (version, artifactId = "a") => ({ type: "notice", kind: "info", text: "Edited.", of: { artifactId, version } });
const offers = (...actions) => fold(...actions).notices.map(({ of }) => of.version);

test("what is said of a version goes when another one is current", () => {
  assert.deepEqual(offers(artifact("ONE", 2), offer(2)), [2]);
  assert.deepEqual(offers(artifact("ONE", 2), offer(2), artifact("one", 1)), []);
  assert.deepEqual(offers(artifact("ONE", 2), offer(2), artifact("one!", 3)), []);
  assert.deepEqual(offers(artifact("ONE", 2), offer(2), artifact("one", 1, { id: "b" })), [2]);
});

test("what is said of a version may come before it, and not after the next one", () => {
  assert.deepEqual(offers(artifact("one", 1), offer(2), artifact("ONE", 2)), [2]);
  assert.deepEqual(offers(artifact("one!", 3), offer(2)), []);
});

test("an address without a conversation has the start page, and until one is opened it is not known", () => {
  assert.equal(INITIAL.loaded, false);
  assert.equal(reduce(INITIAL, { type: "context-opened", contextId: null }).loaded, true);
});

test("a text without end is kept up to 20 million characters, and says so", () => {
  const piece = "x".repeat(15_000_000);
  const state = fold(artifact(piece, 1, { lastChunk: false }), artifact(piece, 1, { append: true, lastChunk: false }), artifact("end", 1, { append: true }));
  assert.equal(state.artifacts.a.text.length, 20_000_000);
  assert.equal(state.artifacts.a.cut, true);
  assert.equal(reduce(state, artifact("whole", 2)).artifacts.a.cut, false);
});

test("who the user is, is known once the server has said it, or if it asks nobody", () => {
  const served = (card) => reduce(INITIAL, { type: "server", server: { name: "", description: "", canvas: true, card } });
  const guarded = served({ securitySchemes: { key: {} } });
  const signedIn = reduce(guarded, { type: "identity", identity: { signedIn: true, required: true, user: "ann" } });
  assert.deepEqual([INITIAL, guarded, signedIn, served({})].map(isIdentified), [false, false, true, true]);
});
