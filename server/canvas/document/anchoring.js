// @ts-check
/** Keeps what is read where it is while a text changes above it. Not every browser does it, and none for rewritten blocks. */

import { firstIndex } from "../binary_search.js";

/** So many blocks are remembered: those that the change removes cannot tell where the others are. */
const REMEMBERED = 8;

/**
 * Makes a change of a document so that the first block that is seen does not move.
 * @param {HTMLElement} scroller
 * @param {Element} content  its children hold the blocks
 * @param {() => void} change
 */
export function keepInPlace(scroller, content, change) {
  // At its beginning, a document is read from its beginning.
  const seen = scroller.scrollTop > 0 ? firstSeen(content, scroller.getBoundingClientRect().top) : [];
  change();
  const left = seen.find(({ block }) => block.isConnected);
  const moved = left ? left.block.getBoundingClientRect().top - left.top : 0;
  if (Math.abs(moved) >= 1) {
    scroller.scrollTop += moved;
  }
}

/**
 * The first blocks that begin below a height; or, if there are none, those that end below it.
 * @param {Element} content
 * @param {number} height
 */
function firstSeen(content, height) {
  const holders = content.children;
  const holder = holders[firstIndex(holders.length, (at) => holders[at].getBoundingClientRect().bottom > height)];
  const blocks = [holder, holder?.nextElementSibling].flatMap((each) => [...(each?.children ?? [])]);
  const placed = blocks.map((block) => ({ block, ...placeOf(block) })).filter(({ bottom }) => bottom > height);
  const whole = placed.filter(({ top }) => top >= height);
  return (whole.length > 0 ? whole : placed).slice(0, REMEMBERED);
}

/** @param {Element} block */
function placeOf(block) {
  const { top, bottom } = block.getBoundingClientRect();
  return { top, bottom };
}
