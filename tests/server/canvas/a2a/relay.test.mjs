// One stream of the server for all windows that ask for the same one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createRelay } from "../../../../server/canvas/a2a/relay.js";

const ADDRESS = "http://a.example/artifacts/c/events";
const turns = () => new Promise((resolve) => setImmediate(resolve));

/** A server whose answers a test writes piece by piece. */
function server(answer = { status: 200, headers: { "Content-Type": "text/event-stream" } }) {
  const asked = [];
  const send = async (url, init) => {
    let output;
    const body = new ReadableStream({ start: (controller) => void (output = controller) });
    const request = { url, headers: init.headers, ended: false, say: (text) => output.enqueue(new TextEncoder().encode(text)), end: () => output.close() };
    init.signal.addEventListener("abort", () => {
      request.ended = true;
      try {
        output.error(new Error("aborted"));
      } catch {}
    });
    asked.push(request);
    return new Response(body, answer);
  };
  return { asked, send };
}

function joined(relay, { last, key = "ann", owner = "", name = "events" } = {}) {
  const headers = { Authorization: `Bearer ${key}`, ...(last && { "Last-Event-ID": last }) };
  const window = { text: "", said: [], leave: () => {} };
  window.leave = relay.join({ owner, name, url: ADDRESS, init: { headers } }, (each) => {
    window.said.push(each.type);
    window.text += each.text ?? "";
  });
  return window;
}

const event = (id) => `id: ${id}\ndata: ${id}\n\n`;

test("windows share a request, and each receives all of it", async () => {
  const { asked, send } = server();
  const relay = createRelay(send);
  const windows = Array.from({ length: 8 }, () => joined(relay));
  await turns();
  asked[0].say(event(1) + event(2));
  await turns();
  assert.equal(asked.length, 1);
  assert.deepEqual(windows.map(({ text }) => text), Array(8).fill(event(1) + event(2)));
});

test("at whatever point a window joins, with whatever id of its own, it has every event once", async () => {
  for (let before = 0; before <= 4; before++) {
    for (let seen = 0; seen <= before; seen++) {
      const { asked, send } = server();
      const relay = createRelay(send);
      joined(relay);
      await turns();
      for (let id = 1; id <= before; id++) asked[0].say(event(id));
      await turns();
      const late = joined(relay, seen ? { last: String(seen) } : {});
      for (let id = before + 1; id <= 5; id++) asked[0].say(event(id));
      await turns();
      const missed = [1, 2, 3, 4, 5].filter((id) => id > seen).map(event).join("");
      assert.deepEqual([late.text, asked.length], [missed, 1]);
    }
  }
});

test("of the activity a late window receives the newest only", async () => {
  const { asked, send } = server();
  const relay = createRelay(send);
  joined(relay);
  await turns();
  asked[0].say(`event: activity\ndata: 1\n\n${event(1)}event: activity\ndata: 2\n\n`);
  await turns();
  assert.equal(joined(relay, { last: "1" }).text, "event: activity\ndata: 2\n\n");
  assert.equal(joined(relay).text, `${event(1)}event: activity\ndata: 2\n\n`);
});

test("signs of life reach everyone, and are not kept", async () => {
  const { asked, send } = server();
  const relay = createRelay(send);
  const window = joined(relay);
  await turns();
  asked[0].say(": \n\n");
  await turns();
  assert.equal(window.text, ": \n\n");
  assert.equal(joined(relay).text, "");
});

test("another credential, user or stream is another request", async () => {
  const { asked, send } = server();
  const relay = createRelay(send);
  const windows = [{}, { key: "joe" }, { owner: "joe" }, { name: "task 1" }].map((each) => joined(relay, each));
  await turns();
  asked.forEach((each, index) => each.say(event(index)));
  await turns();
  assert.deepEqual(windows.map(({ text }) => text), [0, 1, 2, 3].map(event));
});

test("when one window leaves the others go on; the last one ends the request, and nothing is kept", async () => {
  const { asked, send } = server();
  const relay = createRelay(send);
  const [first, second] = [joined(relay), joined(relay)];
  await turns();
  first.leave();
  asked[0].say(event(1));
  await turns();
  assert.deepEqual([first.text, second.text, asked[0].ended], ["", event(1), false]);
  second.leave();
  assert.deepEqual([asked[0].ended, relay.size], [true, 0]);
  joined(relay);
  await turns();
  assert.equal(asked.length, 2);
});

test("after the server has ended the stream, windows reconnect to one that begins after their id", async () => {
  const { asked, send } = server();
  const relay = createRelay(send);
  const windows = [joined(relay), joined(relay)];
  await turns();
  asked[0].say(event(1));
  asked[0].end();
  await turns();
  assert.deepEqual(windows.map(({ said }) => said.at(-1)), ["end", "end"]);
  const again = [joined(relay, { last: "1" }), joined(relay, { last: "1" })];
  await turns();
  asked[1].say(event(2));
  await turns();
  assert.deepEqual(again.map(({ text }) => text), [event(2), event(2)]);
  assert.deepEqual([asked.length, asked[1].headers["Last-Event-ID"]], [2, "1"]);
});

test("a window that such a stream cannot serve opens one from the start, which serves all that come later", async () => {
  const { asked, send } = server();
  const relay = createRelay(send);
  const window = joined(relay, { last: "7" });
  await turns();
  const late = joined(relay);
  await turns();
  assert.deepEqual([asked[0].ended, "Last-Event-ID" in asked[1].headers], [false, false]);
  const back = joined(relay, { last: "7" });
  asked[0].say(event(8));
  asked[1].say(event(8));
  await turns();
  assert.deepEqual([window.text, late.text, back.text, asked.length], [event(8), event(8), event(8), 2]);
});

test("a stream that is too long to keep stays with its windows, and one that comes later has its own, from its own id", async () => {
  const { asked, send } = server();
  const relay = createRelay(send, { maxSize: 20 });
  const window = joined(relay);
  await turns();
  asked[0].say(event(1) + event(2) + event(3));
  await turns();
  assert.equal(window.text, event(1) + event(2) + event(3));
  joined(relay, { last: "3" });
  await turns();
  assert.deepEqual([asked.length, asked[0].ended, asked[1].headers["Last-Event-ID"]], [2, false, "3"]);
  window.leave();
  assert.deepEqual([asked[0].ended, asked[1].ended, relay.size], [true, false, 1]);
});

test("a refusal reaches its windows, and is not kept for others", async () => {
  const { asked, send } = server({ status: 401, headers: { "Content-Type": "application/json" } });
  const relay = createRelay(send);
  const window = joined(relay);
  await turns();
  asked[0].say("{}");
  asked[0].end();
  await turns();
  assert.deepEqual([window.said, window.text, relay.size], [["head", "text", "end"], "{}", 0]);
});

test("windows learn that the server does not answer", async () => {
  const relay = createRelay(() => Promise.reject(new TypeError("refused")));
  const window = joined(relay);
  await turns();
  assert.deepEqual([window.said, relay.size], [["failed"], 0]);
});
