// @ts-check
/**
 * markdown-it with places: every token that shows text knows where the source says it.
 *
 * markdown-it maps block tokens to lines only. Two additions make that exact:
 * - A block rule that pushes text is wrapped. It notes in `token.meta.pieces` which stretch of the source each stretch of
 *   `token.content` is, while the state of the rule still knows what a quote or a list has taken from each line.
 * - The loop of the inline parser notes in `token.meta` the `start` and `end` of every inline token within that content.
 *
 * All offsets count UTF-16 code units.
 */

import { firstIndex } from "../../binary_search.js";
import MarkdownIt from "../../vendor/markdown-it.js";
import { details, lineBreak, note, noteReference, pairedTag } from "./markdown_extras.js";
import { formulaBlock, inlineFormula } from "./markdown_math.js";

/**
 * A stretch of content and the stretch of the source that says it: character by character if both are equally long.
 * @typedef {{at: number, length: number, source: number, sourceLength: number}} Piece
 *
 * @typedef {any} Token  a token of markdown-it
 * @typedef {Record<string, {href: string, title: string}>} References  the definitions of links, by label
 */

/** CommonMark without HTML, with tables, strikethrough, bare addresses that begin with a scheme, markdown_extras.js and markdown_math.js. */
const parser = new MarkdownIt({ html: false, linkify: true });

/** What notes the places of the tokens that a rule has pushed, given the line where it began. @type {Record<string, Function>} */
const PLACES = {
  paragraph: placeLines,
  lheading: placeLines,
  heading: placeHeading,
  code: placeCode,
  fence: placeFence,
  table: placeTable,
};

for (const { name, fn, alt } of [...parser.block.ruler.__rules__]) {
  if (name === "reference") {
    parser.block.ruler.at(name, keepDefinition(fn), { alt });
  } else if (name in PLACES) {
    parser.block.ruler.at(name, withPlaces(fn, PLACES[name]), { alt });
  }
}

const INTERRUPTING = { alt: ["paragraph", "reference", "blockquote"] };
parser.block.ruler.before("reference", "note", withPlaces(note, placeNote), INTERRUPTING);
parser.block.ruler.before("note", "details", withPlaces(details, placeSummary), INTERRUPTING);
parser.block.ruler.before("fence", "math_block", withPlaces(formulaBlock, placeFormula), INTERRUPTING);
parser.inline.ruler.after("escape", "math_inline", inlineFormula);
parser.inline.ruler.before("link", "note_reference", noteReference);
parser.inline.ruler.before("autolink", "line_break", lineBreak);
parser.inline.ruler.before("autolink", "paired_tag", pairedTag);

parser.inline.State = class extends parser.inline.State {
  pendingStart = 0;
  lastEnd = 0;

  pushPending() {
    const token = super.pushPending();
    token.meta = { start: this.pendingStart, end: this.pendingStart + token.content.length };
    return token;
  }
};
parser.inline.tokenize = tokenizeInline;
parser.inline.ruler2.disable("fragments_join");

/**
 * A source as markdown-it reads it: a line ends with `\n`, and NUL is no character. Only `\r\n` changes the length.
 * @param {string} source
 */
export function normalize(source) {
  return source.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd");
}

/**
 * The block tokens of a normalized source. A `reference_definition` has `meta.label` and `meta.definition`.
 * @param {string} source
 * @returns {Token[]}
 */
export function parseBlocks(source) {
  /** @type {Token[]} */
  const tokens = [];
  parser.block.parse(source, parser, {}, tokens);
  return tokens;
}

/**
 * The inline tokens of the content of a block token. The labels that it asks `references` for are what it depends on.
 * @param {string} content
 * @param {References} references
 * @returns {Token[]}
 */
export function parseInline(content, references) {
  /** @type {Token[]} */
  const tokens = [];
  parser.inline.parse(content, parser, { references }, tokens);
  for (const token of tokens) {
    // The two characters of a strong delimiter are two tokens, of which the inner one stays.
    if (token.type === "strong_open") {
      token.meta.start--;
    } else if (token.type === "strong_close") {
      token.meta.end++;
    }
  }
  return tokens.filter((token) => token.type !== "text" || token.content !== "");
}

/**
 * Where a place of content is in the source. `after` says that the place is the end of something: of what was left out
 * there, nothing is taken then.
 * @param {Piece[]} pieces
 * @param {number} at
 * @param {boolean} [after]
 */
export function sourceOffset(pieces, at, after = false) {
  const next = firstIndex(pieces.length, (index) => (after ? pieces[index].at >= at : pieces[index].at > at));
  const piece = pieces[Math.max(0, next - 1)];
  if (!piece) {
    return 0;
  }
  const within = Math.max(0, at - piece.at);
  if (piece.length === piece.sourceLength) {
    return piece.source + Math.min(within, piece.length);
  }
  return piece.source + (within >= piece.length ? piece.sourceLength : 0);
}

// --- block rules

/** @param {Function} rule @param {Function} place */
function withPlaces(rule, place) {
  return (/** @type {any} */ state, /** @type {number} */ line, /** @type {number} */ end, /** @type {boolean} */ silent) => {
    const from = state.tokens.length;
    if (!rule(state, line, end, silent)) {
      return false;
    }
    if (!silent) {
      place(state, state.tokens.slice(from), line);
    }
    return true;
  };
}

/** A label that is defined twice means the first definition; which one that is, only the whole document knows. */
function keepDefinition(/** @type {Function} */ rule) {
  return (/** @type {any} */ state, /** @type {number} */ line, /** @type {number} */ end, /** @type {boolean} */ silent) => {
    state.env.references = {};
    if (!rule(state, line, end, silent)) {
      return false;
    }
    if (!silent) {
      const token = state.tokens.at(-1);
      token.meta.definition = state.env.references[token.meta.label];
    }
    return true;
  };
}

/** @param {any} state @param {Token[]} tokens */
function placeLines(state, [, inline]) {
  const [first, end] = inline.map;
  const raw = state.getLines(first, end, state.blkIndent, false);
  const lead = raw.length - raw.replace(/^[ \t\r\n]+/, "").length;
  inline.meta = { pieces: clip(linePieces(state, first, end, state.blkIndent), lead, inline.content.length) };
}

/** @param {any} state @param {Token[]} tokens */
function placeNote(state, tokens) {
  const inline = tokens[3];
  const [first, end] = inline.map;
  inline.meta = { pieces: clip(linePieces(state, first, end, state.blkIndent), inline.meta.lead, inline.content.length) };
}

/** @param {any} state @param {Token[]} tokens @param {number} line */
function placeFormula(state, [token], line) {
  const { lead } = token.meta;
  token.meta = { pieces: clip(linePieces(state, line, token.map[1], state.sCount[line]), lead, token.content.length) };
  placeOne(token, lineStart(state, line), state.eMarks[token.map[1] - 1]);
}

/** @param {any} _ @param {Token[]} tokens */
function placeSummary(_, tokens) {
  const inline = tokens[1]?.type === "summary_open" ? tokens[2] : null;
  if (inline) {
    inline.meta = { pieces: [exact(0, inline.content.length, inline.meta.source)] };
  }
}

/** @param {any} state @param {Token[]} tokens @param {number} line */
function placeHeading(state, [open, inline], line) {
  const afterMarker = lineStart(state, line) + open.markup.length;
  inline.meta = { pieces: [exact(0, inline.content.length, state.skipSpaces(afterMarker))] };
}

/** @param {any} state @param {Token[]} tokens @param {number} line */
function placeCode(state, [token], line) {
  token.meta = { pieces: linePieces(state, line, token.map[1], 4 + state.blkIndent) };
  placeOne(token, state.bMarks[line], state.eMarks[token.map[1] - 1]);
}

/** @param {any} state @param {Token[]} tokens @param {number} line */
function placeFence(state, [token], line) {
  const lines = token.content.split("\n").length - (token.content === "" || token.content.endsWith("\n") ? 1 : 0);
  token.meta = { pieces: linePieces(state, line + 1, line + 1 + lines, state.sCount[line]) };
  placeOne(token, lineStart(state, line), state.eMarks[token.map[1] - 1]);
}

/** @param {any} state @param {Token[]} tokens */
function placeTable(state, tokens) {
  /** @type {Piece[][]} */
  let cells = [];
  let rowEnd = 0;
  for (const token of tokens) {
    if (token.type === "table_open" || token.type === "tr_open") {
      placeOne(token, lineStart(state, token.map[0]), state.eMarks[token.map[1] - 1]);
    }
    if (token.type === "tr_open") {
      cells = cellPieces(state, token.map[0]);
      rowEnd = token.meta.end;
    } else if (token.type === "inline") {
      token.meta = { pieces: cells.shift() ?? [exact(0, 0, rowEnd)] };
    }
  }
}

/** Where what the block says begins in a line. @param {any} state @param {number} line */
function lineStart(state, line) {
  return state.bMarks[line] + state.tShift[line];
}

/**
 * What a block rule takes of some lines, with their ends. A tab of which only some columns are taken gives spaces that the
 * source does not have: they are in no piece.
 * @param {any} state
 * @param {number} first
 * @param {number} end
 * @param {number} indent
 * @returns {Piece[]}
 */
function linePieces(state, first, end, indent) {
  const pieces = [];
  let at = 0;
  for (let line = first; line < end; line++) {
    const content = state.getLines(line, line + 1, indent, false);
    const lineEnd = state.eMarks[line];
    let taken = Math.min(content.length, lineEnd);
    while (state.src.slice(lineEnd - taken, lineEnd) !== content.slice(content.length - taken)) {
      taken--;
    }
    pieces.push(exact(at + content.length - taken, taken + 1, lineEnd - taken));
    at += content.length + 1;
  }
  return pieces;
}

/**
 * The cells of a row, as the table rule splits it: at each pipe without a backslash before it, outer pipes left out.
 * @param {any} state
 * @param {number} line
 * @returns {Piece[][]}
 */
function cellPieces(state, line) {
  const from = lineStart(state, line);
  const raw = state.src.slice(from, state.eMarks[line]);
  const start = from + raw.length - raw.trimStart().length;
  const end = from + raw.trimEnd().length;
  /** @type {{start: number, end: number, escapes: number[]}[]} */
  const cells = [{ start, end, escapes: [] }];
  for (let at = start; at < end; at++) {
    const cell = cells[cells.length - 1];
    if (state.src[at] !== "|") {
      continue;
    }
    if (state.src[at - 1] === "\\" && at > start) {
      cell.escapes.push(at - 1);
    } else {
      cell.end = at;
      cells.push({ start: at + 1, end, escapes: [] });
    }
  }
  if (cells[0].start === cells[0].end) {
    cells.shift();
  }
  if (cells.length > 0 && cells[cells.length - 1].start === cells[cells.length - 1].end) {
    cells.pop();
  }
  return cells.map((cell) => cellContent(state.src, cell));
}

/** @param {string} source @param {{start: number, end: number, escapes: number[]}} cell */
function cellContent(source, { start, end, escapes }) {
  const raw = source.slice(start, end);
  let from = start + raw.length - raw.trimStart().length;
  const to = Math.max(from, start + raw.trimEnd().length);
  const pieces = [];
  let at = 0;
  for (const backslash of escapes) {
    pieces.push(exact(at, backslash - from, from), { at: at + backslash - from, length: 1, source: backslash, sourceLength: 2 });
    at += backslash - from + 1;
    from = backslash + 2;
  }
  pieces.push(exact(at, to - from, from));
  return pieces;
}

/** @param {number} at @param {number} length @param {number} source @returns {Piece} */
function exact(at, length, source) {
  return { at, length, source, sourceLength: length };
}

/** The pieces of `content.slice(lead, lead + length)`. @param {Piece[]} pieces @param {number} lead @param {number} length */
function clip(pieces, lead, length) {
  return pieces.flatMap(({ at, length: own, source }) => {
    const start = Math.max(at, lead);
    const end = Math.min(at + own, lead + length);
    return start <= end ? [exact(start - lead, end - start, source + start - at)] : [];
  });
}

// --- inline rules

/** The loop of the inline parser, which notes what each step has read. @this {any} @param {any} state */
function tokenizeInline(state) {
  const rules = this.ruler.getRules("");
  const end = state.posMax;
  const deep = state.level >= state.md.options.maxNesting;
  while (state.pos < end) {
    const start = state.pos;
    const from = state.tokens.length;
    if (state.pending === "") {
      state.pendingStart = start;
    }
    if (!deep && rules.some((/** @type {Function} */ rule) => rule(state, false))) {
      placeInline(state, state.tokens.slice(from).filter((/** @type {Token} */ token) => token.meta?.start === undefined), start);
    } else {
      state.pending += state.src[state.pos++];
    }
  }
  if (state.pending) {
    state.pushPending();
  }
  state.lastEnd = end;
}

/**
 * Notes the places of the tokens that one rule has pushed, which read from `start` to `state.pos`.
 * @param {any} state
 * @param {Token[]} tokens
 * @param {number} start
 */
function placeInline(state, tokens, start) {
  const end = state.pos;
  if (tokens[0]?.type === "link_open" && tokens[0].info === "auto") {
    const bracket = tokens[0].markup === "autolink" ? 1 : 0;
    const from = bracket ? start : state.pendingStart + pendingBefore(state, tokens[0]);
    placeOne(tokens[0], from, from + bracket);
    placeOne(tokens[1], from + bracket, end - bracket);
    placeOne(tokens[2], end - bracket, end);
  } else if (tokens[0]?.type === "link_open") {
    placeOne(tokens[0], start, start + 1);
    placeOne(tokens[1], state.lastEnd, end);
  } else if (tokens[0]?.meta?.opening) {
    placeOne(tokens[0], start, start + tokens[0].meta.opening);
    placeOne(/** @type {Token} */ (tokens.at(-1)), state.lastEnd, end);
  } else if (tokens[0]?.type === "text") {
    // Delimiters of emphasis, each a token.
    let at = start;
    for (const token of tokens) {
      placeOne(token, at, at + token.content.length);
      at += token.content.length;
    }
  } else if (tokens.length === 1) {
    placeOne(tokens[0], start, end);
  }
}

/** How much of the pending text stands before a bare address, whose scheme was pending text, too. @param {any} state @param {Token} open */
function pendingBefore(state, open) {
  const flushed = state.tokens[state.tokens.indexOf(open) - 1];
  return flushed?.meta?.start === state.pendingStart ? flushed.content.length : 0;
}

/** @param {Token} token @param {number} start @param {number} end */
function placeOne(token, start, end) {
  token.meta = { ...token.meta, start, end };
}
