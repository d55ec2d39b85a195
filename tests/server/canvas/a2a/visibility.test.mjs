// A tab that is hidden lets its streams go, and opens them again when it is shown.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { createVisibility } from "../../../../server/canvas/a2a/visibility.js";

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
  const { signal } = createVisibility(end.signal);
  page.turn("hidden");
  assert.equal(signal.aborted, false);
  mock.timers.tick(10_000);
  assert.equal(signal.aborted, true);
});

test("one that is looked away from for a moment stays", () => {
  const visibility = createVisibility(end.signal);
  const { signal } = visibility;
  page.turn("hidden");
  mock.timers.tick(100);
  page.turn("visible");
  mock.timers.tick(10_000);
  assert.equal(signal.aborted, false);
  assert.equal(visibility.signal, signal);
});

test("what waits goes on when the page is shown, with a new signal", async () => {
  const visibility = createVisibility(end.signal);
  page.turn("hidden");
  mock.timers.tick(10_000);
  const shown = visibility.whenVisible();
  assert.equal(await isDone(shown), false);
  page.turn("visible");
  assert.equal(await isDone(shown), true);
  assert.equal(visibility.signal.aborted, false);
});

test("a page that is opened behind another one opens no stream until it is shown", async () => {
  page.visibilityState = "hidden";
  const visibility = createVisibility(end.signal);
  assert.equal(visibility.signal.aborted, true);
  const shown = visibility.whenVisible();
  page.turn("visible");
  assert.equal(await isDone(shown), true);
  assert.equal(visibility.signal.aborted, false);
});

test("nothing waits for a conversation that was left", async () => {
  const visibility = createVisibility(end.signal);
  page.turn("hidden");
  mock.timers.tick(10_000);
  const shown = visibility.whenVisible();
  end.abort();
  assert.equal(await isDone(shown), true);
  assert.equal(await isDone(visibility.whenVisible()), true);
  page.turn("visible");
  assert.equal(visibility.signal.aborted, true);
});

test("where there is no document it is always shown", async () => {
  delete globalThis.document;
  const visibility = createVisibility(end.signal);
  assert.equal(await isDone(visibility.whenVisible()), true);
  end.abort();
  assert.equal(visibility.signal.aborted, true);
});
