/** A preview is a page of its own: it is drawn again only when its text has changed, and seldom while that grows. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import "../page.mjs";

const { createView } = await import("../../../../../server/canvas/document/views.js");
const HTML = { name: "html", language: "html", modes: [] };

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  window.setTimeout = (...given) => setTimeout(...given);
});
afterEach(() => mock.timers.reset());

/** A preview, and what is drawn in it. */
async function preview(text) {
  const artifact = (open) => ({ artifactId: "a", name: "a.html", open, others: [] });
  const view = await createView("preview", { artifact: artifact(false), text, kind: HTML, readOnly: true, onSelect() {}, onInput() {} }, () => {});
  return { frame: () => view.element.querySelector("iframe"), show: (next, open = false) => view.update(next, artifact(open)), destroy: view.destroy };
}

test("the same text leaves it as it is", async () => {
  const { frame, show } = await preview("<p>one");
  const before = frame();
  show("<p>one");
  show("<p>one", true);
  mock.timers.tick(5000);
  assert.equal(frame(), before);
});

test("another text is drawn at once when it is finished", async () => {
  const { frame, show } = await preview("<p>one");
  show("<p>two");
  assert.equal(frame().getAttribute("srcdoc"), "<p>two");
});

test("a text that grows is drawn twice a second at most, and in the end as it is", async () => {
  const { frame, show } = await preview("");
  const drawn = new Set();
  for (let at = 0; at < 100; at++) {
    show("x".repeat(at), true);
    mock.timers.tick(20);
    drawn.add(frame());
  }
  assert.ok(drawn.size <= 5, `${drawn.size} in 2 seconds`);
  show("x".repeat(100));
  assert.equal(frame().getAttribute("srcdoc").length, 100);
});

test("one that is left is drawn no more", async () => {
  const { frame, show, destroy } = await preview("one");
  const before = frame();
  show("two", true);
  destroy();
  mock.timers.tick(5000);
  assert.equal(frame(), before);
});
