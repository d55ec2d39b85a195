/** What of a Markdown text is shown while it is written. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { completePart } from "../../../../../server/canvas/document/markdown/partial.js";

const HELD = [
  ["some **bold", "some "],
  ["some **bold**", "some **bold**"],
  ["some *emph", "some "],
  ["2 * 3 is", "2 * 3 is"],
  ["snake_case is", "snake_case is"],
  ["a `code", "a "],
  ["a `code` b", "a `code` b"],
  ["see [the docs](https://x.y/lo", "see "],
  ["see [the docs]", "see "],
  ["see [the docs](https://x.y) now", "see [the docs](https://x.y) now"],
  ["see [1] and", "see [1] and"],
  ["![a pool](po", ""],
  ["text\n-", "text\n"],
  ["text\n\n- ", "text\n\n"],
  ["text\n\n- one", "text\n\n- one"],
  ["- [x", ""],
  ["## ", ""],
  ["## Title", "## Title"],
  ["a\n\n| a | b", "a\n\n"],
  ["a\n\n| a | b |\n", "a\n\n"],
  ["a\n\n| a | b |\n|---|", "a\n\n"],
  ["a\n\n| a | b |\n|---|---|\n", "a\n\n| a | b |\n|---|---|\n"],
  ["a\n\n| a | b |\n|---|---|\n| 1 ", "a\n\n| a | b |\n|---|---|\n| 1 "],
  ["the area $a b", "the area "],
  ["the area $ab$ is", "the area $ab$ is"],
  ["it costs $5 and", "it costs $5 and"],
  ["a\n\n$$\nx + ", "a\n\n"],
  ["a\n\n$$\nx\n$", "a\n\n"],
  ["a\n\n$$\nx\n$$", "a\n\n$$\nx\n$$"],
  ["```py", ""],
  ["```py\nx = a[", "```py\nx = a["],
  ["```py\nx = 1\n``", "```py\nx = 1\n"],
  ["```py\nx = 1\n```", "```py\nx = 1\n"],
  ["```\na\n```\n\nthen **b", "```\na\n```\n\nthen "],
];

for (const [text, shown] of HELD) {
  test(`of ${JSON.stringify(text)}, ${JSON.stringify(shown)} is shown`, () => assert.equal(completePart(text), shown));
}

test("what has no end near is shown as it is", () => {
  const text = `a ** ${"word ".repeat(100)}`;
  assert.equal(completePart(text), text);
});

test("what is shown is a beginning of the text, and of finished paragraphs all of it", () => {
  const text = "# T\n\nA **b** [c](d) `e`.\n\n| a |\n|---|\n| b |\n\n```js\nf([\n```\n\n- [ ] g\n\nEnd.\n\n";
  for (let end = 0; end <= text.length; end++) {
    const shown = completePart(text.slice(0, end));
    assert.ok(text.startsWith(shown) && shown.length <= end);
    assert.ok(end - shown.length < 40, JSON.stringify(text.slice(shown.length, end)));
  }
  assert.equal(completePart(text), text);
});

test("a long paragraph of signs is shown", () => assert.ok(completePart("[`*_".repeat(100_000)).length > 390_000));
