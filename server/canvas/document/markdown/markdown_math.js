// @ts-check
/**
 * Formulas in TeX, as rules of markdown-it: `$…$` in a line, and `$$…$$` set apart, which may have several lines but no blank one.
 *
 * Amounts of money are none: the first sign has no space behind it and no word before it, and the next sign in the text must
 * end the formula, with no space before it and no word behind it. What does not end stays text.
 */

import { lineOf } from "./markdown_extras.js";

/** Longer than this there is no formula. In characters; markdown_blocks.js relies on it. */
export const LONGEST_FORMULA = 4_000;

/** @param {any} state @param {boolean} silent */
export function inlineFormula(state, silent) {
  const { src, pos, posMax } = state;
  if (src[pos] !== "$" || /[\p{L}\p{N}$\\]/u.test(src[pos - 1] ?? "")) {
    return false;
  }
  const sign = src[pos + 1] === "$" ? "$$" : "$";
  const start = pos + sign.length;
  const end = signAfter(src, start, Math.min(posMax, start + LONGEST_FORMULA));
  const content = src.slice(start, end);
  const after = src.slice(end, end + sign.length + 1);
  if (end === -1 || end + sign.length > posMax || content.trim() === "" || content.includes("`") || !after.startsWith(sign)) {
    return false;
  }
  if (/[\p{L}\p{N}$]/u.test(after[sign.length] ?? "") || (sign === "$" && content !== content.trim())) {
    return false;
  }
  if (!silent) {
    const token = state.push("math_inline", "", 0);
    token.markup = sign;
    token.content = content.trim();
    token.meta = { inner: start + content.length - content.trimStart().length };
  }
  state.pos = end + sign.length;
  return true;
}

/** The next `$` without a backslash before it; -1 for none. @param {string} text @param {number} from @param {number} end */
function signAfter(text, from, end) {
  for (let at = from; at < end; at++) {
    if (text[at] === "\\") {
      at++;
    } else if (text[at] === "$") {
      return at;
    }
  }
  return -1;
}

/** @param {any} state @param {number} line @param {number} end @param {boolean} silent */
export function formulaBlock(state, line, end, silent) {
  const last = lineOf(state, line)?.startsWith("$$") ? lastLine(state, line, end) : -1;
  const raw = last === -1 ? "" : state.getLines(line, last + 1, state.sCount[line], false);
  const inner = raw.slice(2, raw.trimEnd().length - 2);
  if (inner.trim() === "" || raw.length > LONGEST_FORMULA) {
    return false;
  }
  if (!silent) {
    const token = state.push("math_block", "div", 0);
    token.map = [line, last + 1];
    token.content = inner.trim();
    token.meta = { lead: 2 + inner.length - inner.trimStart().length };
    state.line = last + 1;
  }
  return true;
}

/** The line that ends with the next `$$`; -1 if something stands behind it, or a blank line before it. @param {any} state @param {number} line @param {number} end */
function lastLine(state, line, end) {
  for (let next = line; next < end && !state.isEmpty(next) && state.sCount[next] >= state.blkIndent; next++) {
    const text = state.src.slice(state.bMarks[next] + state.tShift[next], state.eMarks[next]);
    const sign = text.indexOf("$$", next === line ? 2 : 0);
    if (sign !== -1) {
      return text.slice(sign + 2).trim() === "" ? next : -1;
    }
  }
  return -1;
}
