// @ts-check
/** Two changed forms of a text as one text, in pieces: where both have changed the same words, the piece has both forms. Pure. */

import { diff } from "../../vendor/merge.js";

/** @typedef {{text: string}|{base: string, current: string, yours: string}} Piece */
/** A changed range of the base, and where it is in the changed text. @typedef {{fromA: number, toA: number, fromB: number, toB: number}} Hunk */
/** Changes of both sides that touch. @typedef {{from: number, to: number, current: Hunk[], yours: Hunk[]}} Place */

const PRECISION = { scanLimit: 2000, timeout: 100 };
const WORD = /[\p{L}\p{N}_]/u;

/**
 * @param {string} base
 * @param {string} current
 * @param {string} yours
 * @returns {Piece[]}
 */
export function threeWay(base, current, yours) {
  const places = placesOf(base, wordHunks(base, current), wordHunks(base, yours));
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (const place of places) {
    add(pieces, { text: base.slice(at, place.from) });
    const theirs = formOf(base, current, place, place.current);
    const mine = formOf(base, yours, place, place.yours);
    const one = place.current.length === 0 || theirs === mine ? mine : place.yours.length === 0 ? theirs : null;
    add(pieces, one !== null ? { text: one } : { base: base.slice(place.from, place.to), current: theirs, yours: mine });
    at = place.to;
  }
  add(pieces, { text: base.slice(at) });
  return pieces;
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

/** The changes of whole words. @param {string} base @param {string} text @returns {Hunk[]} */
function wordHunks(base, text) {
  /** @type {Hunk[]} */
  const hunks = [];
  for (const { fromA, toA, fromB, toB } of diff(base, text, PRECISION)) {
    const hunk = { fromA, toA, fromB, toB };
    while (hunk.fromA > 0 && WORD.test(base[hunk.fromA - 1]) && hunk.fromB > 0 && base[hunk.fromA - 1] === text[hunk.fromB - 1]) {
      hunk.fromA--;
      hunk.fromB--;
    }
    while (hunk.toA < base.length && WORD.test(base[hunk.toA]) && hunk.toB < text.length && base[hunk.toA] === text[hunk.toB]) {
      hunk.toA++;
      hunk.toB++;
    }
    const before = hunks[hunks.length - 1];
    if (before && (hunk.fromA <= before.toA || hunk.fromB <= before.toB)) {
      before.toA = Math.max(before.toA, hunk.toA);
      before.toB = Math.max(before.toB, hunk.toB);
    } else {
      hunks.push(hunk);
    }
  }
  return hunks;
}

/** @param {string} base @param {Hunk[]} current @param {Hunk[]} yours @returns {Place[]} */
function placesOf(base, current, yours) {
  const all = [
    ...current.map((hunk) => ({ hunk, side: /** @type {const} */ ("current") })),
    ...yours.map((hunk) => ({ hunk, side: /** @type {const} */ ("yours") })),
  ].sort((a, b) => a.hunk.fromA - b.hunk.fromA || a.hunk.toA - b.hunk.toA);
  /** @type {Place[]} */
  const places = [];
  for (const { hunk, side } of all) {
    const last = places[places.length - 1];
    if (last && hunk.fromA <= last.to) {
      last.to = Math.max(last.to, hunk.toA);
      last[side].push(hunk);
    } else {
      places.push({ from: hunk.fromA, to: hunk.toA, current: [], yours: [], [side]: [hunk] });
    }
  }
  return places;
}

/** What one side makes of a place. @param {string} base @param {string} text @param {Place} place @param {Hunk[]} hunks */
function formOf(base, text, { from, to }, hunks) {
  let form = "";
  let at = from;
  for (const { fromA, toA, fromB, toB } of hunks) {
    form += base.slice(at, fromA) + text.slice(fromB, toB);
    at = toA;
  }
  return form + base.slice(at, to);
}
