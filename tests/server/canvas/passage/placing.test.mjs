/** The bar stands beside its passage and stays in the pane of the document. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { placeBeside } from "../../../../server/canvas/passage/placing.js";

const bar = { width: 400, height: 90 };
const pane = { left: 400, right: 820, top: 150, bottom: 1100 };
const place = (passage) => placeBeside({ left: 450, top: 500, bottom: 520, ...passage }, bar, pane);

test("above the passage where there is room", () => assert.equal(place({}).top, 402));

test("below it where it would cover the head", () => assert.equal(place({ top: 200, bottom: 220 }).top, 228));

test("below it, too, where there is no room for what it opens to", () => {
  const placed = (grows) => placeBeside({ left: 450, top: 260, bottom: 280 }, { ...bar, grows }, pane).top;
  assert.deepEqual([placed(0), placed(12), placed(13)], [162, 162, 288]);
});

test("at the end of the pane if the passage fills it", () => assert.equal(place({ top: 150, bottom: 1100 }).top, 1002));

test("never over the sides of the pane", () => {
  assert.equal(place({ left: 700 }).left, 412);
  assert.equal(place({ left: 300 }).left, 408);
});

test("in a pane that is too small, at its beginning", () => {
  const small = { left: 0, right: 300, top: 100, bottom: 150 };
  assert.deepEqual(placeBeside({ left: 20, top: 110, bottom: 130 }, bar, small), { left: 8, top: 100 });
});
