// @ts-check
/**
 * What the palette finds: actions, documents, versions, conversations, and lines of documents. Pure.
 *
 * Rule 1: every word of the query has to be in an entry, wherever and in either case. What begins with the query comes first, then
 * what has a word that does; otherwise entries stay in the order in which they are given.
 * Rule 2: without a query there are actions, documents, headings and the newest conversations, and no lines.
 */

import { shorten } from "../words.js";

/**
 * @typedef {object} Entry
 * @property {"action"|"document"|"heading"|"version"|"conversation"|"line"} kind
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
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter(({ text, detail = "" }) => words.every((word) => `${text} ${detail}`.toLowerCase().includes(word)));
  return words.length ? sortedBy(found, ({ text }) => rankOf(text.toLowerCase(), query.trim().toLowerCase())).slice(0, MOST) : found.slice(0, MOST);
}

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
  const wanted = query.trim().toLowerCase();
  if (wanted.length < NEEDED) {
    return [];
  }
  const found = [];
  // The only letter that is longer in lower case.
  const lower = text.replaceAll("İ", "i").toLowerCase();
  for (let at = lower.indexOf(wanted), line = 1, from = 0; at >= 0 && found.length < MOST_LINES; ) {
    line += text.slice(from, at).split("\n").length - 1;
    const end = text.indexOf("\n", at);
    const begin = text.lastIndexOf("\n", at - 1) + 1;
    found.push({ line, text: shorten(text.slice(begin, end < 0 ? undefined : end).trim(), LINE_CHARACTERS), start: at, end: at + wanted.length });
    from = at;
    at = end < 0 ? -1 : lower.indexOf(wanted, end);
  }
  return found;
}

/** The number of a version that a query names: `12`, `v12`, `version 12`; null for none. @param {string} query */
export function versionIn(query) {
  const named = /^(?:v|version)?\s*(\d{1,6})$/i.exec(query.trim());
  return named ? Number(named[1]) : null;
}
