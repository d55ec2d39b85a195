/** What the page loads on demand comes in the end, whatever the network did meanwhile. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { loadAhead, partOf, singly, tellMissing } from "../../../server/canvas/loading.js";

Object.defineProperty(globalThis, "navigator", { value: { onLine: true } });
const events = new EventTarget();
globalThis.addEventListener = (...given) => events.addEventListener(...given);
globalThis.removeEventListener = (...given) => events.removeEventListener(...given);

/** An import that fails so many times. */
function flaky(failures) {
  const load = async () => {
    load.count++;
    if (load.count <= failures) {
      throw new TypeError("Failed to fetch dynamically imported module");
    }
    return "part";
  };
  load.count = 0;
  return load;
}

/** Resolves with the next thing that somebody is told. */
function listener() {
  const told = [];
  let news = () => {};
  const tell = (remedy) => (told.push(remedy), news());
  const next = async () => {
    while (told.length === 0) await new Promise((resolve) => (news = resolve));
    return told.shift();
  };
  return { tell, next };
}

test("a part is loaded once, whoever asks", async () => {
  const load = flaky(0);
  const part = partOf(load);
  assert.equal(part.now(), null);
  assert.deepEqual(await Promise.all([part.get(), part.get()]), ["part", "part"]);
  assert.equal(part.now(), "part");
  assert.equal(load.count, 1);
});

test("one that could not be loaded is asked for again when the browser is online", async () => {
  const { tell, next } = listener();
  const got = partOf(flaky(1)).get(tell);
  assert.equal((await next()).label, "Retry");
  events.dispatchEvent(new Event("online"));
  assert.equal(await got, "part");
  assert.equal(await next(), null);
});

test("the user may ask for it again, and reload the page if that helps nothing", async () => {
  const { tell, next } = listener();
  const got = partOf(flaky(3)).get(tell);
  for (const label of ["Retry", "Retry"]) {
    const remedy = await next();
    assert.equal(remedy.label, label);
    remedy.run();
  }
  assert.equal((await next()).label, "Reload");
  events.dispatchEvent(new Event("online"));
  assert.equal(await got, "part");
});

test("who asks without a word of their own has the page tell the user", async () => {
  const { tell, next } = listener();
  tellMissing(tell);
  const got = partOf(flaky(1)).get();
  (await next()).run();
  assert.equal(await got, "part");
});

test("all parts are loaded ahead, but for those that are not wanted early", async () => {
  const [early, late] = [flaky(0), flaky(0)];
  partOf(early);
  partOf(late, { early: false });
  await loadAhead();
  assert.deepEqual([early.count, late.count], [1, 0]);
});

test("what is asked for again while it waits is done once", async () => {
  let count = 0;
  let end = () => {};
  const open = singly(() => new Promise((resolve) => (count++, (end = resolve))));
  const first = open();
  assert.equal(open(), first);
  end();
  await first;
  open();
  assert.equal(count, 2);
});
