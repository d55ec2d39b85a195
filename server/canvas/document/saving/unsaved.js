// @ts-check
/**
 * What was typed into a document and is not saved yet, beside what comes from the server. Pure.
 *
 * Rules:
 * 1. One put is on its way at a time: `sent` are the changes that it has of `base`, `local` those that came after them. What is
 *    shown is `base` with both.
 * 2. While a put is on its way, nothing is taken over from the server: the version that it makes has what was typed, too.
 * 3. A new version of the server is taken over, and what was typed is moved over its changes, unless both have changed the same
 *    words. Then the base stays, so that the next put is merged by the server, or refused.
 * 4. What was refused is shown beside the current version, and the user decides (`pieces`).
 * 5. Versions come in the order in which they became current. Their numbers need not grow: undo makes an older one current.
 * 6. A put whose answer did not arrive is sent again as it was, under its own id: the server makes one version of it.
 */

import { ChangeSet, Text } from "../../vendor/codemirror.js";
import { diff } from "../../vendor/merge.js";
import { threeWay } from "./merging.js";

/** @typedef {import("./merging.js").Piece} Piece */
/** @typedef {{version: number, text: string}} Version */

/**
 * @typedef {object} Unsaved
 * @property {number} version  that `base` is the text of
 * @property {string} base
 * @property {{id: string, text: string, changes: any, made: number, early: boolean, step?: boolean}|null} sent  `made`: the
 *     version that it has become, 0 if it is not known yet; `early`: that version may have come before this page was there;
 *     `step`: it is no put but an undo or redo, after which an older version comes once more
 * @property {any} local
 * @property {string} text  what is shown
 * @property {Version|null} newest  of the server, if it is not taken over
 * @property {number[]} seen  the versions that have come lately
 * @property {number} refused  the version with which a put could not be merged, or 0
 *
 * What comes of an event: the new state, and how what is shown changes by it.
 * @typedef {{state: Unsaved, changes: any}} Step
 */

/** So many versions are remembered. */
const LATELY = 100;

const PRECISION = { scanLimit: 2000, timeout: 50 };

/** @param {number} version @param {string} text @returns {Unsaved} */
export function opened(version, text) {
  return { version, base: text, sent: null, local: ChangeSet.empty(text.length), text, newest: null, seen: [version], refused: 0 };
}

/** @param {Unsaved} state */
export function isSaved({ sent, local, refused }) {
  return !sent && local.empty && !refused;
}

/** Whether a put can be sent. @param {Unsaved} state */
export function isReady({ sent, local, refused }) {
  return !sent && !local.empty && !refused;
}

/**
 * @param {Unsaved} state
 * @param {any} changes  of what is shown
 * @param {string} text  what is shown now
 * @returns {Unsaved}
 */
export function typed(state, changes, text) {
  return { ...state, local: state.local.compose(changes), text };
}

/** A put begins: of `text`, made of `version`. @param {Unsaved} state @param {string} id @returns {Unsaved} */
export function sending(state, id) {
  const { text, local } = state;
  return { ...state, sent: { id, text, changes: local, made: 0, early: false }, local: ChangeSet.empty(text.length) };
}

/** What was typed and taken back again is nothing to save. @param {Unsaved} state @returns {Step} */
export function reduced(state) {
  return isReady(state) && state.text === state.base ? progress({ ...state, local: ChangeSet.empty(state.text.length) }) : still(state);
}

/** The document goes back or forward to a version that it had, with the text that is shown. @param {Unsaved} state @param {string} id @returns {Unsaved} */
export function stepping(state, id) {
  const next = sending(state, id);
  return { ...next, sent: next.sent && { ...next.sent, step: true } };
}

/** The server has a version. @param {Unsaved} state @param {number} version @param {string} text @returns {Step} */
export function arrived(state, version, text) {
  const known = state.newest ?? { version: state.version, text: state.base };
  if (version === known.version && text === known.text) {
    return still({ ...state, refused: state.newest ? state.refused : 0 });
  }
  return progress({ ...state, newest: { version, text }, seen: [...state.seen, version].slice(-LATELY) });
}

/**
 * The put has made a version.
 * @param {Unsaved} state
 * @param {number} made
 * @param {boolean} [early]  it is not waited for: it has come and gone unseen
 * @returns {Step}
 */
export function acknowledged(state, made, early = false) {
  return state.sent ? progress({ ...state, sent: { ...state.sent, made, early: early || state.sent.early } }) : still(state);
}

/** The put cannot be merged with a version. @param {Unsaved} state @param {number} version @returns {Step} */
export function refused(state, version) {
  return progress({ ...takenBack(state), refused: version });
}

/** The put was not made, and may be sent again. @param {Unsaved} state @returns {Step} */
export function failed(state) {
  return progress({ ...takenBack(state), refused: 0 });
}

/** @param {Unsaved} state */
function takenBack(state) {
  return state.sent ? { ...state, local: state.sent.changes.compose(state.local), sent: null } : state;
}

/**
 * What there is to decide: the text in pieces, some of which have two forms. Null if there is nothing to decide, or nothing has
 * come yet with which it could have been refused.
 * @param {Unsaved} state
 * @returns {Piece[]|null}
 */
export function pieces(state) {
  const { refused, newest, base, text } = state;
  return refused && newest ? threeWay(base, newest.text, text) : null;
}

/** @param {Unsaved} state @param {number} version */
function hasCome({ seen, newest, sent, version: base }, version) {
  if (sent?.step) {
    return newest?.version === version;
  }
  return seen.includes(version) || (newest?.version ?? base) >= version;
}

/** The user has decided: this text goes over the newest version. @param {Unsaved} state @param {string} text @returns {Step} */
export function resolved(state, text) {
  const { version, text: base } = state.newest ?? { version: state.version, text: state.base };
  const local = changesBetween(base, text);
  return { state: { ...state, version, base, sent: null, local, text, newest: null, refused: 0 }, changes: changesBetween(state.text, text) };
}

/** @param {Unsaved} state @returns {Step} */
function progress(state) {
  const { sent, newest, refused } = state;
  if (sent) {
    const known = newest ?? { version: state.version, text: state.base };
    return sent.made && (sent.early || hasCome(state, sent.made)) ? settled(state, sent, known) : still(state);
  }
  if (refused) {
    const parts = pieces(state);
    return parts && parts.every((piece) => "text" in piece) ? resolved(state, joined(parts)) : still(state);
  }
  return newest ? takenOver(state, newest) : still(state);
}

/** The version of the put is there. What was typed since the put is moved over what it was merged with. @param {Unsaved} state @param {NonNullable<Unsaved["sent"]>} sent @param {Version} known */
function settled(state, sent, known) {
  const since = { ...state, base: sent.text, sent: null, newest: null };
  const step = sent.text === known.text ? still({ ...since, ...known, base: known.text, text: state.text }) : takenOver(since, known);
  // The text of the put is no version of the server: what touches it, only the user can decide.
  return step.state.newest ? progress({ ...step.state, refused: known.version }) : step;
}

/** @param {Unsaved} state @param {Version} version @returns {Step} */
function takenOver(state, { version, text }) {
  const theirs = changesBetween(state.base, text);
  if (touch(state.local, theirs, state.base)) {
    return still({ ...state, newest: { version, text } });
  }
  const changes = theirs.map(state.local, true);
  const local = state.local.map(theirs);
  return { state: { ...state, version, base: text, local, text: applied(changes, state.text), newest: null }, changes };
}

/** @param {Unsaved} state @returns {Step} */
const still = (state) => ({ state, changes: null });

/** @param {Piece[]} parts  without two forms */
const joined = (parts) => parts.map((piece) => ("text" in piece ? piece.text : "")).join("");

/**
 * Where a place of the server's text is in what is shown; null while the two cannot be compared.
 * @template {{start: number, end: number}} R
 * @param {Unsaved} state
 * @param {number} version  that the range is of
 * @param {R} range
 * @returns {R|null}
 */
export function placed(state, version, range) {
  if (version !== state.version) {
    return null;
  }
  const all = state.sent ? state.sent.changes.compose(state.local) : state.local;
  return { ...range, start: all.mapPos(range.start, 1), end: Math.max(all.mapPos(range.start, 1), all.mapPos(range.end, -1)) };
}

/** @param {string} before @param {string} after @returns {any} */
export function changesBetween(before, after) {
  const specs = diff(before, after, PRECISION).map(({ fromA, toA, fromB, toB }) => ({
    from: fromA,
    to: toA,
    insert: Text.of(after.slice(fromB, toB).split("\n")),
  }));
  return ChangeSet.of(specs, before.length);
}

/** @param {any} changes @param {string} text */
export function applied(changes, text) {
  return changes.empty ? text : changes.apply(Text.of(text.split("\n"))).toString();
}

const WORD = /[\p{L}\p{N}_]/u;

/**
 * Whether two changes of a text reach into the same words, or stand side by side.
 * @param {any} mine
 * @param {any} theirs
 * @param {string} text
 */
function touch(mine, theirs, text) {
  const ranges = wordsOf(mine, text);
  return wordsOf(theirs, text).some((their) => ranges.some((my) => my.start <= their.end && their.start <= my.end));
}

/** @param {any} changes @param {string} text */
function wordsOf(changes, text) {
  /** @type {{start: number, end: number}[]} */
  const ranges = [];
  changes.iterChangedRanges((/** @type {number} */ from, /** @type {number} */ to) => {
    let start = from;
    let end = to;
    while (start > 0 && WORD.test(text[start - 1])) {
      start--;
    }
    while (end < text.length && WORD.test(text[end])) {
      end++;
    }
    ranges.push({ start, end });
  }, true);
  return ranges;
}

// --- storing

/** As JSON, to be kept over a reload. @param {Unsaved} state */
export function toStored({ version, base, sent, local, refused }) {
  return { version, base, refused, sent: sent && { id: sent.id, changes: sent.changes.toJSON() }, local: local.toJSON() };
}

/** @param {any} stored  of `toStored` @returns {Unsaved} */
export function fromStored({ version, base, sent, local, refused }) {
  const changes = sent && ChangeSet.fromJSON(sent.changes);
  const put = changes ? { id: sent.id, changes, text: applied(changes, base), made: 0, early: true } : null;
  const after = ChangeSet.fromJSON(local);
  return { version, base, sent: put, local: after, text: applied(after, put?.text ?? base), newest: null, seen: [version], refused };
}
