/** What is shown in a place is of the key that was asked for last, or nothing. */

import assert from "node:assert/strict";
import { test } from "node:test";
import "./document/page.mjs";

const { createKeyed } = await import("../../../server/canvas/keyed.js");

/** A place, and views of it that the test finishes. */
function scene() {
  const place = document.createElement("div");
  const keyed = createKeyed(place, () => document.createTextNode("Loading…"));
  const placed = [];
  const destroyed = [];
  const begun = new Map();
  const show = (key) =>
    keyed.show(key, () => new Promise((resolve) => begun.set(key, resolve)), ({ name }) => placed.push(name));
  const finish = async (key) => {
    const element = document.createElement("p");
    element.textContent = key;
    begun.get(key)({ name: key, element, destroy: () => destroyed.push(key) });
    await new Promise(setImmediate);
  };
  return { place, keyed, placed, destroyed, begun, show, finish };
}

test("until a view is made, the place says so, and nothing is shown", async () => {
  const { place, keyed, show, finish } = scene();
  assert.equal(show("a"), null);
  assert.equal(place.textContent, "Loading…");
  await finish("a");
  assert.equal(place.textContent, "a");
  assert.equal(show("a"), keyed.current());
});

test("the view of another key is gone at once", async () => {
  const { place, keyed, show, finish, destroyed } = scene();
  show("a");
  await finish("a");
  assert.equal(show("b"), null);
  assert.equal(keyed.current(), null);
  assert.equal(place.textContent, "Loading…");
  assert.deepEqual(destroyed, ["a"]);
});

test("what is made too late is never placed", async () => {
  const { place, show, finish, placed, destroyed } = scene();
  show("a");
  show("b");
  await finish("b");
  await finish("a");
  assert.equal(place.textContent, "b");
  assert.deepEqual([placed, destroyed], [["b"], ["a"]]);
});

test("nothing is placed after it was cleared", async () => {
  const { place, keyed, show, finish, destroyed } = scene();
  show("a");
  keyed.clear();
  await finish("a");
  assert.equal(place.textContent, "");
  assert.deepEqual(destroyed, ["a"]);
});

test("a view is made once for a key", async () => {
  const { show, finish, begun } = scene();
  show("a");
  const [first] = begun.values();
  show("a");
  assert.equal([...begun.values()][0], first);
  await finish("a");
});
