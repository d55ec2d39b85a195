import assert from "node:assert/strict";
import { test } from "node:test";
import "../page.mjs";

const { nameOfText } = await import("../../../../../server/canvas/document/files/pasting.js");

test("a pasted text is named by its first line", () => {
  assert.equal(nameOfText("\n# Tide pools: a guide\n\nText.", []), "tide-pools-a-guide.md");
  assert.equal(nameOfText("Ebbe & Flut für alle, die lange am Meer entlang gehen", []), "ebbe-flut-für-alle-die-lange-am-meer.md");
  assert.equal(nameOfText("x".repeat(99), []), `${"x".repeat(40)}.md`);
  assert.equal(nameOfText("---", []), "pasted.md");
});

test("a name that is taken gets a number", () => {
  assert.equal(nameOfText("Notes", ["notes.md", "notes-2.md"]), "notes-3.md");
});
