// @ts-check
/** What the versions of an artifact allow and how they are told. Pure. */

import { changesOf } from "../state/text.js";
import { LOCALES, formatNumber, plainName, shorten } from "../words.js";

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
 * @property {string} [via]  the program that the user used
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
 * The version that another one is compared with at first: for the current one its parent, or the newest if it is the first; for an
 * old one the current.
 * @param {Version[]} versions
 * @param {number} shown
 */
export function counterpartOf(versions, shown) {
  const current = versions.find((version) => version.current)?.number ?? shown;
  return shown === current ? versions[shown - 1]?.parent || (shown > 1 ? shown - 1 : versions.length) : current;
}

/** The user whom all who have the server's token are. */
const EVERYBODY = "shared";

/** Who made a version: the user, or the agent, and for whom, if that user has a name. @param {Version} version */
export function authorOf({ author, by = "", via = "" }) {
  const named = by === EVERYBODY ? "" : by;
  const who = author === "user" ? named || "You" : named ? `Agent for ${named}` : "Agent";
  return via ? `${who} via ${plainName(via)}` : who;
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
 * @param {readonly string[]} [locales]
 */
export function timeOf(timestamp, now, locales = LOCALES) {
  if (!timestamp) {
    return "";
  }
  const at = new Date(timestamp);
  /** @type {Intl.DateTimeFormatOptions} */
  const time = { hour: "2-digit", minute: "2-digit" };
  const today = at.toDateString() === now.toDateString();
  return at.toLocaleString([...locales], today ? time : { day: "numeric", month: "short", ...time });
}

/** The hour in which a version was made. @param {string|undefined} timestamp @param {Date} now */
export function hourOf(timestamp, now) {
  return timestamp ? timeOf(new Date(new Date(timestamp).setMinutes(0, 0, 0)).toISOString(), now) : "";
}

const SECTION_CHARACTERS = 40;
const WORD = /[\p{L}\p{N}]+(?:[’'-][\p{L}\p{N}]+)*/gu;

/**
 * What a version has changed, such as `+12 −3 words in Safety`; empty if no word is another one.
 * @param {string} before
 * @param {string} text
 * @param {{text: string, start: number}[]} headings  of `text`
 */
export function changeWords(before, text, headings) {
  let [by, added, removed] = [0, 0, 0];
  /** @type {Set<string>} */
  const sections = new Set();
  for (const { start, end, inserted } of changesOf(before, text)) {
    const at = start + by;
    // Words that are changed in part are counted whole.
    const [left, right] = [/[\p{L}\p{N}’'-]*$/u.exec(text.slice(0, at))?.[0] ?? "", /^[\p{L}\p{N}’'-]*/u.exec(text.slice(at + inserted))?.[0] ?? ""];
    const counts = countChanged(wordsOf(left + before.slice(start, end) + right), wordsOf(left + text.slice(at, at + inserted) + right));
    removed += counts.removed;
    added += counts.added;
    by += inserted - (end - start);
    sections.add(headings.findLast((heading) => heading.start <= at)?.text ?? "");
  }
  const [section] = sections;
  const signs = [added && `+${formatNumber(added)}`, removed && `−${formatNumber(removed)}`].filter(Boolean).join(" ");
  return signs && `${signs} ${added + removed === 1 ? "word" : "words"}${sections.size === 1 && section ? ` in ${shorten(section, SECTION_CHARACTERS)}` : ""}`;
}

/** @param {string} text */
const wordsOf = (text) => text.match(WORD) ?? [];

/** How many words differ between the first and the last that are the same. @param {string[]} old @param {string[]} next */
function countChanged(old, next) {
  const shorter = Math.min(old.length, next.length);
  let [first, last] = [0, 0];
  while (first < shorter && old[first] === next[first]) {
    first++;
  }
  while (last < shorter - first && old[old.length - 1 - last] === next[next.length - 1 - last]) {
    last++;
  }
  return { removed: old.length - first - last, added: next.length - first - last };
}
