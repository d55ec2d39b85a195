// @ts-check
/** Two changed forms of a text as one text, in pieces: where both have changed the same words, the piece has both forms. Pure. */

import { ChangeSet, Text } from "../../vendor/codemirror.js";
import { diff } from "../../vendor/merge.js";

/** @typedef {{text: string}|{base: string, current: string, yours: string}} Piece */
/** @typedef {{start: number, end: number}} Range */
/** A range of the base, and which sides have changed it, or must be asked about it. @typedef {Range & {current?: boolean, yours?: boolean, contested?: boolean}} Place */

const PRECISION = { scanLimit: 2000, timeout: 50 };
const WORD = /[\p{L}\p{N}_]/u;

/** What makes one text of another. @param {string} before @param {string} after @returns {any} */
export function changesBetween(before, after) {
  const specs = diff(before, after, PRECISION).map(({ fromA, toA, fromB, toB }) => ({
    from: fromA,
    to: toA,
    insert: Text.of(after.slice(fromB, toB).split("\n")),
  }));
  return ChangeSet.of(specs, before.length);
}

/**
 * @param {string} base
 * @param {string} current
 * @param {string} yours
 * @param {readonly Range[]} [contested]  of the base: places where the server has found a conflict
 * @returns {Piece[]}
 */
export function threeWay(base, current, yours, contested = []) {
  const [theirs, mine] = [changesBetween(base, current), changesBetween(base, yours)];
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (const place of placesOf(base, theirs, mine, contested)) {
    const { start, end } = place;
    const forms = { base: base.slice(start, end), current: formOf(current, theirs, place), yours: formOf(yours, mine, place) };
    const isDecided = forms.current === forms.yours || !(place.contested || (place.current && place.yours));
    add(pieces, { text: base.slice(at, start) });
    add(pieces, isDecided ? { text: place.yours ? forms.yours : forms.current } : forms);
    at = end;
  }
  add(pieces, { text: base.slice(at) });
  return pieces;
}

/** Whether two changes of a text reach into the same words, or stand side by side. @param {string} base @param {any} theirs @param {any} mine */
export function touch(base, theirs, mine) {
  return placesOf(base, theirs, mine, []).some(({ current, yours }) => current && yours);
}

/** @param {Piece[]} pieces @param {Piece} piece */
function add(pieces, piece) {
  const last = pieces[pieces.length - 1];
  if (last && "text" in last && "text" in piece) {
    last.text += piece.text;
  } else if (!("text" in piece) || piece.text !== "") {
    pieces.push(piece);
  }
}

/** The changed ranges, in order; those that overlap or touch are one. @param {string} base @param {any} theirs @param {any} mine @param {readonly Range[]} contested */
function placesOf(base, theirs, mine, contested) {
  /** @type {Place[]} */
  const all = [
    ...wordsOf(base, theirs).map((range) => ({ ...range, current: true })),
    ...wordsOf(base, mine).map((range) => ({ ...range, yours: true })),
    ...contested.map(({ start, end }) => ({ start, end, contested: true })),
  ];
  /** @type {Place[]} */
  const places = [];
  for (const place of all.sort((a, b) => a.start - b.start || a.end - b.end)) {
    const last = places[places.length - 1];
    if (last && place.start <= last.end) {
      Object.assign(last, { ...place, start: last.start, end: Math.max(last.end, place.end) });
    } else {
      places.push(place);
    }
  }
  return places;
}

/** The words that changes reach into. @param {string} base @param {any} changes @returns {Range[]} */
function wordsOf(base, changes) {
  /** @type {Range[]} */
  const ranges = [];
  changes.iterChangedRanges((/** @type {number} */ from, /** @type {number} */ to) => {
    let [start, end] = [from, to];
    while (start > 0 && WORD.test(base[start - 1])) {
      start--;
    }
    while (end < base.length && WORD.test(base[end])) {
      end++;
    }
    ranges.push({ start, end });
  }, true);
  return ranges;
}

/** What one side makes of a place, which contains whole changes. @param {string} text @param {any} changes @param {Place} place */
const formOf = (text, changes, { start, end }) => text.slice(changes.mapPos(start, -1), changes.mapPos(end, 1));
