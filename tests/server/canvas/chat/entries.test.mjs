import assert from "node:assert/strict";
import { test } from "node:test";
import { entriesOf, runningTask, waitingTask } from "../../../../server/canvas/chat/entries.js";
import { INITIAL } from "../../../../server/canvas/state/reducer.js";
import { CANVAS } from "../../../../server/canvas/state/task.js";

const says = (messageId, role, text, metadata) => ({ messageId, role: `ROLE_${role}`, parts: [{ text }], metadata });
const ask = says("m1", "USER", "Write a note");
const task = (fields) => ({ taskId: "t1", state: "completed", messages: [ask], status: "", reply: "", artifacts: {}, operation: null, refused: null, ...fields });
const state = (...tasks) => ({ ...INITIAL, contextId: "c", tasks: Object.fromEntries(tasks.map((each) => [each.taskId, each])) });
const kinds = (...tasks) => entriesOf(state(...tasks)).map((entry) => [entry.kind, entry.text ?? entry.what ?? entry.message?.parts[0].text]);

test("a new conversation has nothing", () => assert.deepEqual(entriesOf(INITIAL), []));

test("while it works there is one status line, and it is the last", () => {
  assert.deepEqual(kinds(task({ state: "working", status: "Writing note.md…", artifacts: { note: 1 } })), [
    ["user", "Write a note"],
    ["changed", undefined],
    ["status", "Writing note.md…"],
  ]);
});

test("a task in the queue says its place", () => {
  const [, status] = entriesOf(state(task({ state: "submitted", status: "Waiting: number 3 in the queue…" })));
  assert.deepEqual([status.text, status.queued], ["Waiting: number 3 in the queue…", true]);
});

test("the reply that is written takes the place of what the round before said", () => {
  const messages = [ask, says("m2", "AGENT", "I am writing it.")];
  assert.deepEqual(kinds(task({ state: "working", messages })).slice(1), [["agent", "I am writing it."], ["status", "Working…"]]);
  assert.deepEqual(kinds(task({ state: "working", messages, reply: "The no", status: "Writing reply…" })).slice(1), [
    ["agent", "The no"],
    ["status", "Writing reply…"],
  ]);
});

test("at the end only the reply remains", () => {
  const messages = [ask, says("m2", "AGENT", "I am writing it."), says("m3", "AGENT", "Done.")];
  assert.deepEqual(kinds(task({ messages })), [["user", "Write a note"], ["agent", "Done."]]);
});

test("a question stays in the thread when it is answered", () => {
  const asked = [ask, says("m2", "AGENT", "Which: tea or rain?")];
  const [, question] = entriesOf(state(task({ state: "input-required", messages: asked })));
  assert.deepEqual([question.kind, question.text, question.choices], ["question", "Which: tea or rain?", ["tea", "rain"]]);
  assert.deepEqual(kinds(task({ messages: [...asked, says("m3", "USER", "tea"), says("m4", "AGENT", "Done.")] })).slice(1), [
    ["agent", "Which: tea or rain?"],
    ["user", "tea"],
    ["agent", "Done."],
  ]);
});

test("an approval is no question", () => {
  const [, asked] = entriesOf(state(task({ state: "auth-required", messages: [ask, says("m2", "AGENT", "May I?")] })));
  assert.deepEqual([asked.kind, asked.permission], ["question", true]);
});

for (const [ended, kind] of [["failed", "failed"], ["rejected", "refused"]]) {
  test(`a task that has ${ended} says why`, () => {
    assert.deepEqual(kinds(task({ state: ended, messages: [ask, says("m2", "AGENT", "Because.")] })).at(-1), [kind, "Because."]);
  });
}

test("a task that failed without a word says that", () => assert.equal(kinds(task({ state: "failed" })).at(-1)[0], "failed"));

test("only the newest task can be asked for again", () => {
  const failed = (taskId) => task({ taskId, state: "failed", messages: [says("m1", "USER", `Write ${taskId}`), says("m2", "AGENT", "Because.")] });
  const ends = entriesOf(state(failed("a"), failed("b"))).filter((entry) => entry.kind === "failed");
  assert.deepEqual(ends.map((entry) => entry.newest), [false, true]);
});

test("a request that failed and is made again is shown once, unless it has changed something", () => {
  const failed = (fields) => task({ taskId: "a", state: "failed", messages: [ask, says("m2", "AGENT", "No.")], ...fields });
  const next = (text) => task({ taskId: "b", messages: [says("m3", "USER", text), says("m4", "AGENT", "Here.")] });
  assert.deepEqual(kinds(failed(), next("Write a note")), [["user", "Write a note"], ["agent", "Here."]]);
  assert.equal(kinds(failed(), next("Write a poem")).length, 4);
  assert.equal(kinds(failed({ artifacts: { note: 1 } }), next("Write a note")).length, 5);
  const sent = { message: says("m3", "USER", "Write a note"), contextId: "c" };
  assert.deepEqual(entriesOf({ ...state(failed()), outgoing: { m3: sent } }).map(({ kind }) => kind), ["user"]);
});

test("a task that was stopped keeps what it said", () => {
  assert.deepEqual(kinds(task({ state: "canceled", messages: [ask, says("m2", "AGENT", "I am writing it.")] })), [
    ["user", "Write a note"],
    ["agent", "I am writing it."],
    ["stopped", "Stopped."],
  ]);
});

test("an operation is a line with its outcome", () => {
  const operation = { op: "edit", artifactId: "note", selection: { lineStart: 3, lineEnd: 4 } };
  const messages = [says("m1", "USER", "make it shorter", { [CANVAS]: operation }), says("m2", "AGENT", "Version 2 is saved.")];
  const [line, changed] = entriesOf(state(task({ operation, messages, artifacts: { note: 2 } })));
  assert.deepEqual([line.what, line.detail, line.outcome, changed], ["Edit of lines 3–4", "make it shorter", "Version 2 is saved.", undefined]);
});

test("of edits in a row the newest is shown, and those before it are folded", () => {
  const edit = (taskId, op = "edit", fields = {}) => task({ taskId, operation: { op, artifactId: "a", ...fields }, messages: [says(taskId, "USER", op)] });
  const edits = (...tasks) => entriesOf(state(...tasks)).map((entry) => [entry.kind, entry.text ?? entry.what]);
  assert.deepEqual(edits(edit("t1"), edit("t2", "undo")), [["operation", "Edit of a"], ["operation", "Undo in a"]]);
  assert.deepEqual(edits(edit("t1"), edit("t2", "undo"), edit("t3", "redo"), edit("t4", "put")), [["edits", "3 edits"], ["operation", "Your changes to a"]]);
  const asked = task({ taskId: "t3", messages: [says("m", "USER", "Write")] });
  assert.deepEqual(edits(edit("t1"), edit("t2"), asked, edit("t4"), edit("t5"), edit("t6")).map(([kind]) => kind), ["operation", "operation", "user", "edits", "operation"]);
  const added = (id) => edit(id, "put", { name: "a" });
  assert.deepEqual(edits(added("t1"), added("t2"), added("t3")).map(([kind]) => kind), ["operation"]);
});

test("what was typed is one line for each document", () => {
  const put = (taskId, artifactId) => task({ taskId, operation: { op: "put", artifactId }, messages: [says(taskId, "USER", "put")] });
  const lines = entriesOf(state(put("t1", "a"), put("t2", "a"), put("t3", "a"), put("t4", "b")));
  assert.deepEqual(lines.map(({ what, outcome }) => [what, outcome]), [["Your changes to a", "Saved 3 times."], ["Your changes to b", ""]]);
});

for (const op of ["put", "undo", "redo", "restore"]) {
  test(`a refused ${op} is reported where it was asked for, and not in the thread`, () => {
    const messages = [says("t1", "USER", op), says("t1b", "AGENT", "Another version is current.")];
    assert.deepEqual(entriesOf(state(task({ state: "rejected", operation: { op, artifactId: "a" }, messages }))), []);
  });
}

test("a refused edit can be asked for again", () => {
  const messages = [says("t1", "USER", "make it rhyme"), says("t1b", "AGENT", "I found nothing to change in this passage.")];
  const operation = { op: "edit", artifactId: "a" };
  assert.deepEqual(kinds(task({ state: "rejected", operation, messages })).map(([kind]) => kind), ["operation", "refused"]);
});

test("a message on its way is shown, and why it was not sent", () => {
  const outgoing = (error) => ({ ...INITIAL, contextId: "c", outgoing: { m9: { message: says("m9", "USER", "Hello"), contextId: "c", error } } });
  assert.deepEqual(entriesOf(outgoing("")).map((entry) => [entry.kind, entry.sending]), [["user", true]]);
  assert.deepEqual(entriesOf(outgoing("Nobody answers.")).map((entry) => [entry.kind, entry.text]), [["user", undefined], ["not-sent", "Nobody answers."]]);
});

test("the newest task that works is the one to stop, and the newest question the one to answer", () => {
  const tasks = state(task({ taskId: "a", state: "working" }), task({ taskId: "b", state: "input-required" }), task({ taskId: "c" }));
  assert.deepEqual([runningTask(tasks)?.taskId, waitingTask(tasks)?.taskId], ["a", "b"]);
  assert.equal(runningTask(state(task({ state: "working", operation: { op: "put", artifactId: "a" } }))), undefined);
});

test("each task that made a version of a document links to it, also when it was read from a list", () => {
  const doc = { artifactId: "note", name: "note.md", version: 3, taskId: "t3" };
  const tasks = ["t1", "t2", "t3"].map((taskId) => task({ taskId }));
  const read = { ...state(...tasks), artifacts: { note: doc }, made: { t1: { note: 1 }, t2: { note: 2 }, t3: { note: 3 } } };
  const links = entriesOf(read).filter((entry) => entry.kind === "changed");
  assert.deepEqual(links.map((entry) => entry.changed.map(({ name, version }) => [name, version])), [[["note.md", 1]], [["note.md", 2]], [["note.md", 3]]]);
});

const calls = [{ toolCallId: "T1", tool: "delete", input: { path: "a.txt" } }];
const wants = says("m2", "AGENT", 'May I run delete(path="a.txt")? Answer yes or no.', { [CANVAS]: { approvals: calls } });
const approval = (...tasks) => entriesOf(state(...tasks)).find((entry) => entry.kind === "approval");

test("a call that waits for approval is shown as what it is", () => {
  const asked = approval(task({ state: "input-required", messages: [ask, wants] }));
  assert.deepEqual([asked.answer, asked.calls, asked.sending], ["asked", [{ tool: "delete", input: { path: "a.txt" } }], false]);
});

for (const [level, answer] of [["read", "waits"], ["edit", "waits"], ["approve", "asked"]]) {
  test(`where somebody shares to ${level}, an approval is ${answer}`, () => {
    const waiting = state(task({ state: "input-required", messages: [ask, wants] }));
    const [, found] = entriesOf({ ...waiting, shared: { owner: "ann", level } });
    assert.equal(found.answer, answer);
  });
}

test("while the answer is on its way it cannot be given again", () => {
  const paused = state(task({ state: "input-required", messages: [ask, wants] }));
  const answer = { contextId: "c", error: "", message: { ...says("m3", "USER", "Approved."), taskId: "t1" } };
  const entries = entriesOf({ ...paused, outgoing: { m3: answer } });
  assert.deepEqual(entries.map((entry) => [entry.kind, entry.sending]), [["user", false], ["approval", true]]);
  const [, again] = entriesOf({ ...paused, outgoing: { m3: { ...answer, error: "Gone" } } });
  assert.equal(again.sending, false);
});

for (const [words, answer, kinds_] of [
  ["Approved.", "approved", ["user", "approval", "agent"]],
  ["Not approved.", "declined", ["user", "approval", "agent"]],
  ["Not approved. Keep it", "declined", ["user", "approval", "user", "agent"]],
  ["yes, please", "approved", ["user", "approval", "user", "agent"]],
]) {
  test(`afterwards it says what was answered: ${words}`, () => {
    const messages = [ask, wants, says("m3", "USER", words), says("m4", "AGENT", "Done.")];
    assert.equal(approval(task({ messages })).answer, answer);
    assert.deepEqual(kinds(task({ messages })).map(([kind]) => kind), kinds_);
  });
}

test("a call whose task was stopped was not answered", () => {
  assert.equal(approval(task({ state: "canceled", messages: [ask, wants] })).answer, "unanswered");
});

for (const approvals of [null, 7, "delete", [null], [{ tool: 7 }], {}]) {
  test(`what is no approval is a question: ${JSON.stringify(approvals)}`, () => {
    const odd = { ...wants, metadata: { [CANVAS]: { approvals } } };
    assert.deepEqual(kinds(task({ state: "input-required", messages: [ask, odd] })).at(-1)[0], "question");
  });
}

test("what is done with comments and suggestions does not stand in the conversation, and leaves what failed the newest", () => {
  const about = (op, number) => task({ taskId: `n${number}`, messages: [says(`n${number}`, "USER", op, { [CANVAS]: { op } })], operation: { op, artifactId: "a" } });
  const failed = task({ state: "failed", messages: [ask, says("m2", "AGENT", "No luck.")] });
  const notes = ["annotate", "reply", "resolve", "accept", "reject", "withdraw", "accept-all"].map(about);
  const shown = entriesOf(state(failed, ...notes));
  assert.deepEqual(shown.map(({ kind }) => kind), ["user", "failed"]);
  assert.equal(shown[1].newest, true);
});

test("a question to the agent in a thread that waits for approval is asked in the conversation", () => {
  const asking = { messages: [ask, wants], operation: { op: "reply", artifactId: "a" } };
  assert.deepEqual(entriesOf(state(task({ ...asking, state: "input-required" }))).map(({ kind }) => kind), ["user", "approval"]);
  assert.deepEqual(entriesOf(state(task({ ...asking, state: "completed" }))), []);
});
