// @ts-check
/** The outline of a Markdown text: its headings, as the rendered view shows them. Pure. */

import { NO_BLOCKS, updateBlocks } from "./markdown_blocks.js";
import { renderBlock } from "./markdown_render.js";

/** `start` and `end` are its place in the text. @typedef {{level: number, text: string, start: number, end: number}} Heading */

/** What may be a heading: it begins with `#`, or its last line underlines it. Only rendering tells, which costs more. */
const CANDIDATE = /^ {0,3}#|[\r\n] {0,3}(?:=+|-+)[ \t]*$/;
const BLANK_LINES = /^(?:[ \t]*(?:\r\n?|\n))*/;

/** The headings of a text, in order. Those inside a quote or a list are not part of its outline. @param {string} text @returns {Heading[]} */
export function outlineOf(text) {
  const { list, starts, definitions } = updateBlocks(NO_BLOCKS, text).blocks;
  return list.flatMap(({ length }, at) => {
    const block = text.slice(starts[at], starts[at] + length);
    const start = starts[at] + (BLANK_LINES.exec(block)?.[0].length ?? 0);
    const end = starts[at] + block.trimEnd().length;
    const source = text.slice(start, end);
    const { html, text: shown } = CANDIDATE.test(source) ? renderBlock(source, definitions) : { html: "", text: "" };
    const level = /^<h([1-6])\b/.exec(html)?.[1];
    return level && shown.trim() ? [{ level: Number(level), text: shown.trim(), start, end }] : [];
  });
}
