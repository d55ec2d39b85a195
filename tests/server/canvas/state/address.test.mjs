import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPlace, parsePlace } from "../../../../server/canvas/address.js";

const places = [
  { contextId: null, artifactId: null, version: null },
  { contextId: "notes", artifactId: null, version: null },
  { contextId: "a/b #?%", artifactId: "ü.md", version: null },
  { contextId: "notes", artifactId: "tide/pools.md", version: 12 },
];

test("an address names what it was made of", () => {
  for (const place of places) {
    assert.deepEqual(parsePlace(formatPlace(place)), place);
  }
});

test("a malformed address names nothing", () => {
  assert.deepEqual(parsePlace("#/%E0%A4%A"), places[0]);
  assert.equal(parsePlace("#/a/b/0").version, null);
});
