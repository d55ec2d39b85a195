// @ts-check
/**
 * The versions of a document that the page has seen, as the server's undo line has them: what takes back something that was
 * saved already is an `undo` of the document, no new version. Pure.
 */

/** @typedef {{version: number, text: string}} Version */
/** The versions from the oldest to the newest, and which one is current. @typedef {{versions: Version[], at: number}} UndoLine */

/** So many versions are kept. */
const LONGEST = 20;

/** @param {number} version @param {string} text @returns {UndoLine} */
export const begun = (version, text) => ({ versions: [{ version, text }], at: 0 });

/** Another version is current: one of the line, after undo or redo, or a new one. @param {UndoLine} line @param {number} version @param {string} text @returns {UndoLine} */
export function moved({ versions, at }, version, text) {
  const there = versions.findIndex((each) => each.version === version);
  if (there >= 0) {
    return { versions, at: there };
  }
  const kept = [...versions.slice(0, at + 1), { version, text }].slice(-LONGEST);
  return { versions: kept, at: kept.length - 1 };
}

/**
 * How the document gets to a text that it had: the nearest version with this text.
 * @param {UndoLine} line
 * @param {string} text
 * @returns {{op: "undo"|"redo", count: number, version: number}|null}
 */
export function stepsTo({ versions, at }, text) {
  const found = versions.map((each, index) => ({ ...each, index })).filter((each) => each.index !== at && each.text === text);
  const nearest = found.sort((a, b) => Math.abs(a.index - at) - Math.abs(b.index - at))[0];
  return nearest ? { op: nearest.index < at ? "undo" : "redo", count: Math.abs(nearest.index - at), version: nearest.version } : null;
}
