import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { createTextSearch, MOST_FOUND, REST_MS } from "../../../../server/canvas/palette/texts.js";

/** A document of a conversation. */
const of = (contextId) => ({ contextId, title: contextId, artifactId: "a", name: "", version: 1, lines: [{ line: 1, text: "tide" }] });

/** A server whose answers the test gives. */
function server() {
  const requests = [];
  const texts = (text, pageSize, token, signal) =>
    new Promise((answer, refuse) => requests.push({ text, token, signal, refuse, answer: (found, nextPageToken = "") => answer({ found, nextPageToken }) }));
  return { texts, requests };
}

function searching(isWanted = () => true) {
  const { texts, requests } = server();
  const told = [];
  const search = createTextSearch({ texts }, isWanted, (now) => told.push(now));
  return { ...search, requests, last: () => told.at(-1) };
}

const settled = () => new Promise(setImmediate);

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

test("it asks after a rest of typing, for the last query", async () => {
  const { ask, requests, last } = searching();
  ask("ti");
  mock.timers.tick(REST_MS - 1);
  ask("tide ");
  mock.timers.tick(REST_MS - 1);
  assert.deepEqual([requests.length, last().step], [0, "searching"]);
  mock.timers.tick(1);
  assert.deepEqual(requests.map(({ text }) => text), ["tide"]);
  requests[0].answer([of("c")]);
  await settled();
  assert.deepEqual(last(), { found: [of("c")], step: "done", why: "" });
});

test("it shows what it has found while it reads the next page, and omits what is not wanted", async () => {
  const { ask, requests, last } = searching(({ contextId }) => contextId !== "open");
  ask("tide");
  mock.timers.tick(REST_MS);
  requests[0].answer([of("open"), of("c")], "next");
  await settled();
  assert.deepEqual([last().found, last().step], [[of("c")], "searching"]);
  assert.equal(requests[1].token, "next");
  requests[1].answer([]);
  await settled();
  assert.deepEqual([last().found, last().step, requests.length], [[of("c")], "done", 2]);
});

test("it ends when it has enough", async () => {
  const { ask, requests, last } = searching();
  ask("tide");
  mock.timers.tick(REST_MS);
  requests[0].answer(Array.from({ length: MOST_FOUND + 1 }, (_, at) => of(`c${at}`)), "next");
  await settled();
  assert.deepEqual([last().found.length, last().step, requests.length], [MOST_FOUND, "done", 1]);
});

test("the next query aborts the request of the one before, whose answer is not shown", async () => {
  const { ask, requests, last } = searching();
  ask("tide");
  mock.timers.tick(REST_MS);
  ask("moon");
  assert.equal(requests[0].signal.aborted, true);
  requests[0].answer([of("c")], "next");
  await settled();
  assert.deepEqual([last().found, last().step, requests.length], [[], "searching", 1]);
});

test("a failure is shown with its reason, and the next query is sent as usual", async () => {
  const { ask, requests, last } = searching();
  ask("tide");
  mock.timers.tick(REST_MS);
  requests[0].refuse(new Error("Request limit reached."));
  await settled();
  assert.deepEqual(last(), { found: [], step: "failed", why: "Request limit reached." });
  ask("moon");
  mock.timers.tick(REST_MS);
  assert.deepEqual([requests.length, last().step], [2, "searching"]);
});

test("a letter is not searched for, and what is stopped stays silent", async () => {
  const { ask, stop, requests, last } = searching();
  ask("t");
  mock.timers.tick(REST_MS);
  assert.deepEqual([requests.length, last().step], [0, "none"]);
  ask("tide");
  mock.timers.tick(REST_MS);
  stop();
  requests[0].refuse(new Error("aborted"));
  await settled();
  assert.equal(last().step, "searching");
});
