// @ts-check
/**
 * What models write beside CommonMark, as rules of markdown-it: `<br>`, `<kbd>`, `<sub>`, `<sup>`, `<details>` with a
 * `<summary>`, and footnotes. No other HTML is known, and none with attributes: it is shown as text.
 *
 * Each rule depends on nothing behind the block that it begins, so that a text can be parsed in pieces (markdown_blocks.js):
 * an element that is not closed ends with the block that contains it.
 */

/** @typedef {any} Token */

const PAIRED = /^<(kbd|sub|sup)>/i;
const BREAK = /^<br[ \t]*\/?>/i;
const DETAILS = /^<details(?: open)?>[ \t]*(?:<summary>(.*?)<\/summary>)?[ \t]*$/i;
const SUMMARY = /^<summary>(.*?)<\/summary>[ \t]*$/i;
const DETAILS_END = /^<\/details>[ \t]*$/i;
const NOTE = /^\[\^([^\]\s[]{1,60})\]/;
const NOTE_BEGINS = /^\[\^([^\]\s[]{1,60})\]:[ \t]+(?=\S)/;

/** Deeper than this nothing is folded: each level looks for its end. */
const DEEPEST = 20;

/** What a footnote is called among the definitions of links. @param {string} name */
export const noteLabel = (name) => `^${name.toUpperCase()}`;

/** What a block rule says of a line, without its indentation; null if it is code. @param {any} state @param {number} line */
export function lineOf(state, line) {
  const isCode = state.sCount[line] - state.blkIndent >= 4 || state.sCount[line] < state.blkIndent;
  return isCode ? null : state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]);
}

// --- inline

/** `<br>` breaks the line. @param {any} state @param {boolean} silent */
export function lineBreak(state, silent) {
  const found = state.src[state.pos] === "<" && BREAK.exec(state.src.slice(state.pos, state.pos + 16));
  if (!found) {
    return false;
  }
  silent || state.push("hardbreak", "br", 0);
  state.pos += found[0].length;
  return true;
}

/** `<kbd>…</kbd>` and the like, if the end is in the same paragraph. @param {any} state @param {boolean} silent */
export function pairedTag(state, silent) {
  const found = state.src[state.pos] === "<" && PAIRED.exec(state.src.slice(state.pos, state.pos + 5));
  if (!found) {
    return false;
  }
  const tag = found[1].toLowerCase();
  const start = state.pos + found[0].length;
  const end = endOf(state, tag, start);
  if (end === -1 || end >= state.posMax) {
    return false;
  }
  if (!silent) {
    const { posMax } = state;
    const open = state.push(`${tag}_open`, tag, 1);
    open.meta = { opening: found[0].length };
    state.pos = start;
    state.posMax = end;
    state.md.inline.tokenize(state);
    state.posMax = posMax;
    state.push(`${tag}_close`, tag, -1);
  }
  state.pos = end + tag.length + 3;
  return true;
}

/** Where a tag is closed, looked for once for all that come before it. @param {any} state @param {string} tag @param {number} from */
function endOf(state, tag, from) {
  state.closed ??= {};
  const known = state.closed[tag];
  if (!known || from < known.from || (known.at !== -1 && known.at < from)) {
    state.lower ??= state.src.toLowerCase();
    state.closed[tag] = { from, at: state.lower.indexOf(`</${tag}>`, from) };
  }
  return state.closed[tag].at;
}

/** `[^1]`, if there is such a footnote. @param {any} state @param {boolean} silent */
export function noteReference(state, silent) {
  const found = state.src[state.pos] === "[" && state.src[state.pos + 1] === "^" && NOTE.exec(state.src.slice(state.pos, state.pos + 64));
  if (!found || found[0].length > state.posMax - state.pos || !state.env.references[noteLabel(found[1])]) {
    return false;
  }
  if (!silent) {
    state.push("note_reference", "", 0).content = found[1];
  }
  state.pos += found[0].length;
  return true;
}

// --- blocks

/** `[^1]: …` to the next blank line or footnote. @param {any} state @param {number} line @param {number} end @param {boolean} silent */
export function note(state, line, end, silent) {
  const found = NOTE_BEGINS.exec(lineOf(state, line) ?? "");
  if (!found) {
    return false;
  }
  if (!silent) {
    let next = line + 1;
    while (next < end && !state.isEmpty(next) && lineOf(state, next) !== null && !NOTE_BEGINS.test(lineOf(state, next) ?? "")) {
      next++;
    }
    pushNote(state, line, next, found);
    state.line = next;
  }
  return true;
}

/** @param {any} state @param {number} line @param {number} next @param {RegExpExecArray} found */
function pushNote(state, line, next, found) {
  const label = noteLabel(found[1]);
  const open = state.push("note_open", "div", 1);
  open.map = [line, next];
  open.info = found[1];
  const defined = state.push("reference_definition", "", 0);
  defined.meta = { label, definition: { href: `#${label}`, title: "" } };
  const raw = state.getLines(line, next, state.blkIndent, false);
  const lead = raw.indexOf(found[0]) + found[0].length;
  state.push("paragraph_open", "p", 1).map = [line, next];
  const inline = state.push("inline", "", 0);
  inline.map = [line, next];
  inline.content = raw.slice(lead).replace(/[ \t\n]+$/, "");
  inline.children = [];
  inline.meta = { lead };
  state.push("paragraph_close", "p", -1);
  state.push("note_close", "div", -1);
}

/** `<details>` to its end, with Markdown in it. @param {any} state @param {number} line @param {number} end @param {boolean} silent */
export function details(state, line, end, silent) {
  const found = DETAILS.exec(lineOf(state, line) ?? "");
  if (!found || state.level > DEEPEST) {
    return false;
  }
  if (silent) {
    return true;
  }
  const { close, after } = detailsEnd(state, line, end);
  const open = state.push("details_open", "details", 1);
  open.map = [line, after];
  open.attrs = close === after ? [["open", ""]] : [];
  let from = line;
  if (found[1] === undefined && from + 1 < close && SUMMARY.test(lineOf(state, from + 1) ?? "")) {
    from++;
  }
  const summary = found[1] ?? SUMMARY.exec(lineOf(state, from) ?? "")?.[1];
  summary !== undefined && pushSummary(state, from, summary);
  const { parentType, lineMax } = state;
  state.parentType = "details";
  state.lineMax = close;
  state.md.block.tokenize(state, from + 1, close);
  state.parentType = parentType;
  state.lineMax = lineMax;
  state.push("details_close", "details", -1);
  state.line = after;
  return true;
}

/** @param {any} state @param {number} line @param {string} text */
function pushSummary(state, line, text) {
  state.push("summary_open", "summary", 1).map = [line, line + 1];
  const inline = state.push("inline", "", 0);
  inline.map = [line, line + 1];
  inline.content = text.trim();
  inline.children = [];
  const from = state.src.toLowerCase().indexOf("<summary>", state.bMarks[line]) + "<summary>".length;
  inline.meta = { source: from + text.length - text.trimStart().length };
  state.push("summary_close", "summary", -1);
}

/** The line that closes what a line opens, and the one after it; where none does, the end of what holds both. @param {any} state @param {number} line @param {number} end */
function detailsEnd(state, line, end) {
  let depth = 0;
  for (let next = line; next < end; next++) {
    if (!state.isEmpty(next) && state.sCount[next] < state.blkIndent) {
      return { close: next, after: next };
    }
    const text = lineOf(state, next) ?? "";
    depth += DETAILS.test(text) ? 1 : DETAILS_END.test(text) ? -1 : 0;
    if (depth === 0) {
      return { close: next, after: next + 1 };
    }
  }
  return { close: end, after: end };
}
