// @ts-check
/** Which blocks of a text became which blocks of another one, and which of their words are others. Pure. */

import { firstIndex } from "../binary_search.js";

/** A block that became another one; `null` where there is none on that side. By index. @typedef {{old: number|null, next: number|null}} Row */
/** @typedef {{fromA: number, toA: number, fromB: number, toB: number}} Change */
/** @typedef {(a: string, b: string, precision: {scanLimit: number, timeout: number}) => readonly Change[]} Diff */

const PRECISION = { scanLimit: 2000, timeout: 200 };
/** Shorter stretches are in both of two texts by chance. In characters. */
const STRETCH = 6;
/** A block became another one if so much of the shorter one is in both. */
const SHARE = 0.4;
/** So many unchanged blocks are seen beside a change; of more, it takes this many to be folded. */
const BESIDE = 2;
const FOLDED = 2;

/**
 * @param {readonly string[]} old  the source of each block
 * @param {readonly string[]} next
 * @param {Diff} diff
 * @returns {Row[]}
 */
export function rowsOf(old, next, diff) {
  /** @type {Row[]} */
  const rows = [];
  let [a, b] = [0, 0];
  const same = (/** @type {number} */ until) => {
    while (a < until) {
      rows.push({ old: a++, next: b++ });
    }
  };
  for (const { fromA, toA, fromB, toB } of changesOfItems(old, next, diff)) {
    same(fromA);
    for (const { old: one, next: other } of paired(old.slice(fromA, toA), next.slice(fromB, toB), diff)) {
      rows.push({ old: one === null ? null : one + fromA, next: other === null ? null : other + fromB });
    }
    [a, b] = [toA, toB];
  }
  same(old.length);
  return rows;
}

/**
 * The changes by which one list becomes another one, by index. Each item is a character: if there are more than there are characters,
 * some share one, and seem equal.
 * @param {readonly string[]} old
 * @param {readonly string[]} next
 * @param {Diff} diff
 */
function changesOfItems(old, next, diff) {
  /** @type {Map<string, string>} */
  const signs = new Map();
  const sign = (/** @type {string} */ item) => {
    signs.has(item) || signs.set(item, signOf(signs.size));
    return signs.get(item);
  };
  return diff(old.map(sign).join(""), next.map(sign).join(""), PRECISION);
}

/** Below and above the surrogates. @param {number} nth */
const signOf = (nth) => String.fromCharCode(nth < 0xd800 ? nth : 0xe000 + (nth % 0x2000));

/** Pairs the blocks that have most in common, in order. @param {string[]} old @param {string[]} next @param {Diff} diff @returns {Row[]} */
function paired(old, next, diff) {
  const shared = sharedOf(old, next, diff);
  /** @type {Row[]} */
  const rows = [];
  let left = 0;
  const removed = (/** @type {number} */ until) => {
    while (left < until) {
      rows.push({ old: left++, next: null });
    }
  };
  next.forEach((block, at) => {
    let best = -1;
    for (const one of shared[at].keys()) {
      const isMore = best === -1 || (shared[at].get(one) ?? 0) > (shared[at].get(best) ?? 0);
      best = one >= left && isMore ? one : best;
    }
    const isPair = best !== -1 && (shared[at].get(best) ?? 0) >= SHARE * Math.min(old[best].length, block.length);
    isPair && removed(best);
    rows.push({ old: isPair ? left++ : null, next: at });
  });
  removed(old.length);
  return rows;
}

/** How many characters each new block shares with which old ones. @param {string[]} old @param {string[]} next @param {Diff} diff */
function sharedOf(old, next, diff) {
  /** @type {Map<number, number>[]} */
  const shared = next.map(() => new Map());
  const [was, is] = [old.join("\n"), next.join("\n")];
  const [olds, nexts] = [ends(old), ends(next)];
  let [a, b] = [0, 0];
  for (const change of [...diff(was, is, PRECISION), { fromA: was.length, toA: 0, fromB: 0, toB: 0 }]) {
    const isLong = change.fromA - a >= STRETCH;
    while (isLong && a < change.fromA) {
      const [one, other] = [firstIndex(olds.length, (at) => a < olds[at]), firstIndex(nexts.length, (at) => b < nexts[at])];
      const length = Math.min(change.fromA, olds[one], nexts[other] + a - b) - a;
      shared[other].set(one, (shared[other].get(one) ?? 0) + length);
      [a, b] = [a + length, b + length];
    }
    [a, b] = [change.toA, change.toB];
  }
  return shared;
}

/** Where each block ends in all of them, with the line end behind it. @param {string[]} blocks */
function ends(blocks) {
  let end = 0;
  return blocks.map(({ length }) => (end += length + 1));
}

/** Of writing without blanks, each character. */
const WORD = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]|[\p{L}\p{N}\p{M}_]+(?:[’'-][\p{L}\p{N}\p{M}_]+)*|[^]/gu;

/**
 * Where two texts have other words; words beside each other are one change.
 * @param {string} old
 * @param {string} next
 * @param {Diff} diff
 * @returns {Change[]}
 */
export function changedWords(old, next, diff) {
  const [was, is] = [old.match(WORD) ?? [], next.match(WORD) ?? []];
  const [a, b] = [startsOf(was), startsOf(is)];
  /** @type {Change[]} */
  const changes = [];
  for (const { fromA, toA, fromB, toB } of changesOfItems(was, is, diff)) {
    const last = changes.at(-1);
    if (last && /^[^\S\n]*$/.test(old.slice(last.toA, a[fromA]))) {
      [last.toA, last.toB] = [a[toA], b[toB]];
    } else {
      changes.push({ fromA: a[fromA], toA: a[toA], fromB: b[fromB], toB: b[toB] });
    }
  }
  return changes;
}

/** Where each word starts, and where the last one ends. @param {readonly string[]} words */
function startsOf(words) {
  let start = 0;
  return [0, ...words.map(({ length }) => (start += length))];
}

/**
 * The pieces of a text that each change is in, by index: from `first` to `end`, and the one `before` its place. One pass, as both
 * lists are in order.
 * @param {readonly {at: number, text: string}[]} pieces  at least one
 * @param {readonly Change[]} changes
 * @returns {{before: number, first: number, end: number}[]}
 */
export function placesOf(pieces, changes) {
  let [first, end] = [0, 0];
  return changes.map(({ fromB, toB }) => {
    while (first < pieces.length && pieces[first].at + pieces[first].text.length <= fromB) {
      first++;
    }
    end = Math.max(first, end);
    while (end < pieces.length && pieces[end].at < toB) {
      end++;
    }
    const isWithin = first < pieces.length && pieces[first].at < fromB;
    return { before: Math.max(0, isWithin ? first : first - 1), first, end };
  });
}

/**
 * The rows in stretches, of which those far from a change are folded.
 * @template R
 * @param {readonly R[]} rows
 * @param {(row: R) => boolean} isChanged
 * @returns {{rows: R[], folded: boolean}[]}
 */
export function foldRows(rows, isChanged) {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, at) => isChanged(row) && near.fill(1, Math.max(0, at - BESIDE), at + BESIDE + 1));
  /** @type {{rows: R[], folded: boolean}[]} */
  const stretches = [];
  let start = 0;
  for (let at = 1; at <= rows.length; at++) {
    if (at === rows.length || near[at] !== near[start]) {
      stretches.push({ rows: rows.slice(start, at), folded: !near[start] && at - start >= FOLDED });
      start = at;
    }
  }
  return stretches;
}
