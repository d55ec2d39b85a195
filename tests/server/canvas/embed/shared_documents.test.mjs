/** The documents of a link are followed over broken connections, until the server no longer takes the link. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { RequestFailed } from "../../../../server/canvas/a2a/request_failed.js";
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
