// Where the threads stand beside the text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { placeThreads } from "../../../../server/canvas/review/placing.js";

const at = (...tops) => tops.map((top) => ({ top, height: 50 }));

test("threads stand at their passages where there is room", () => assert.deepEqual(placeThreads(at(0, 100, 300), -1, 10), [0, 100, 300]));

test("threads of one line stand below each other", () => assert.deepEqual(placeThreads(at(20, 20, 20), -1, 10), [20, 80, 140]));

test("the chosen thread stands at its passage, and those before it make room", () => {
  assert.deepEqual(placeThreads(at(20, 20, 20, 400), 2, 10), [-100, -40, 20, 400]);
});

test("threads after the chosen one follow it", () => assert.deepEqual(placeThreads(at(20, 20, 30), 1, 10), [-40, 20, 80]));

test("nothing has no place", () => assert.deepEqual(placeThreads([], -1, 10), []));

test("no two threads cover each other, and the chosen one is at its passage, in any order of heights", () => {
  let seed = 7;
  const random = (most) => (seed = (seed * 16807) % 2147483647) % most;
  for (let run = 0; run < 500; run++) {
    const threads = Array.from({ length: 1 + random(9) }, () => ({ top: random(400), height: 10 + random(80) })).sort((a, b) => a.top - b.top);
    const chosen = random(threads.length + 1) - 1;
    const tops = placeThreads(threads, chosen, 8);
    assert.ok(tops.every((top, index) => index === 0 || top >= tops[index - 1] + threads[index - 1].height + 8));
    assert.ok(chosen === -1 || tops[chosen] === threads[chosen].top);
  }
});
