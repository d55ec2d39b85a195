// @ts-check
/** Where a text has changed, and what that does to places in it. Pure. */

/**
 * One replaced range: `old[start:end]` became `inserted` characters.
 * @typedef {{start: number, end: number, inserted: number}} Change
 */

/**
 * The smallest single range by which two texts differ; null if they are equal. It splits no surrogate pair.
 * @param {string} old
 * @param {string} text
 * @returns {Change|null}
 */
export function changeOf(old, text) {
  if (old === text) {
    return null;
  }
  const most = Math.min(old.length, text.length);
  let start = sameLength(most, (from, to) => old.slice(from, to) === text.slice(from, to));
  if (start > 0 && isHigh(old.charCodeAt(start - 1))) {
    start--;
  }
  const [oldEnd, textEnd] = [old.length, text.length];
  let tail = sameLength(
    most - start,
    (from, to) => old.slice(oldEnd - to, oldEnd - from) === text.slice(textEnd - to, textEnd - from),
  );
  if (tail > 0 && isLow(old.charCodeAt(old.length - tail))) {
    tail--;
  }
  return { start, end: old.length - tail, inserted: text.length - tail - start };
}

/**
 * Where a range is after a change: itself before it, moved behind it; null if the change reaches into it. Of an insertion
 * at one of its ends, the range takes nothing.
 * @template {{start: number, end: number}} R
 * @param {R} range
 * @param {Change} change
 * @returns {R|null}
 */
export function mapRange(range, change) {
  if (change.start >= range.end && !(change.start === range.start && change.end === range.start)) {
    return range;
  }
  if (change.end <= range.start) {
    const by = change.inserted - (change.end - change.start);
    return { ...range, start: range.start + by, end: range.end + by };
  }
  return null;
}

/**
 * The lines of a range, as operations count them: an `end` just after a line end names the line before.
 * @param {string} text
 * @param {number} start
 * @param {number} end
 */
export function linesOf(text, start, end) {
  const lineStart = 1 + countNewlines(text, 0, start);
  const last = end > start && text[end - 1] === "\n" ? end - 1 : end;
  return { lineStart, lineEnd: lineStart + countNewlines(text, start, last) };
}

/**
 * An offset in code points as one in UTF-16 code units.
 * @param {string} text
 * @param {number} codePoints
 */
export function utf16Offset(text, codePoints) {
  let offset = 0;
  for (let count = 0; count < codePoints && offset < text.length; count++) {
    offset += isHigh(text.charCodeAt(offset)) && isLow(text.charCodeAt(offset + 1)) ? 2 : 1;
  }
  return offset;
}

/**
 * How far two texts are the same. Comparing long slices takes a tenth of the time of comparing characters.
 * @param {number} most
 * @param {(from: number, to: number) => boolean} same
 */
function sameLength(most, same) {
  let known = 0;
  let end = most;
  while (known < end) {
    const middle = end === most && known === 0 ? most : (known + end + 1) >> 1;
    if (same(known, middle)) {
      known = middle;
    } else {
      end = middle - 1;
    }
  }
  return known;
}

/** @param {string} text @param {number} from @param {number} to */
function countNewlines(text, from, to) {
  let count = 0;
  for (let at = text.indexOf("\n", from); at !== -1 && at < to; at = text.indexOf("\n", at + 1)) {
    count++;
  }
  return count;
}

/** @param {number} unit */
const isHigh = (unit) => unit >= 0xd800 && unit < 0xdc00;

/** @param {number} unit */
const isLow = (unit) => unit >= 0xdc00 && unit < 0xe000;
