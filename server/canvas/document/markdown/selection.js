// @ts-check
/**
 * From what is selected in the rendered view to a passage of the source, and back.
 *
 * The passage has the source of all visible characters that are selected. What is marked up stays valid Markdown:
 * - A selection within **bold** text, a link's text, code or a cell is that text alone, even if it is all of it.
 * - One that crosses a border of emphasis, a link, a code span, a code block or a table takes all of it, markers included.
 *   So does one that crosses the border of a table's row.
 * - One that is several whole blocks has the marker of the first, too (`## `, `- `, `> `), and what closes the last (` ##`).
 * - An escape, an entity, an image or a formula is taken as a whole.
 */

import { linesOf } from "../../state/text.js";
import { domRange, textOffset } from "./visible_text.js";

/** @typedef {import("./markdown.js").MarkdownView} MarkdownView */
/** @typedef {import("./markdown_render.js").RenderedBlock} RenderedBlock */
/** @typedef {import("./markdown_render.js").Run} Run */
/** @typedef {{start: number, end: number}} SourceRange */
/** A rendered block and where its source starts. @typedef {{rendered: RenderedBlock, start: number}} PlacedBlock */
/** @typedef {{start: number, end: number, text: string, lineStart: number, lineEnd: number, others?: {start: number, end: number, text: string}[]}} Passage */

/**
 * The passage of the source that is selected; null if nothing of the document is.
 * @param {MarkdownView} view
 * @param {Range} range
 * @returns {Passage|null}
 */
export function passageOf(view, range) {
  const text = view.text();
  const from = pointOf(view, range.startContainer, range.startOffset, false);
  const to = pointOf(view, range.endContainer, range.endOffset, true);
  const source = from && to && sourceRange(from, to, view.blocksIn(from.block.start, to.block.start + 1), text);
  return source ? passage(text, source) : null;
}

/** @param {string} text @param {SourceRange} source @returns {Passage} */
export function passage(text, { start, end }) {
  return { start, end, text: text.slice(start, end), ...linesOf(text, start, end) };
}

/**
 * The source of a stretch of visible text. Pure.
 * @param {{block: PlacedBlock, at: number}} from
 * @param {{block: PlacedBlock, at: number}} to
 * @param {{item: {rendered: RenderedBlock|null}, start: number}[]} blocks  those of the stretch
 * @param {string} text
 * @returns {SourceRange|null}
 */
function sourceRange(from, to, blocks, text) {
  const first = runFrom(from.block.rendered.runs, from.at);
  const last = runUpTo(to.block.rendered.runs, to.at);
  const placed = blocks.flatMap(({ item, start }) => (item.rendered ? [{ rendered: item.rendered, start }] : []));
  const start = first ? from.block.start + startIn(first, from.at) : nextStart(placed, from.block);
  const end = last ? to.block.start + endIn(last, to.at) : previousEnd(placed, to.block);
  if (start === null || end === null || start >= end) {
    return null;
  }
  return widen({ start, end }, placed, text);
}

/**
 * Where a range of the source is visible, as DOM ranges: one for each block.
 * @param {MarkdownView} view
 * @param {number} start
 * @param {number} end
 * @returns {Range[]}
 */
export function visibleRanges(view, start, end) {
  return view.blocksIn(start, end).flatMap(({ item, start: blockStart }) => {
    const stretch = item.rendered && visibleStretch(item.rendered.runs, start - blockStart, end - blockStart);
    return stretch ? [domRange(item.element, stretch.start, stretch.end)] : [];
  });
}

/**
 * The visible text that a range of a block's source says. Pure.
 * @param {readonly Run[]} runs
 * @param {number} start
 * @param {number} end
 * @returns {SourceRange|null}
 */
function visibleStretch(runs, start, end) {
  const touched = runs.filter((run) => run.start < end && run.end > start && run.length > 0);
  if (touched.length === 0) {
    return null;
  }
  const first = touched[0];
  const last = touched[touched.length - 1];
  return {
    start: first.at + (isExact(first) ? Math.max(0, start - first.start) : 0),
    end: last.at + (isExact(last) ? Math.min(last.length, end - last.start) : last.length),
  };
}

/** @param {Run} run */
const isExact = (run) => run.end - run.start === run.length;

/** @param {Run} run @param {number} at */
const startIn = (run, at) => (isExact(run) ? run.start + Math.max(0, at - run.at) : run.start);

/** @param {Run} run @param {number} at */
const endIn = (run, at) => (isExact(run) ? run.start + Math.min(run.length, at - run.at) : run.end);

/** The run that has the character behind `at`. @param {readonly Run[]} runs @param {number} at */
const runFrom = (runs, at) => runs.find((run) => run.at + run.length > at);

/** The run that has the character before `at`. @param {readonly Run[]} runs @param {number} at */
const runUpTo = (runs, at) => runs.findLast((run) => run.at < at && run.length > 0);

/** @param {PlacedBlock[]} placed @param {PlacedBlock} block */
function nextStart(placed, block) {
  const next = placed.find(({ rendered, start }) => start > block.start && rendered.runs.length > 0);
  return next ? next.start + next.rendered.runs[0].start : null;
}

/** @param {PlacedBlock[]} placed @param {PlacedBlock} block */
function previousEnd(placed, block) {
  const previous = placed.findLast(({ rendered, start }) => start < block.start && rendered.runs.length > 0);
  return previous ? previous.start + previous.rendered.runs[previous.rendered.runs.length - 1].end : null;
}

/** @param {SourceRange} range @param {PlacedBlock[]} placed @param {string} text @returns {SourceRange} */
function widen(range, placed, text) {
  const leaves = placed.flatMap(({ rendered, start }) => rendered.leaves.map((leaf) => shift(leaf, start)));
  const markup = placed.flatMap(({ rendered, start: by }) =>
    rendered.markup.map((one) => ({ ...shift(one, by), innerStart: one.innerStart + by, innerEnd: one.innerEnd + by })),
  );
  const { start, end } = wholeMarkup(range, markup);
  const first = leaves.find((leaf) => leaf.start < end && leaf.end > start);
  const last = leaves.findLast((leaf) => leaf.start < end && leaf.end > start);
  if (first !== last && first?.start === start && last?.end === end) {
    return { start: lineMarkerStart(start, leaves, text), end: lineMarkerEnd(end, leaves, text) };
  }
  return { start, end };
}

/**
 * The range with all of the markup whose border it crosses.
 * @param {SourceRange} range
 * @param {import("./markdown_render.js").Markup[]} markup
 * @returns {SourceRange}
 */
function wholeMarkup({ start, end }, markup) {
  const crossed = markup.find((one) => one.start < end && one.end > start && isCrossed(one, start, end));
  return crossed ? wholeMarkup({ start: Math.min(start, crossed.start), end: Math.max(end, crossed.end) }, markup) : { start, end };
}

/** @param {import("./markdown_render.js").Markup} markup @param {number} start @param {number} end */
function isCrossed(markup, start, end) {
  const within = markup.innerStart <= start && end <= markup.innerEnd;
  const whole = start <= markup.start && markup.end <= end;
  return !within && !whole;
}

/** @param {{start: number, end: number}} range @param {number} by */
const shift = ({ start, end }, by) => ({ start: start + by, end: end + by });

/** The start of the line, if only markers stand between. @param {number} start @param {SourceRange[]} leaves @param {string} text */
function lineMarkerStart(start, leaves, text) {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  return leaves.some((leaf) => leaf.end > lineStart && leaf.start < start) ? start : lineStart;
}

/** The end of the line, if only markers stand between. @param {number} end @param {SourceRange[]} leaves @param {string} text */
function lineMarkerEnd(end, leaves, text) {
  const newline = text.indexOf("\n", end);
  const lineEnd = newline === -1 ? text.length : text[newline - 1] === "\r" ? newline - 1 : newline;
  return leaves.some((leaf) => leaf.start < lineEnd && leaf.end > end) ? end : Math.max(end, lineEnd);
}

// --- the DOM

/**
 * A place in the DOM as a block and an offset in its visible text.
 * @param {MarkdownView} view
 * @param {Node} node
 * @param {number} offset
 * @param {boolean} after  the place is the end of a selection
 */
function pointOf(view, node, offset, after) {
  const found = view.blockOf(node) ?? beside(view, node, offset, after);
  const rendered = found?.item.rendered;
  if (!found || !rendered) {
    return null;
  }
  const { item, start } = found;
  const within = item.element.contains(node);
  const at = within ? textOffset(item.element, node, offset, after) : after ? rendered.text.length : 0;
  return { block: { rendered, start }, at };
}

/** The block at a place between blocks. @param {MarkdownView} view @param {Node} node @param {number} offset @param {boolean} after */
function beside(view, node, offset, after) {
  if (!view.element.contains(node)) {
    return edge(view, node, after);
  }
  const child = node.childNodes[after ? offset - 1 : offset];
  const holders = /** @type {Element|undefined} */ (child)?.querySelectorAll?.(".document-block");
  const holder = holders?.[after ? holders.length - 1 : 0] ?? (/** @type {Element} */ (child)?.matches?.(".document-block") ? child : null);
  return holder ? view.blockOf(holder) : null;
}

/** A selection that begins before the document or ends behind it has all of it on that side. @param {MarkdownView} view @param {Node} node @param {boolean} after */
function edge(view, node, after) {
  const holders = view.element.querySelectorAll(".document-block");
  const before = view.element.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING;
  if (holders.length === 0 || (after ? before : !before)) {
    return null;
  }
  return view.blockOf(holders[after ? holders.length - 1 : 0]);
}
