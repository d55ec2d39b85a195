// A tab that is hidden lets its streams go, and opens them again when it is shown.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { createPresence } from "../../../../server/canvas/a2a/presence.js";

/** A document that can be hidden. */
class Page extends EventTarget {
  visibilityState = "visible";
  turn(state) {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

let page;
let end;
beforeEach(() => {
  page = globalThis.document = new Page();
  end = new AbortController();
  mock.timers.enable({ apis: ["setTimeout"] });
});
afterEach(() => {
  mock.timers.reset();
  delete globalThis.document;
});

/** Whether a promise is resolved by now. */
const isDone = (promise) => Promise.race([promise.then(() => true), new Promise((resolve) => setImmediate(resolve, false))]);

test("a stream ends soon after the page is hidden, and not at once", () => {
  const { signal } = createPresence(end.signal);
  page.turn("hidden");
  assert.equal(signal.aborted, false);
  mock.timers.tick(10_000);
  assert.equal(signal.aborted, true);
});

test("one that is looked away from for a moment stays", () => {
  const presence = createPresence(end.signal);
  const { signal } = presence;
  page.turn("hidden");
  mock.timers.tick(100);
  page.turn("visible");
  mock.timers.tick(10_000);
  assert.equal(signal.aborted, false);
  assert.equal(presence.signal, signal);
});

test("what waits goes on when the page is shown, with a new signal", async () => {
  const presence = createPresence(end.signal);
  page.turn("hidden");
  mock.timers.tick(10_000);
  const shown = presence.shown();
  assert.equal(await isDone(shown), false);
  page.turn("visible");
  assert.equal(await isDone(shown), true);
  assert.equal(presence.signal.aborted, false);
});

test("a page that is opened behind another one opens no stream until it is shown", async () => {
  page.visibilityState = "hidden";
  const presence = createPresence(end.signal);
  assert.equal(presence.signal.aborted, true);
  const shown = presence.shown();
  page.turn("visible");
  assert.equal(await isDone(shown), true);
  assert.equal(presence.signal.aborted, false);
});

test("nothing waits for a conversation that was left", async () => {
  const presence = createPresence(end.signal);
  page.turn("hidden");
  mock.timers.tick(10_000);
  const shown = presence.shown();
  end.abort();
  assert.equal(await isDone(shown), true);
  assert.equal(await isDone(presence.shown()), true);
  page.turn("visible");
  assert.equal(presence.signal.aborted, true);
});

test("where there is no document it is always shown", async () => {
  delete globalThis.document;
  const presence = createPresence(end.signal);
  assert.equal(await isDone(presence.shown()), true);
  end.abort();
  assert.equal(presence.signal.aborted, true);
});
