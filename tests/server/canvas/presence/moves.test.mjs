// The own cursor is sent after a move, and at most once a second.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createMoves } from "../../../../server/canvas/presence/moves.js";

const at = (start, contextId = "c") => ({ contextId, artifactId: "a", version: 1, start, end: start });

function world() {
  const sent = [];
  let time = 0;
  let due = [];
  const moves = createMoves(async (move) => void sent.push(move), {
    now: () => time,
    later: (run, ms) => due.push({ run, at: time + ms }),
  });
  const pass = (ms) => {
    time += ms;
    const ready = due.filter((one) => one.at <= time);
    due = due.filter((one) => one.at > time);
    ready.forEach(({ run }) => run());
  };
  return { sent, moves, pass, timers: () => due.length };
}

test("a first move is sent at once, and those of the next second are one", () => {
  const { sent, moves, pass } = world();
  moves.move(at(1));
  pass(0);
  for (let place = 2; place < 50; place++) {
    moves.move(at(place));
    pass(10);
  }
  assert.deepEqual(sent, [at(1)]);
  pass(600);
  assert.deepEqual(sent, [at(1), at(49)]);
});

test("without a move nothing is sent, and nothing runs", () => {
  const { sent, moves, pass, timers } = world();
  moves.move(at(1));
  pass(0);
  moves.move(at(1));
  pass(5_000);
  moves.move(at(2));
  moves.move(at(1));
  pass(5_000);
  assert.deepEqual(sent, [at(1)]);
  assert.equal(timers(), 0);
});

test("it knows in which conversation others see a cursor", () => {
  const { moves, pass } = world();
  assert.equal(moves.shownIn(), null);
  moves.move(at(1));
  pass(0);
  assert.equal(moves.shownIn(), "c");
  moves.move({ contextId: "c" });
  pass(1_000);
  assert.equal(moves.shownIn(), null);
});
