import assert from "node:assert/strict";
import { test } from "node:test";
import { createLog } from "../../../../server/canvas/a2a/log.js";

const REQUEST = { url: "http://127.0.0.1/", method: "POST", headers: {}, body: '{"id": 1}' };

/** @param {{entries?: number, size?: number}} [limits] */
function logAt(limits) {
  let time = 1_000;
  return createLog({ ...limits, now: () => (time += 5) });
}

test("what comes back has the time since its request", () => {
  const log = logAt();
  const first = log.request("GetTask", REQUEST);
  const second = log.request("ListTasks", REQUEST);
  second.received({ a: 1 }, 7);
  first.failed("TypeError: Failed to fetch");

  assert.deepEqual(
    log.entries().map(({ number, kind, name, since }) => ({ number, kind, name, since })),
    [
      { number: 1, kind: "request", name: "GetTask", since: 0 },
      { number: 2, kind: "request", name: "ListTasks", since: 0 },
      { number: 3, kind: "event", name: "ListTasks", since: 5 },
      { number: 4, kind: "error", name: "GetTask", since: 15 },
    ],
  );
});

test("only the newest 2,000 are kept", () => {
  const log = createLog();
  const exchange = log.request("SubscribeToTask", REQUEST);
  for (let i = 0; i < 2_500; i++) {
    exchange.received({ i }, 10);
  }
  assert.equal(log.entries().length, 2_000);
  assert.deepEqual(log.entries().at(-1)?.content, { i: 2_499 });
  assert.deepEqual(log.entries()[0].content, { i: 500 });
});

test("large ones leave room for fewer, and the newest is always there", () => {
  const log = logAt({ size: 100 });
  const exchange = log.request("SubscribeToTask", REQUEST);
  [40, 40, 40].forEach((size, i) => exchange.received({ i }, size));
  assert.deepEqual(log.entries().map(({ content }) => content?.i), [1, 2]);
  exchange.received({ i: 3 }, 1_000);
  assert.deepEqual(log.entries().map(({ content }) => content?.i), [3]);
  exchange.received({ i: 4 }, 90);
  assert.deepEqual(log.entries().map(({ content }) => content?.i), [4]);
});

test("who watches is told of what is added and cleared", () => {
  const log = logAt();
  let told = 0;
  log.watch(() => told++);
  log.request("GetTask", REQUEST).received({}, 2);
  log.clear();
  assert.equal(told, 3);
  assert.deepEqual(log.entries(), []);
});
