// @ts-check
/**
 * Text of comma or tab separated values (RFC 4180), with the place of each cell in it: an edit of one cell leaves all other
 * bytes as they are. Pure.
 *
 * Rule 1: cells are separated as in the text, and lines end as they do there: `\n`, `\r\n` or `\r`.
 * Rule 2: a quote within a cell that does not begin with one is a character like others.
 * Rule 3: what has no clear reading, such as a quote that is never closed, is refused with its line.
 */

import { TEXT, say } from "../../strings.js";

/** A row is the start and the end of each of its cells, one after the other. @typedef {number[]} Row */
/** @typedef {{rows: Row[], broken: null}|{rows: null, broken: string}} Table  `broken` says why it is none */

const DELIMITERS = [",", ";", "\t", "|"];
const QUOTE = '"';
/** A spreadsheet takes a cell that begins so for a formula. A plain number is none. */
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?%?$/;

/** What separates the cells: a tab in a TSV file, otherwise what is most frequent in the first line. @param {string} text @param {boolean} isTabbed */
export function delimiterOf(text, isTabbed) {
  const first = text.slice(0, 10_000).replace(/"[^"]*"/g, "").split(/[\r\n]/, 1)[0];
  const count = (/** @type {string} */ sign) => first.split(sign).length;
  return isTabbed ? "\t" : DELIMITERS.reduce((best, sign) => (count(sign) > count(best) ? sign : best));
}

/** @param {string} text @param {string} delimiter @returns {Table} */
export function parseCsv(text, delimiter) {
  /** @type {Row[]} */
  const rows = [];
  /** @type {Row} */
  let row = [];
  const broken = (/** @type {string} */ why, /** @type {number} */ at) => ({ rows: null, broken: say(why, { line: text.slice(0, at).split(/\r\n|[\r\n]/).length }) });
  for (let at = text.startsWith("\uFEFF") ? 1 : 0; ; ) {
    const start = at;
    if (text[at] === QUOTE) {
      do {
        at = text.indexOf(QUOTE, at + 1) + 1;
        if (at === 0) {
          return broken(TEXT.quoteOpen, start);
        }
      } while (text[at] === QUOTE);
      if (at < text.length && text[at] !== delimiter && text[at] !== "\n" && text[at] !== "\r") {
        return broken(TEXT.quoteClosed, at);
      }
    } else {
      while (at < text.length && text[at] !== delimiter && text[at] !== "\n" && text[at] !== "\r") {
        at++;
      }
    }
    row.push(start, at);
    if (text[at] === delimiter) {
      at++;
      continue;
    }
    rows.push(row);
    row = [];
    at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
    if (at >= text.length) {
      return { rows, broken: null };
    }
  }
}

/** What a cell says; empty for one that its row does not have. @param {string} text @param {Row} row @param {number} column */
export function cellText(text, row, column) {
  const source = text.slice(row[2 * column], row[2 * column + 1]);
  return 2 * column >= row.length ? "" : source.startsWith(QUOTE) ? source.slice(1, -1).replaceAll('""', QUOTE) : source;
}

/** A value as a cell. @param {string} value @param {string} delimiter @param {boolean} isQuoted  also where it needs no quotes */
export function cellSource(value, delimiter, isQuoted) {
  return isQuoted || value.includes(delimiter) || /["\r\n\uFEFF]/.test(value) ? `"${value.replaceAll(QUOTE, '""')}"` : value;
}

/**
 * The change of the text that gives a cell of its row another value. It is quoted as it was, and where it has to be: an empty
 * cell alone would be no row.
 * @param {string} text @param {string} delimiter @param {Row} row @param {number} column @param {string} value
 */
export function cellChange(text, delimiter, row, column, value) {
  const [start, end] = row.slice(2 * column);
  const isQuoted = text[start] === QUOTE || (value === "" && row.length === 2);
  return { start, end, text: cellSource(value, delimiter, isQuoted) };
}

/** Whether a spreadsheet would run a cell. @param {string} value */
export const isFormula = (value) => FORMULA.test(value) && !NUMBER.test(value);

/** Values for a spreadsheet, in which none is run: an apostrophe makes it a text. @param {string[][]} rows @param {string} delimiter */
export function forSpreadsheet(rows, delimiter) {
  const cell = (/** @type {string} */ value) => cellSource(isFormula(value) ? `'${value}` : value, delimiter, false);
  return rows.map((row) => (row.length === 1 && row[0] === "" ? '""' : row.map(cell).join(delimiter))).join("\r\n");
}
