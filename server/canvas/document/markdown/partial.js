// @ts-check
/**
 * How much of a Markdown text that is being written can be shown: what was begun and means something else when it is complete
 * is held back, so that nothing is seen first as signs and then as what they mean. Pure.
 *
 * - A line that has only signs yet (`-`, `##`, `` ``` ``), and the line of a fence with its language.
 * - The head of a table, until its second line is complete.
 * - `**`, `` ` ``, `[`, `$$` and the like without their ends, as far as their ends may be near.
 */

/** Further back nothing is held: what has no end there has none. In characters. */
const NEAR = { paragraph: 4000, emphasis: 120, code: 200, link: 600, formula: 600 };

/** A longer text is shown as it comes: looking through it takes time that it does not have. */
const LONGEST = 500_000;

const SIGNS = /^[ \t]*(?:[-*_=+#>~|:`]+|\d{1,9}[.)]?|[-*+] \[[ xX]?\]?|(?:`{3,}|~{3,})[^`\n]*)[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * @param {string} text
 * @returns {string}  a beginning of it
 */
export function completePart(text) {
  if (text.length > LONGEST) {
    return text;
  }
  const line = text.lastIndexOf("\n") + 1;
  const code = fenceAt(text, line);
  const last = text.slice(line);
  if (code) {
    return last.trim() !== "" && code.startsWith(last.trim()) ? text.slice(0, line) : text;
  }
  if (SIGNS.test(last)) {
    return beforeTable(text.slice(0, line));
  }
  const table = beforeTable(text);
  return table.length < text.length ? table : text.slice(0, openInline(text));
}

/** The sign of the code block that a line is in; "" for none. @param {string} text @param {number} line  where it starts */
function fenceAt(text, line) {
  let open = "";
  for (const one of text.slice(0, line).split("\n")) {
    const [, sign = ""] = FENCE.exec(one) ?? [];
    if (open === "") {
      open = sign;
    } else if (sign.startsWith(open) && one.trim() === sign) {
      open = "";
    }
  }
  return open;
}

/** The text without the head of a table whose second line is not complete yet. @param {string} text */
function beforeTable(text) {
  const start = paragraphStart(text);
  const [head, rule, ...rows] = text.slice(start).split("\n");
  const isHead = /^ {0,3}\|/.test(head) && rows.length === 0 && (rule === undefined || /^[ \t|:-]*$/.test(rule));
  return isHead ? text.slice(0, start) : text;
}

/** @param {string} text */
function paragraphStart(text) {
  const blank = Math.max(text.lastIndexOf("\n\n"), text.length - NEAR.paragraph);
  return blank < 0 ? 0 : text[blank] === "\n" ? blank + 2 : blank;
}

/** Where the last paragraph begins something that does not end in it; the end of the text if nowhere. @param {string} text */
function openInline(text) {
  const start = paragraphStart(text);
  let held = text.length;
  let at = start;
  while (at < held) {
    const [end, near] = construct(text, at);
    if (end === -1 && text.length - at <= near) {
      held = at;
    }
    at = end > at ? end : at + 1;
  }
  return held;
}

/**
 * Where what begins at a place ends: behind it, or -1 if that is not there yet; and how far away its end may be.
 * @param {string} text
 * @param {number} at
 * @returns {[number, number]}
 */
function construct(text, at) {
  const rest = text.slice(at, at + 4);
  const formula = /^\$\$|^\$(?![\s\d])/.exec(rest)?.[0];
  if (formula && !/\w/.test(text[at - 1] ?? "")) {
    const end = text.indexOf(formula, at + formula.length);
    return [end === -1 ? -1 : end + formula.length, formula === "$" ? NEAR.emphasis : NEAR.formula];
  }
  const sign = /^(?:`{1,3}|\*\*|__|~~|!?\[)/.exec(rest)?.[0] ?? (/^[*_](?:\w|$)/.test(rest) && !/\w/.test(text[at - 1] ?? "") ? rest[0] : "");
  if (sign.endsWith("[")) {
    return [linkEnd(text, at + sign.length), NEAR.link];
  }
  const close = sign ? text.indexOf(sign, at + sign.length) : at;
  const near = sign.startsWith("`") ? NEAR.code : NEAR.emphasis;
  return sign ? [close === -1 ? -1 : close + sign.length, near] : [text[at] === "\\" ? at + 2 : at + 1, 0];
}

/** Behind the `]` or `](…)` of a link; -1 if it is not there yet. @param {string} text @param {number} from */
function linkEnd(text, from) {
  const close = text.indexOf("]", from);
  if (close === -1 || close === text.length - 1) {
    return -1;
  }
  if (text[close + 1] !== "(") {
    return close + 1;
  }
  const end = text.indexOf(")", close);
  return end === -1 ? -1 : end + 1;
}
