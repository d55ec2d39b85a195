/** The documents of a link are followed over broken connections, until the server no longer takes the link. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { RequestFailed } from "../../../../server/canvas/a2a/request_failed.js";
import { shownText } from "../../../../server/canvas/state/artifacts.js";
import { followDocuments } from "../../../../server/canvas/embed/shared_documents.js";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => mock.timers.reset());

const update = (id, text, { append = false, lastChunk = true } = {}) => ({
  id: `after ${text}`,
  event: "message",
  data: { artifactUpdate: { artifact: { artifactId: id, name: id, parts: [{ text }] }, append, lastChunk } },
});

/** A server whose streams say this, one after the other; an error ends its stream. */
function serverOf(...streams) {
  const server = {
    askedFrom: [],
    contexts: async () => ({ contexts: [{ contextId: "shared" }] }),
    async *contextEvents(context, last, opened) {
      server.askedFrom.push([context, last]);
      const events = streams.shift();
      if (events[0] instanceof Error) {
        throw events[0];
      }
      opened();
      for (const event of events) {
        if (event instanceof Error) {
          throw event;
        }
        yield event;
      }
    },
  };
  return server;
}

/** All that was shown until the link ended. Pauses between attempts pass at once. */
async function shownOf(server) {
  const shown = [];
  let isOver = false;
  const following = followDocuments(server, (documents) => shown.push(documents), new AbortController().signal).finally(() => (isOver = true));
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(20_000);
  }
  await following;
  return shown;
}

const ended = new RequestFailed("Sign in.", 401);
const textsOf = ({ artifacts }) => Object.values(artifacts).map(({ text }) => text);

test("a document grows, and the one that changed last is known", async () => {
  const events = [update("a", "One", { lastChunk: false }), update("b", "Other"), update("a", " two", { append: true })];
  const shown = await shownOf(serverOf([...events, ended]));
  assert.deepEqual(shown.map(textsOf), [[], ["One"], ["One", "Other"], ["One two", "Other"], []]);
  assert.deepEqual(shown.map(({ lastChanged }) => lastChanged), ["", "a", "b", "a", ""]);
});

test("after a lost connection it resumes from the last event, and the documents stay meanwhile", async () => {
  const server = serverOf([update("a", "One")], [new RequestFailed("No answer.", 0)], [update("a", "Two")], [ended]);
  const shown = await shownOf(server);
  assert.deepEqual(server.askedFrom, [["shared", null], ["shared", "after One"], ["shared", "after One"], ["shared", "after Two"]]);
  assert.deepEqual(textsOf(shown.find(({ connection }) => connection === "reconnecting")), ["One"]);
  assert.deepEqual(textsOf(shown.findLast(({ connection }) => connection === "online")), ["Two"]);
});

for (const code of [401, 404, 410]) {
  test(`an answer ${code} ends it, and nothing of the documents stays`, async () => {
    const shown = await shownOf(serverOf([update("a", "One")], [new RequestFailed("It is gone.", code)]));
    assert.equal(shown.at(-1).connection, "ended");
    assert.deepEqual(textsOf(shown.at(-1)), []);
  });
}

test("a server that is not there yet, or refuses too many requests, is asked again", async () => {
  const server = serverOf([ended]);
  const answers = [new RequestFailed("No answer.", 0), new RequestFailed("Too many.", 429)];
  server.contexts = async () => {
    const error = answers.shift();
    if (error) {
      throw error;
    }
    return { contexts: [{ contextId: "shared" }] };
  };
  assert.deepEqual((await shownOf(server)).map(({ connection }) => connection), ["reconnecting", "reconnecting", "ended"]);
});

test("somebody who has no conversation has no link", async () => {
  const server = serverOf();
  server.contexts = async () => ({ contexts: [] });
  assert.deepEqual((await shownOf(server)).map(({ connection }) => connection), ["ended"]);
});

const CANVAS = "urn:a2a-canvas:canvas:v1";
const edit = (fields) => ({ statusUpdate: { taskId: "t", metadata: { [CANVAS]: { edit: { id: "e", artifactId: "a", baseVersion: 1, ...fields } } } } });
const start = { phase: "start", strategy: "replace", selection: { start: 4, end: 7 } };
const working = (...ids) => ({ event: "activity", data: { working: ids } });

/** A server with a task whose stream says this before the rest of the documents comes. */
function serverWithTask(events, ...later) {
  const told = Promise.withResolvers?.() ?? deferred();
  const server = serverOf([]);
  server.contextEvents = async function* (context, last, opened) {
    opened();
    yield update("a", "One two three");
    yield working("t");
    await told.promise;
    yield* later;
    throw ended;
  };
  server.subscribe = async function* () {
    yield* events;
    told.resolve();
    await new Promise(() => {});
  };
  return server;
}

function deferred() {
  let resolve = () => {};
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

const writtenIn = (shown) => shown.map(({ artifacts, edits }) => (artifacts.a ? shownText(artifacts.a, Object.values(edits)).text : ""));

test("what a task writes into a passage is shown as it comes, until its version is there", async () => {
  const events = [edit(start), edit({ phase: "chunk", chunk: "T" }), edit({ phase: "chunk", chunk: "WO" })];
  const shown = await shownOf(serverWithTask(events, update("a", "One TWO three")));
  assert.deepEqual([...new Set(writtenIn(shown))], ["", "One two three", "One T three", "One TWO three"]);
});

test("a stream that joins a task shows what it has written so far", async () => {
  const task = { id: "t", metadata: { [CANVAS]: { openEdits: [{ id: "e", artifactId: "a", baseVersion: 1, ...start, text: "TW" }] } } };
  const shown = await shownOf(serverWithTask([{ task }, edit({ phase: "chunk", chunk: "O" })]));
  assert.deepEqual([...new Set(writtenIn(shown))], ["", "One two three", "One TW three", "One TWO three"]);
});

test("a suggestion, and an edit that is broken off, leave the text as it is", async () => {
  const events = [edit({ ...start, mode: "suggest" }), edit({ phase: "chunk", chunk: "T" }), edit({ phase: "abort" })];
  const shown = await shownOf(serverWithTask(events));
  assert.deepEqual([...new Set(writtenIn(shown))], ["", "One two three"]);
});
