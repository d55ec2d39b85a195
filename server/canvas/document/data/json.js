// @ts-check
/** Where the values of a JSON text are, so that an edit of one leaves all other characters as they are. Pure. */

/** @typedef {{start: number, end: number}} Place */

const SPACE = /[ \t\n\r]*/y;
/** What can end a number or a word. */
const SCALAR_END = /[,\]}\s]/g;

/**
 * The place of a value. Of members with the same name the last one counts, as for JSON.parse.
 * @param {string} text  which JSON.parse reads
 * @param {readonly string[]} path  names of members and numbers of items, from the outside
 * @returns {Place}
 */
export function placeOf(text, path) {
  let start = afterSpace(text, 0);
  for (const step of path) {
    start = text[start] === "[" ? itemAt(text, start, Number(step)) : memberAt(text, start, step);
  }
  return { start, end: afterValue(text, start) };
}

/** The value that a source says, if it is a string, a number, true, false or null. @param {string} source @returns {{value: any}|null} */
export function readScalar(source) {
  try {
    const value = JSON.parse(source);
    return typeof value === "object" && value !== null ? null : { value };
  } catch {
    return null;
  }
}

/** @param {string} text @param {number} list @param {number} index */
function itemAt(text, list, index) {
  let at = afterSpace(text, list + 1);
  for (let left = index; left > 0; left--) {
    at = afterSpace(text, afterSpace(text, afterValue(text, at)) + 1);
  }
  return at;
}

/** @param {string} text @param {number} object @param {string} name */
function memberAt(text, object, name) {
  let found = -1;
  for (let at = object; text[at] !== "}"; ) {
    const key = afterSpace(text, at + 1);
    const end = afterString(text, key);
    const value = afterSpace(text, afterSpace(text, end) + 1);
    found = JSON.parse(text.slice(key, end)) === name ? value : found;
    at = afterSpace(text, afterValue(text, value));
  }
  return found;
}

/** @param {string} text @param {number} at */
function afterSpace(text, at) {
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
}

/** @param {string} text @param {number} at */
function afterValue(text, at) {
  if (text[at] === '"') {
    return afterString(text, at);
  }
  if (text[at] !== "{" && text[at] !== "[") {
    SCALAR_END.lastIndex = at;
    return SCALAR_END.exec(text)?.index ?? text.length;
  }
  for (let depth = 0; ; at++) {
    const sign = text[at];
    if (sign === '"') {
      at = afterString(text, at) - 1;
    } else if (sign === "{" || sign === "[") {
      depth++;
    } else if ((sign === "}" || sign === "]") && --depth === 0) {
      return at + 1;
    }
  }
}

/** @param {string} text @param {number} at */
function afterString(text, at) {
  let end = at;
  do {
    end = text.indexOf('"', end + 1);
  } while (isEscaped(text, end));
  return end + 1;
}

/** @param {string} text @param {number} at */
function isEscaped(text, at) {
  let before = at;
  while (text[before - 1] === "\\") {
    before--;
  }
  return (at - before) % 2 === 1;
}
