import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { shownText } from "../../../../server/canvas/state/artifacts.js";
import { INITIAL, reduce, shownArtifact } from "../../../../server/canvas/state/reducer.js";
import { conversation, textOf } from "../../../../server/canvas/state/task.js";

// The streams of docs/turn.md and docs/canvas.md were recorded from a server, and the programs there fold them, too.
const read = (page) => readFileSync(new URL(`../../../../docs/${page}.md`, import.meta.url), "utf8");
const documentation = read("turn") + read("canvas");
const streams = [...documentation.matchAll(/```json\n(\{"task": .*?)```/gs)].map(([, lines]) => lines.trim().split("\n").map(JSON.parse));
const contextId = "c";
const begin = [
  { type: "server", server: { name: "", description: "", canvas: false, card: {} } },
  { type: "context-opened", contextId },
];

/** What the documentation leaves out of an event. */
function whole(event) {
  const [[kind, body]] = Object.entries(event);
  if (kind === "task") {
    return { task: { id: "t", contextId, ...body } };
  }
  const status = kind === "statusUpdate" ? { status: { state: "TASK_STATE_WORKING", ...body.status } } : {};
  return { [kind]: { taskId: "t", contextId, ...body, ...status } };
}

const actions = (stream) => stream.map((event) => ({ type: "task-event", contextId, stream: "s", event: whole(event) }));
const fold = (list) => list.reduce(reduce, INITIAL);
const recorded = (words) => streams.find((stream) => JSON.stringify(stream.at(-1)).includes(words));

test("the documented turn ends with its note and its reply", () => {
  const state = fold([...begin, ...actions(recorded("The note on tide pools is ready."))]);
  assert.equal(shownArtifact(state).text, "# tide pools\n\nThey come and go.\n");
  const view = state.tasks.t;
  assert.deepEqual([view.state, view.status, view.reply], ["completed", "", ""]);
  assert.deepEqual(conversation(view).map(textOf), ["The note on tide pools is ready."]);
});

test("no moment of the documented turn shows thinking, a tool call or two replies", () => {
  const list = [...begin, ...actions(recorded("The note on tide pools is ready."))];
  const said = list.map((_, at) => fold(list.slice(0, at + 1)).tasks.t).filter(Boolean);
  const texts = new Set(said.flatMap((view) => [...conversation(view).map(textOf), view.reply, view.status]));
  const labels = ["Working…", "Writing reply…", "I am writing it.", "Writing note.md…"];
  assert.deepEqual([...texts], ["", ...labels, "The note on tide", "The note on tide pools is ready."]);
  assert.ok(said.every((view) => conversation(view).filter((message) => message.role !== "ROLE_USER").length <= 1));
});

test("the documented edit is shown in its place, piece by piece, and is its version in the end", () => {
  const before = "import urllib\n\ndef fetch(url):\n    return urllib.get(url)\n";
  const artifact = { artifactId: "fetch", name: "fetch.py", parts: [{ text: before, mediaType: "text/x-python" }] };
  const metadata = { "urn:a2a-canvas:canvas:v1": { artifactVersion: 1, author: "agent" } };
  const there = { type: "artifact-event", contextId, event: { artifactUpdate: { taskId: "0", artifact, lastChunk: true, metadata } } };
  const list = [...begin, there, ...actions(recorded("version 2 is saved"))];
  const shown = list.slice(2).map((_, at) => fold(list.slice(0, at + 3))).map((state) => shownText(shownArtifact(state), Object.values(state.edits)).text);
  const [first, ...rest] = [...new Set(shown)].map((text) => text.split("\n")[2]);
  assert.deepEqual([first, ...rest], ["def fetch(url):", "async def fe", "async def fetch(url):"]);
  const state = fold(list);
  assert.equal(shownArtifact(state).version, 2);
  assert.deepEqual(Object.keys(state.edits), []);
});
