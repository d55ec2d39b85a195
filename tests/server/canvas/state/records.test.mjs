/** Ids are chosen by models, by clients and by the names of files: each works in each map of the state. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { entriesOf } from "../../../../server/canvas/chat/entries.js";
import { INITIAL, reduce, shownArtifact } from "../../../../server/canvas/state/reducer.js";
import { requestOf } from "../../../../server/canvas/versions/history.js";

const CANVAS = "urn:a2a-canvas:canvas:v1";
const IDS = ["__proto__", "constructor", "toString"];
const server = { name: "", description: "", canvas: true, card: {} };

const message = (id, metadata) => ({ messageId: id, contextId: id, role: "ROLE_USER", parts: [{ text: id }], metadata });
const update = (id) => ({
  taskId: id,
  contextId: id,
  artifact: { artifactId: id, name: "", parts: [{ text: "one two" }] },
  lastChunk: true,
  metadata: { [CANVAS]: { artifactVersion: 2, author: "agent" } },
});
const edit = (id) => ({ id, artifactId: id, phase: "start", strategy: "replace", baseVersion: 2, selection: { start: 0, end: 3 } });
const asked = (id) => ({ [CANVAS]: { op: "edit", artifactId: id, baseVersion: 2, selection: { start: 0, end: 3, text: "one" } } });

/** A conversation in which everything has the same id. */
function conversation(id, canvas = true) {
  const event = (fields) => ({ type: "task-event", contextId: id, stream: "s", event: fields });
  const task = { id, contextId: id, status: { state: "TASK_STATE_WORKING" }, history: [message("m")], metadata: { [CANVAS]: { artifacts: JSON.parse(`{"${id}": {"artifactVersion": 1}}`), openEdits: [] } } };
  return [
    { type: "server", server: { ...server, canvas } },
    { type: "contexts", contexts: [{ contextId: id, name: null, request: id, updatedAt: "", working: 0, artifacts: [] }], nextPage: "", query: "" },
    { type: "context-opened", contextId: id },
    { type: "tasks", contextId: id, tasks: [task] },
    event({ task }),
    { type: "artifact-event", contextId: id, event: { artifactUpdate: update(id) } },
    event({ artifactUpdate: update(id) }),
    { type: "versions", contextId: id, artifactId: id, versions: [{ taskId: id, number: 2 }] },
    event({ statusUpdate: { taskId: id, contextId: id, status: { state: "TASK_STATE_WORKING" }, metadata: { [CANVAS]: { edit: edit(id) } } } }),
    { type: "sending", contextId: id, message: message(id, asked(id)) },
    { type: "not-sent", messageId: id, error: "offline" },
    { type: "artifact-shown", artifactId: id, version: null },
  ];
}

const maps = (state) => [state.tasks, state.made, state.artifacts, state.edits, state.outgoing, ...Object.values(state.tasks).map((task) => task.artifacts), ...Object.values(state.made)];

for (const id of IDS) {
  for (const canvas of [true, false]) {
    test(`a document, a task, a message and a conversation may be called ${id}${canvas ? "" : ", on any server"}`, () => {
      const state = conversation(id, canvas).reduce(reduce, INITIAL);
      assert.equal(shownArtifact(state)?.text, "one two");
      assert.deepEqual(Object.keys(state.artifacts), [id]);
      assert.deepEqual(Object.keys(state.tasks), [id]);
      assert.deepEqual([...Object.entries(state.tasks[id].artifacts)], [[id, 2]]);
      assert.equal(state.made[id][id], 2);
      assert.equal(state.edits[`${id}/${id}`].artifactId, id);
      assert.equal(state.outgoing[id].error, "offline");
      assert.ok(entriesOf(state).some((entry) => entry.kind === "changed" && entry.changed.some(({ name, version }) => name === id && version === 2)));
    });

    test(`what is not there is not found under ${id}${canvas ? "" : ", on any server"}`, () => {
      const [first, , opened] = conversation("c", canvas);
      const state = [first, opened].reduce(reduce, INITIAL);
      assert.deepEqual(maps(state).map((map) => map[id]), [undefined, undefined, undefined, undefined, undefined]);
    });
  }

  test(`no action gives a map a prototype: ${id}`, () => {
    let state = INITIAL;
    for (const action of [...conversation(id), { type: "context-renamed", from: id, to: "new" }, { type: "discarded", messageId: id }]) {
      state = reduce(state, action);
      assert.deepEqual(maps(state).filter((map) => Object.getPrototypeOf(map) !== null), [], action.type);
    }
  });

  test(`a version may be asked for with the word ${id}`, () => assert.equal(requestOf({ author: "user", request: id }), id));
}
