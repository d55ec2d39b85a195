// What becomes of a question to the agent in a thread, by the tasks of the conversation.
import assert from "node:assert/strict";
import { test } from "node:test";

import { askedIn } from "../../../../server/canvas/review/asked.js";

const remark = (text, author = "user") => ({ author, at: "", text });
const said = (text, role = "ROLE_USER") => ({ role, messageId: text, parts: [{ text }] });

function thread(...texts) {
  return { annotationId: "n-1", kind: "comment", state: "open", author: "user", taskId: "t-1", place: null, thread: texts };
}

const task = (taskId, state, operation, ...messages) => ({ taskId, state, operation: { artifactId: "doc", ...operation }, messages });
const ANNOTATE = { op: "annotate", ask: true };
const REPLY = { op: "reply", annotationId: "n-1" };

/** What is asked in the first of some annotations. */
function asked(tasks, ...items) {
  const state = { tasks: Object.fromEntries(tasks.map((each) => [each.taskId, each])), annotations: { doc: { items, news: 1, read: 1 } } };
  return askedIn(state, items[0])?.kind ?? null;
}

test("a comment is being answered from when it is there until the agent's remark follows it", () => {
  const running = task("t-1", "working", ANNOTATE, said("Why?"));
  assert.equal(asked([running], thread(remark("Why?"))), "answering");
  assert.equal(asked([running], thread(remark("Why?"), remark("Me too"))), "answering");
  assert.equal(asked([running], thread(remark("Why?"), remark("So.", "agent"))), null);
  assert.equal(asked([{ ...running, state: "completed" }], thread(remark("Why?"))), null);
});

test("a suggestion of the same task is an answer", () => {
  const suggestion = { ...thread(), annotationId: "n-2", kind: "suggestion", author: "agent" };
  const running = task("t-1", "working", ANNOTATE, said("Shorter"));
  assert.equal(asked([running], thread(remark("Shorter")), suggestion), null);
  assert.equal(asked([running], thread(remark("Shorter")), { ...suggestion, taskId: "t-2" }), "answering");
});

test("a reply is being answered in its own thread, and an earlier answer is none", () => {
  const running = task("t-2", "working", REPLY, said(" Really? "));
  const item = thread(remark("Why?"), remark("So.", "agent"), remark("Really?"));
  assert.equal(asked([running], item), "answering");
  assert.equal(asked([running], { ...item, annotationId: "n-2" }), null);
  assert.equal(asked([running], thread(remark("Why?"))), null, "it is not there yet");
});

test("a remark without a question is done before its task works", () => {
  assert.equal(asked([task("t-2", "submitted", REPLY, said("Ok"))], thread(remark("Ok"))), null);
  assert.equal(asked([task("t-2", "submitted", { ...REPLY, ask: true }, said("Ok?"))], thread(remark("Ok?"))), "answering");
});

test("one that failed is shown until something is written or decided", () => {
  for (const [state, kind] of [["failed", "failed"], ["rejected", "failed"], ["canceled", "stopped"], ["input-required", "waits"]]) {
    assert.equal(asked([task("t-1", state, ANNOTATE, said("Why?"))], thread(remark("Why?"))), kind);
  }
  const failed = task("t-1", "failed", ANNOTATE, said("Why?"), said("The model is away.", "ROLE_AGENT"));
  assert.equal(asked([failed], thread(remark("Why?"), remark("I know."))), null);
  assert.equal(asked([failed], { ...thread(remark("Why?")), state: "resolved" }), null);
  assert.equal(asked([failed], { ...thread(remark("Why?")), taskId: "t-9" }), null, "nothing was added");
});
