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

/** Two texts are told to differ in at most two to the power of this many ranges. */
const DEPTH = 3;

/** So long a piece of a text is looked for in the other one, at so many places; a third of its length is enough in short texts. */
const PROBE = { longest: 48, places: 16, shortest: 8 };

/**
 * The ranges by which two texts differ, in order; not always the smallest ones, as it must not take longer than a frame has.
 * Between two changes stands what is there once in both texts.
 * @param {string} old
 * @param {string} text
 * @returns {Change[]}
 */
export function changesOf(old, text) {
  const change = changeOf(old, text);
  return change ? divide(old, text, change, change.start, DEPTH) : [];
}

/**
 * A change as several ones, if something in the middle of it is the same.
 * @param {string} old
 * @param {string} text
 * @param {Change} change
 * @param {number} at  where it is in `text`
 * @param {number} depth
 * @returns {Change[]}
 */
function divide(old, text, change, at, depth) {
  const [before, after] = [old.slice(change.start, change.end), text.slice(at, at + change.inserted)];
  const same = depth > 0 ? common(before, after) : null;
  if (!same) {
    return [change];
  }
  const { start, place, length } = same;
  const left = { start: change.start, end: change.start + start, inserted: place };
  const right = { start: left.end + length, end: change.end, inserted: after.length - place - length };
  return [...divide(old, text, left, at, depth - 1), ...divide(old, text, right, at + place + length, depth - 1)];
}

/**
 * A stretch that is there once in both of two texts, as long as it is the same.
 * @param {string} old
 * @param {string} text
 * @returns {{start: number, place: number, length: number}|null}
 */
function common(old, text) {
  const shorter = Math.min(old.length, text.length);
  const size = Math.min(PROBE.longest, Math.floor(shorter / 3));
  for (let nth = 0; size >= PROBE.shortest && nth < PROBE.places; nth++) {
    const start = Math.floor(((old.length - size) * middleFirst(nth)) / PROBE.places);
    const piece = old.slice(start, start + size);
    const place = onlyPlace(text, piece);
    if (place !== -1 && onlyPlace(old, piece) !== -1) {
      return widest(old, text, start, place, size);
    }
  }
  return null;
}

/** 8, 9, 7, 10, 6…: of 16 places those in the middle come first. @param {number} nth */
const middleFirst = (nth) => PROBE.places / 2 + (nth % 2 ? (nth + 1) / 2 : -nth / 2);

/** Where a piece is in a text; -1 if that is nowhere, or not in one place. @param {string} text @param {string} piece */
function onlyPlace(text, piece) {
  const place = text.indexOf(piece);
  return text.indexOf(piece, place + 1) === -1 ? place : -1;
}

/**
 * A stretch that is the same in two texts, as long as it can be. It splits no surrogate pair.
 * @param {string} old
 * @param {string} text
 * @param {number} start  of it in `old`
 * @param {number} place  of it in `text`
 * @param {number} length  that is known to be the same
 */
function widest(old, text, start, place, length) {
  const ahead = sameLength(Math.min(start, place), (from, to) => old.slice(start - to, start - from) === text.slice(place - to, place - from));
  const [end, stop] = [start + length, place + length];
  const behind = sameLength(Math.min(old.length - end, text.length - stop), (from, to) => old.slice(end + from, end + to) === text.slice(stop + from, stop + to));
  const first = isLow(old.charCodeAt(start - ahead)) ? ahead - 1 : ahead;
  const last = isHigh(old.charCodeAt(end + behind - 1)) ? behind - 1 : behind;
  return { start: start - first, place: place - first, length: first + length + last };
}

/**
 * Where a range is after changes, which are in order: itself before them, moved behind them; null if one reaches into it. Of an
 * insertion at one of its ends, the range takes nothing.
 * @template {{start: number, end: number}} R
 * @param {R} range
 * @param {readonly Change[]} changes
 * @returns {R|null}
 */
export function mapRange(range, changes) {
  let by = 0;
  for (const { start, end, inserted } of changes) {
    if (start >= range.end && !(start === range.start && end === range.start)) {
      break;
    }
    if (end > range.start) {
      return null;
    }
    by += inserted - (end - start);
  }
  return by === 0 ? range : { ...range, start: range.start + by, end: range.end + by };
}

/**
 * The texts between two, of which each differs from the one before by one change; the last one is `text`.
 * @param {string} old
 * @param {string} text
 * @returns {string[]}
 */
export function stepsTo(old, text) {
  let by = 0;
  const changes = changesOf(old, text);
  return changes.map(({ start, end, inserted }, nth) => {
    by += inserted - (end - start);
    return nth === changes.length - 1 ? text : text.slice(0, end + by) + old.slice(end);
  });
}

/** A text after changes of CodeMirror. @param {string} text @param {any} changes */
export function applyChanges(text, changes) {
  let result = "";
  let at = 0;
  /** @param {number} from @param {number} to @param {number} _ @param {number} __ @param {any} inserted */
  function apply(from, to, _, __, inserted) {
    result += text.slice(at, from) + inserted.toString();
    at = to;
  }
  changes.iterChanges(apply, true);
  return result + text.slice(at);
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
