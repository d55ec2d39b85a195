// @ts-check
/**
 * A Markdown text as a row of top-level blocks, and what of them a change of the text changes. Pure.
 *
 * The blocks tile the text: a block has the blank lines that follow it, the first one those before it. A block means the same
 * wherever it stands, with three exceptions: it may join with a neighbour, a formula may reach to the next blank line, and links
 * may refer to definitions elsewhere. So a change is parsed from the second block before it, or before what may be the formula
 * around it, to where a block begins behind it that began there before, and the definitions of all blocks are compared.
 */

import { firstIndex } from "../../binary_search.js";
import { changeOf } from "../../state/text.js";
import { LONGEST_FORMULA } from "./markdown_math.js";
import { normalize, parseBlocks } from "./markdown_parser.js";

/**
 * @typedef {{label: string, href: string, title: string}} Definition
 *
 * @typedef {object} Block  frozen; the same block is the same object
 * @property {number} length
 * @property {readonly Definition[]} definitions
 *
 * @typedef {object} Blocks
 * @property {string} text
 * @property {readonly Block[]} list
 * @property {readonly number[]} starts  where each block starts
 * @property {ReadonlyMap<string, Definition>} definitions  by label; the first one in the text counts
 *
 * @typedef {object} BlocksChange
 * @property {Blocks} blocks
 * @property {number} from  the index of the first block that has changed
 * @property {number} removed  how many blocks of the old list were there
 * @property {number} added  how many blocks of the new list are there
 * @property {ReadonlySet<string>} labels  the labels whose definition has changed
 * @property {{start: number, end: number}} fresh  what of the text is new
 */

/** @type {Blocks} */
export const NO_BLOCKS = { text: "", list: [], starts: [], definitions: new Map() };

/** How many blocks before a change are parsed with it: what one begins may be what another one goes on with. */
const BEFORE = 2;

/** How many blocks behind a change are parsed with it, at first. */
const BEHIND = 3;

/**
 * The blocks of another text, made from those of the text before.
 * @param {Blocks} blocks
 * @param {string} text
 * @returns {BlocksChange}
 */
export function updateBlocks(blocks, text) {
  const change = changeOf(blocks.text, text);
  if (!change) {
    return { blocks, from: 0, removed: 0, added: 0, labels: new Set(), fresh: { start: 0, end: 0 } };
  }
  const shift = change.inserted - (change.end - change.start);
  const first = Math.max(0, indexAt(blocks, formulaBefore(text, change.start)) - BEFORE);
  const last = indexAt(blocks, change.end);
  const windowStart = blocks.starts[first] ?? 0;
  for (let behind = BEHIND; ; behind *= 4) {
    const whole = last + behind + 1 >= blocks.list.length;
    const windowEnd = whole ? text.length : blocks.starts[last + behind + 1] + shift;
    const parsed = splitBlocks(text.slice(windowStart, windowEnd));
    const end = { index: blocks.list.length, parsed: parsed.length };
    const isCut = !whole && formulaBefore(text, windowEnd) < windowEnd;
    const joined = whole ? end : isCut ? null : meeting(blocks, parsed, last + 1, windowStart - shift);
    if (joined) {
      return replaceBlocks(blocks, text, first, joined.index, parsed.slice(0, joined.parsed), { start: change.start, end: change.start + change.inserted });
    }
  }
}

/** Where what may be a formula begins that reaches to a place; the place itself if nowhere. @param {string} text @param {number} at */
function formulaBefore(text, at) {
  const from = Math.max(0, at - LONGEST_FORMULA);
  const [unbroken] = text.slice(from, at).split(/(?:\r\n|\r(?!\n)|\n)[ \t]*(?=[\r\n])/).slice(-1);
  const sign = unbroken.indexOf("$$");
  return sign === -1 ? at : at - unbroken.length + sign;
}

/**
 * The index of the block that has the character at `offset`; the last one for the end of the text.
 * @param {Blocks} blocks
 * @param {number} offset
 */
function indexAt({ starts }, offset) {
  return Math.max(0, firstIndex(starts.length, (index) => starts[index] > offset) - 1);
}

/**
 * Where the old blocks from `index` on go on behind the blocks that were parsed: at a block that both have, with another one
 * that both have behind it, so that nothing depends on where the window was cut.
 * @param {Blocks} blocks
 * @param {readonly Block[]} parsed
 * @param {number} index
 * @param {number} windowStart  in the old text, as what is behind the change counts
 */
function meeting(blocks, parsed, index, windowStart) {
  let start = windowStart;
  let old = index;
  for (let at = 0; at + 2 < parsed.length; start += parsed[at].length, at++) {
    while (old < blocks.list.length && blocks.starts[old] < start) {
      old++;
    }
    if (blocks.starts[old] === start && blocks.list[old].length === parsed[at].length) {
      return { index: old, parsed: at };
    }
  }
  return null;
}

/**
 * @param {Blocks} blocks
 * @param {string} text
 * @param {number} first
 * @param {number} end
 * @param {readonly Block[]} parsed  in place of the blocks from `first` to `end`
 * @param {{start: number, end: number}} inserted  what of the text is new
 * @returns {BlocksChange}
 */
function replaceBlocks(blocks, text, first, end, parsed, inserted) {
  let same = 0;
  while (
    same < parsed.length &&
    first + same < end &&
    blocks.starts[first + same] + parsed[same].length <= inserted.start &&
    blocks.list[first + same].length === parsed[same].length
  ) {
    same++;
  }
  const from = first + same;
  const fresh = parsed.slice(same);
  const removed = blocks.list.slice(from, end);
  const list = [...blocks.list.slice(0, from), ...fresh, ...blocks.list.slice(end)];
  const defines = [...removed, ...fresh].some((block) => block.definitions.length > 0);
  const definitions = defines ? definitionsOf(list) : blocks.definitions;
  return {
    blocks: { text, list, starts: startsOf(list), definitions },
    from,
    removed: removed.length,
    added: fresh.length,
    labels: defines ? difference(blocks.definitions, definitions) : new Set(),
    fresh: inserted,
  };
}

/** @param {readonly Block[]} list */
function startsOf(list) {
  const starts = new Array(list.length);
  let start = 0;
  for (let index = 0; index < list.length; index++) {
    starts[index] = start;
    start += list[index].length;
  }
  return starts;
}

/** @param {readonly Block[]} list @returns {Map<string, Definition>} */
function definitionsOf(list) {
  const found = new Map();
  for (const { definitions } of list) {
    for (const definition of definitions) {
      if (!found.has(definition.label)) {
        found.set(definition.label, definition);
      }
    }
  }
  return found;
}

/** @param {ReadonlyMap<string, Definition>} before @param {ReadonlyMap<string, Definition>} after */
function difference(before, after) {
  const labels = new Set([...before.keys(), ...after.keys()]);
  for (const label of labels) {
    const [old, now] = [before.get(label), after.get(label)];
    if (old?.href === now?.href && old?.title === now?.title) {
      labels.delete(label);
    }
  }
  return labels;
}

/**
 * The top-level blocks of a text. One without any is a block of blank lines.
 * @param {string} text
 * @returns {Block[]}
 */
export function splitBlocks(text) {
  const tokens = parseBlocks(normalize(text));
  const lines = lineStarts(text);
  /** @type {{start: number, definitions: Definition[]}[]} */
  const begun = [];
  for (const token of tokens) {
    if (token.level === 0 && token.map && token.nesting >= 0) {
      begun.push({ start: begun.length === 0 ? 0 : lines[token.map[0]], definitions: [] });
    }
    if (token.type === "reference_definition") {
      begun[begun.length - 1].definitions.push({ label: token.meta.label, ...token.meta.definition });
    }
  }
  if (begun.length === 0 && text !== "") {
    begun.push({ start: 0, definitions: [] });
  }
  return begun.map(({ start, definitions }, index) =>
    Object.freeze({ length: (begun[index + 1]?.start ?? text.length) - start, definitions }),
  );
}

/** @param {string} text */
function lineStarts(text) {
  const starts = [0];
  for (const { index, 0: end } of text.matchAll(/\r\n?|\n/g)) {
    starts.push(index + end.length);
  }
  return starts;
}
