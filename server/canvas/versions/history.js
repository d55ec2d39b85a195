// @ts-check
/** What the versions of an artifact allow and how they are told. Pure. */

import { plainName } from "../words.js";

/**
 * A version as `GET /artifacts/{context}/{artifact}/versions` lists it.
 * @typedef {object} Version
 * @property {number} number
 * @property {"agent"|"user"} author
 * @property {number} parent  0 for none
 * @property {boolean} current
 * @property {boolean} [pruned]  its content was removed
 * @property {boolean} [incomplete]
 * @property {string} [timestamp]
 * @property {string} [by]  the user who asked for it
 * @property {string} [request]
 */

/**
 * Whether there is something to undo and to redo: the undo line is the newest version and its parents. A version whose
 * content was removed cannot be gone to.
 * @param {Version[]} versions  all, the oldest first
 * @returns {{undo: boolean, redo: boolean}}
 */
export function stepsOf(versions) {
  const current = versions.find((version) => version.current);
  const before = versions[(current?.parent ?? 0) - 1];
  let after = versions.at(-1);
  while (after && after.parent !== current?.number) {
    after = versions[after.parent - 1];
  }
  return { undo: Boolean(before && !before.pruned), redo: Boolean(after && !after.pruned) };
}

/**
 * The version that another one is compared with at first: for the current one its parent, for an old one the current.
 * @param {Version[]} versions
 * @param {number} shown
 */
export function counterpartOf(versions, shown) {
  const current = versions.find((version) => version.current)?.number ?? shown;
  return shown === current ? versions[shown - 1]?.parent || Math.max(1, shown - 1) : current;
}

/** The user whom all who have the server's token are. */
const EVERYBODY = "shared";

/** Who made a version: the user, or the agent, and for whom, if that user has a name. @param {Version} version */
export function authorOf({ author, by = "" }) {
  const named = by === EVERYBODY ? "" : by;
  return author === "user" ? named || "You" : named ? `Agent for ${named}` : "Agent";
}

/** What the request of a user says that consists of an operation alone. */
const OPERATIONS = new Map([["put", "Your changes"], ["restore", "Restored"]]);

/** What a version was made for. @param {Version} version */
export function requestOf({ author, request = "" }) {
  return author === "user" ? (OPERATIONS.get(request) ?? (plainName(request) || "Your changes")) : plainName(request) || "Written";
}

/**
 * When a version was made: the time on the same day, else the date as well.
 * @param {string|undefined} timestamp
 * @param {Date} now
 */
export function timeOf(timestamp, now) {
  if (!timestamp) {
    return "";
  }
  const at = new Date(timestamp);
  /** @type {Intl.DateTimeFormatOptions} */
  const time = { hour: "2-digit", minute: "2-digit" };
  const today = at.toDateString() === now.toDateString();
  return at.toLocaleString(undefined, today ? time : { day: "numeric", month: "short", ...time });
}
