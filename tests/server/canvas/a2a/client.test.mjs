/** What the page sends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../../../server/canvas/a2a/client.js";

const HALF = "\ud83d";

/** A client whose requests are answered with nothing, and their bodies. */
function recorded() {
  const bodies = [];
  const fetch = async (_, { body }) => {
    bodies.push(JSON.parse(body));
    return Response.json({ result: {} });
  };
  return { client: createClient("http://localhost/", { fetch }), bodies };
}

const message = (text) => ({ messageId: "m", contextId: "c", role: "ROLE_USER", parts: [{ text }], metadata: { put: { text } } });

test("a message has no half of a surrogate pair, also as the page is left", async () => {
  const { client, bodies } = recorded();
  await assert.rejects(client.sendStreaming(message(`a${HALF}`), new AbortController().signal).next());
  client.leave(message(`a${HALF}`), { keepalive: true });
  assert.deepEqual(bodies.map(({ params }) => params.message), [message("a\ufffd"), message("a\ufffd")]);
});

test("nor has the name of a conversation", async () => {
  const { client, bodies } = recorded();
  await client.change("c", { name: `Notes ${HALF}` });
  assert.deepEqual(bodies, [{ name: "Notes \ufffd" }]);
});
