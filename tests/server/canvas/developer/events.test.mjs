import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, duration, isShown, kindOf, lineOf, selectedText } from "../../../../server/canvas/developer/events.js";
import { CANVAS, TURN } from "../../../../server/canvas/state/task.js";

const REQUEST = { url: "http://127.0.0.1/", method: "POST", headers: {}, body: '{"method": "GetTask", "params": {"id": "t"}}' };

/** @param {any} result @returns {import("../../../../server/canvas/a2a/log.js").LogEntry} */
const event = (result) => entry("event", { jsonrpc: "2.0", id: 1, result });

/** @param {any} kind @param {any} content */
const entry = (kind, content, type = "") => ({ number: 1, at: 0, since: 0, kind, name: "SubscribeToTask", event: type, content, request: REQUEST, size: 0 });

const turn = { statusUpdate: { metadata: { [TURN]: { event_type: "text_delta", data: { index: 3, text: "tide" }, epoch: 2, generation: 30 } } } };
const CASES = [
  ["turn", "text_delta", "3", "2/30", event(turn)],
  ["status", "label", "", "1/8", event({ statusUpdate: { status: { state: "TASK_STATE_WORKING" }, metadata: { [TURN]: { label: true, epoch: 1, generation: 8 } } } })],
  ["status", "input-required", "", "", event({ statusUpdate: { status: { state: "TASK_STATE_INPUT_REQUIRED" } } })],
  ["status", "task", "", "1/1", event({ task: { id: "t", status: { state: "TASK_STATE_SUBMITTED" }, metadata: { [TURN]: { epoch: 1, generation: 1 } } } })],
  ["artifact", "artifact append", "", "1/20", event({ artifactUpdate: { append: true, artifact: { artifactId: "a" }, metadata: { [CANVAS]: { epoch: 1, generation: 20 } } } })],
  ["artifact", "edit chunk", "", "", event({ statusUpdate: { metadata: { [CANVAS]: { edit: { phase: "chunk", chunk: "x" } } } } })],
  ["artifact", "artifact", "", "", entry("event", { artifactUpdate: { artifact: { artifactId: "a" } } })],
  ["all", "activity", "", "", entry("event", { watchers: 2, working: [] }, "activity")],
  ["all", "answer", "", "", event({ tasks: [] })],
  ["error", "error", "", "", entry("event", { error: { code: -32001, message: "no such task" } })],
  ["error", "error", "", "", entry("error", "TypeError")],
  ["request", "request", "", "", entry("request", null)],
];

for (const [kind, type, block, place, of] of /** @type {any[]} */ (CASES)) {
  test(`an entry is ${type} of ${kind}`, () => {
    const line = lineOf(of);
    assert.deepEqual([kindOf(of), line.type, line.block, line.place], [kind, type, block, place]);
  });
}

test("a summary is short, however long a text is", () => {
  const { summary } = lineOf(event({ artifactUpdate: { artifact: { artifactId: "a", parts: [{ text: "x".repeat(1e6) }] } } }));
  assert.ok(summary.length < 200 && summary.startsWith('{"artifactId":"a","parts":[{"text":"xxx'));
});

test("entries are filtered by kind and by any text in them", () => {
  const entries = [entry("request", null), event(turn), entry("error", "lost")];
  const shown = (/** @type {any} */ kind, /** @type {string} */ words) => entries.map((each) => isShown(each, kind, words));

  assert.deepEqual(shown("all", ""), [true, true, true]);
  assert.deepEqual(shown("turn", ""), [false, true, false]);
  assert.deepEqual(shown("all", "TIDE"), [false, true, false]);
  assert.deepEqual(shown("error", "tide"), [false, false, false]);
  assert.deepEqual(bodyOf(entries[0]), { method: "GetTask", params: { id: "t" } });
});

test("times are short", () => assert.deepEqual([0, 999, 1_234, 12_345].map(duration), ["0 ms", "999 ms", "1.23 s", "12.3 s"]));

test("a selected text has the fields of the older form and no other", () => {
  const selection = { artifactId: "a", version: 3, start: 1, end: 4, lineStart: 1, lineEnd: 2, text: "b\nc" };
  assert.deepEqual(selectedText(selection), { selectedText: { start: 1, end: 4, text: "b\nc", lineStart: 1, lineEnd: 2 } });
});
