import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEvent, serverEvents } from "../../../../server/canvas/a2a/sse.js";

const bytes = new TextEncoder().encode(': hello\n\nid: 7\ndata: {"a":"ü😀"}\n\nevent: activity\ndata: x\ndata: y\n\n');

/** @param {number} size */
const cut = (size) =>
  new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) {
        controller.enqueue(bytes.slice(at, at + size));
      }
      controller.close();
    },
  });

test("the events of a stream do not depend on where its bytes are cut", async () => {
  for (let size = 1; size <= bytes.length; size++) {
    const events = [];
    for await (const event of serverEvents(cut(size))) {
      events.push(event);
    }
    assert.deepEqual(events, [
      { id: "7", event: "message", data: '{"a":"ü😀"}' },
      { id: null, event: "activity", data: "x\ny" },
    ]);
  }
});

test("a comment is a sign of life and no event", () => assert.equal(parseEvent(": ping"), null));
