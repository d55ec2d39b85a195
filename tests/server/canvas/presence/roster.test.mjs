// How people are named, and which of their cursors a document shows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { initialOf, lookOf, marksIn, nameOf, worksIn } from "../../../../server/canvas/presence/roster.js";

const cursor = (window, artifactId = "a") => ({ window, artifactId, version: 1, start: 2, end: 5 });
const ann = { name: "ann", guest: false, colour: "#1f5fa8", cursors: [cursor("own"), cursor("other"), cursor("third", "b")] };
const guest = { name: "guest", guest: true, colour: "#b3261e", cursors: [cursor("theirs")] };

test("a document shows the cursors in it, but for the window's own", () => {
  const roster = { people: [ann, guest], more: 0, agents: [] };
  assert.deepEqual(marksIn(roster, "a", "own", "Bot"), [
    { name: "ann", look: "person person-7", agent: false, start: 2, end: 5 },
    { name: "Guest", look: "person person-0", agent: false, start: 2, end: 5 },
  ]);
  assert.deepEqual(marksIn(null, "a", "own", "Bot"), []);
});

test("anonymous people are someone, and a name begins with a whole character", () => {
  assert.equal(nameOf({ ...ann, name: "" }), "Someone");
  assert.equal(initialOf("𝒳enia"), "𝒳");
  assert.equal(initialOf(nameOf(guest)), "G");
});

test("a colour that the page does not know is one that it knows", () => assert.equal(lookOf("#123456"), "person person-0"));

const work = (artifactId, start, end) => ({ taskId: `t-${artifactId}${start}`, colour: "#2e6b1f", artifactId, version: 1, start, end });

test("an agent is where it rewrites a passage, and at work on each document once", () => {
  const roster = { people: [], more: 0, agents: [work("a", 2, 5), work("a", 9, 9), work("b", 0, 4)] };
  assert.deepEqual(marksIn(roster, "a", "own", "Bot"), [{ name: "Bot", look: "person person-4", agent: true, start: 2, end: 5 }]);
  assert.deepEqual(worksIn(roster), [
    { artifactId: "a", look: "person person-4" },
    { artifactId: "b", look: "person person-4" },
  ]);
  assert.deepEqual(worksIn(null), []);
});
