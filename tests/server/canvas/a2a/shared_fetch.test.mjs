// `fetch` by way of the shared worker: what a window asks for, and what it gets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createRelay, serveWindow } from "../../../../server/canvas/a2a/relay.js";
import { createSharedFetch } from "../../../../server/canvas/a2a/shared_fetch.js";

const ADDRESS = "http://a.example/";
const SSE = { headers: { "Content-Type": "text/event-stream", "X-Test": "1" } };

function window(send) {
  const ports = [];
  const start = () => {
    const { port1, port2 } = new MessageChannel();
    serveWindow(createRelay(send), port1);
    ports.push(port1);
    return { port: port2, onerror: null };
  };
  const end = () => ports.forEach((port) => port.onmessage({ data: { type: "leave" } }));
  return { fetch: createSharedFetch(start, { send: async () => new Response("own") }), end };
}

const init = (signal = new AbortController().signal) => ({ shared: "events", headers: {}, signal });

test("the answer is that of the server", async () => {
  const { fetch, end } = window(async () => new Response("data: ä\n\n", SSE));
  const response = await fetch(ADDRESS, init());
  assert.deepEqual([response.status, response.headers.get("X-Test"), await response.text()], [200, "1", "data: ä\n\n"]);
  end();
});

test("a refusal has its status and its words", async () => {
  const { fetch, end } = window(async () => new Response('{"error": 1}', { status: 403 }));
  const response = await fetch(ADDRESS, init());
  assert.deepEqual([response.status, await response.text()], [403, '{"error": 1}']);
  end();
});

test("a server that does not answer is an error, as of fetch", async () => {
  const { fetch, end } = window(async () => Promise.reject(new TypeError("refused")));
  await assert.rejects(fetch(ADDRESS, init()), TypeError);
  end();
});

test("to abort it ends the request of the worker", async () => {
  const controller = new AbortController();
  let signal;
  const { fetch } = window((_, given) => {
    signal = given.signal;
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const asked = fetch(ADDRESS, init(controller.signal));
  await new Promise((resolve) => setTimeout(resolve));
  while (!signal) await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  await assert.rejects(asked, { name: "AbortError" });
  while (!signal.aborted) await new Promise((resolve) => setImmediate(resolve));
});

test("a stream breaks as the page is left: the page that comes back reconnects", async () => {
  const page = new EventTarget();
  globalThis.addEventListener = page.addEventListener.bind(page);
  globalThis.removeEventListener = page.removeEventListener.bind(page);
  const { fetch, end } = window(async () => new Response(new ReadableStream(), SSE));
  const reader = (await fetch(ADDRESS, init())).body.getReader();
  const unanswered = window(() => new Promise(() => {}));
  const waiting = unanswered.fetch(ADDRESS, init());
  page.dispatchEvent(new Event("pagehide"));
  await assert.rejects(reader.read(), TypeError);
  await assert.rejects(waiting, TypeError);
  delete globalThis.addEventListener;
  delete globalThis.removeEventListener;
  end();
  unanswered.end();
});

test("what has no name is the window's own, as is everything where there is no worker, or where it cannot be started", async () => {
  const send = async () => new Response("own");
  const broken = () => {
    throw new Error("refused by a policy");
  };
  assert.equal(await (await window(send).fetch(ADDRESS, { headers: {} })).text(), "own");
  assert.equal(await (await createSharedFetch(null, { send })(ADDRESS, init())).text(), "own");
  assert.equal(await (await createSharedFetch(broken, { send })(ADDRESS, init())).text(), "own");
});

test("a worker that cannot be loaded is not asked again", async () => {
  const { port1, port2 } = new MessageChannel();
  const worker = { port: port2, onerror: null };
  const fetch = createSharedFetch(() => worker, { send: async () => new Response("own") });
  const asked = fetch(ADDRESS, init());
  worker.onerror();
  await assert.rejects(asked, TypeError);
  assert.equal(await (await fetch(ADDRESS, init())).text(), "own");
  port1.close();
});
