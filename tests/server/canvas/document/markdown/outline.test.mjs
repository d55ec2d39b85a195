/** The outline of a Markdown text. */

import assert from "node:assert/strict";
import { test } from "node:test";
import "../page.mjs";

const { outlineOf } = await import("../../../../../server/canvas/document/markdown/outline.js");

const outline = (text) => outlineOf(text).map(({ level, text }) => [level, text]);

test("it has the headings of both forms, as they are shown", () => {
  assert.deepEqual(outline("# The *tide*\n\nText.\n\n## `ebb` and [flow](x)\n\nPools\n-----\n\nSea\n==="), [
    [1, "The tide"],
    [2, "ebb and flow"],
    [2, "Pools"],
    [1, "Sea"],
  ]);
});

test("what only looks like a heading is none of the document", () => {
  assert.deepEqual(outline("```\n# code\n```\n\n#hash\n\n> # quoted\n\n- # listed\n\n    # indented\n\n---\n\n#\n"), []);
});

test("its places are those of the headings in the text, whatever its line ends are", () => {
  const text = "\r\n\r\n# One\r\n\r\nText\r\n\r\n Two\r\n ===\r\n\r\nEnd";
  assert.deepEqual(outlineOf(text).map(({ start, end }) => text.slice(start, end)), ["# One", " Two\r\n ==="]);
});
