// @ts-check
/**
 * What the palette finds: actions, documents, versions, conversations, and lines of documents. Pure.
 *
 * Rule 1: every word of the query has to be in an entry, wherever and in either case. What begins with the query comes first, then
 * what has a word that does; otherwise entries stay in the order in which they are given.
 * Rule 2: without a query there are actions, documents, headings and the newest conversations, and no lines.
 * Rule 3: lines of other conversations come from the server (`texts.js`), below all others, so that they move none of them.
 */

import { shorten } from "../words.js";

/**
 * @typedef {object} Entry
 * @property {"action"|"document"|"heading"|"version"|"conversation"|"line"|"elsewhere"} kind  `elsewhere`: a line of another conversation
 * @property {string} text  what is searched and shown
 * @property {string} [detail]  shown beside it
 * @property {() => void} run
 */

export const MOST = 40;
const MOST_LINES = 10;
const LINE_CHARACTERS = 120;
const NEEDED = 2;

/** The entries that match, best first. @param {string} query @param {Entry[]} entries @returns {Entry[]} */
export function findEntries(query, entries) {
  const words = wordsOf(query);
  const found = entries.filter(({ text, detail = "" }) => words.every((word) => `${text} ${detail}`.toLowerCase().includes(word)));
  return words.length ? sortedBy(found, ({ text }) => rankOf(text.toLowerCase(), query.trim().toLowerCase())).slice(0, MOST) : found.slice(0, MOST);
}

/** @param {string} query */
const wordsOf = (query) => lower(query).split(/\s+/).filter(Boolean);

/** In lower case, and as long: this letter alone would be longer. @param {string} text */
const lower = (text) => text.replaceAll("İ", "i").toLowerCase();

/** 0: it begins so; 1: one of its words does; 2: neither. @param {string} text @param {string} query */
function rankOf(text, query) {
  return text.startsWith(query) ? 0 : text.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(query)) ? 1 : 2;
}

/** @template T @param {T[]} items @param {(item: T) => number} key @returns {T[]} */
const sortedBy = (items, key) => items.map((item) => ({ item, at: key(item) })).sort((a, b) => a.at - b.at).map(({ item }) => item);

/**
 * The lines of a text that contain a query.
 * @param {string} query
 * @param {string} text
 * @returns {{line: number, text: string, start: number, end: number}[]}  `start` and `end` are the place of the query
 */
export function findLines(query, text) {
  const wanted = lower(query.trim());
  if (wanted.length < NEEDED) {
    return [];
  }
  const found = [];
  const searched = lower(text);
  for (let at = searched.indexOf(wanted), line = 1, from = 0; at >= 0 && found.length < MOST_LINES; ) {
    line += text.slice(from, at).split("\n").length - 1;
    const end = text.indexOf("\n", at);
    const begin = text.lastIndexOf("\n", at - 1) + 1;
    found.push({ line, text: shorten(text.slice(begin, end < 0 ? undefined : end).trim(), LINE_CHARACTERS), start: at, end: at + wanted.length });
    from = at;
    at = end < 0 ? -1 : searched.indexOf(wanted, end);
  }
  return found;
}

/**
 * The place of the first word of a query in a line that was found; in another one, if the text has changed since.
 * @param {string} query
 * @param {string} text
 * @param {number} line  the number of the line when it was found
 * @returns {{start: number, end: number}|null}  the whole line if the server finds more in it than this page
 */
export function findPlace(query, text, line) {
  const words = wordsOf(query);
  const lines = text.split("\n");
  const has = (/** @type {string|undefined} */ each) => each !== undefined && words.every((word) => lower(each).includes(word));
  const at = has(lines[line - 1]) ? line - 1 : lines.findIndex(has);
  const number = at < 0 ? line - 1 : at;
  if (number >= lines.length) {
    return null;
  }
  const begin = lines.slice(0, number).reduce((sum, each) => sum + each.length + 1, 0);
  const shown = lower(lines[number]);
  const [first] = words.map((word) => ({ start: shown.indexOf(word), length: word.length })).filter(({ start }) => start >= 0).sort((a, b) => a.start - b.start);
  const { start, length } = first ?? { start: 0, length: shown.length };
  return { start: begin + start, end: begin + start + length };
}

/** The number of a version that a query names: `12`, `v12`, `version 12`; null for none. @param {string} query */
export function versionIn(query) {
  const named = /^(?:v|version)?\s*(\d{1,6})$/i.exec(query.trim());
  return named ? Number(named[1]) : null;
}
