// @ts-check
/**
 * What was typed into a document and is not saved yet, beside what comes from the server. Pure; saving.js acts on it.
 *
 *                  typed              sending            acknowledged           its version arrives
 *        saved ───────────▶ typed ───────────────▶ sent ───────────────▶ made ──────────────────────▶ saved, or typed
 *          ▲                 │ ▲ ▲                  │ │
 *          └──── reduced ────┘ │ └───── failed ─────┘ └─ refused ─▶ refused ─ a version arrives ─▶ conflict
 *                              │                                                                      │
 *                              └────────────────────────────── resolved ──────────────────────────────┘
 *
 * Rules:
 * 1. One put is on its way at a time: `sent` are the changes that it has of `base`, `local` those that came after them. What is
 *    shown is `base` with both.
 * 2. In `sent` and `made`, nothing is taken over from the server: the version that the put makes has what was typed, too.
 * 3. In `saved` and `typed`, a new version of the server is taken over, and what was typed is moved over its changes, unless both
 *    have changed the same words. Then the base stays, so that the next put is merged by the server, or refused.
 * 4. In `conflict`, the places that the server has named are shown beside the current version, and the user decides (`pieces`).
 * 5. Versions come in the order in which they became current. Their numbers need not grow: undo makes an older one current.
 * 6. A put whose answer did not arrive is sent again as it was, under its own id: the server makes one version of it.
 * 7. If undo or redo in the editor leads to a text that the document had, the document goes there by `undo` and `redo`: no
 *    version is made.
 */

import { ChangeSet } from "../../vendor/codemirror.js";
import { applyChanges } from "../../state/text.js";
import { changesBetween, threeWay, touch } from "./merging.js";

/** @typedef {import("./merging.js").Piece} Piece */
/** @typedef {import("./merging.js").Range} Range */
/** @typedef {{version: number, text: string}} Version */
/** The versions that the page has seen, as the server's undo line has them, and which one is current. @typedef {{versions: Version[], at: number}} UndoLine */
/** @typedef {{op: "undo"|"redo", count: number, version: number}} Steps */
/** @typedef {"saved"|"typed"|"sent"|"made"|"refused"|"conflict"} Phase */

/**
 * @typedef {object} Unsaved
 * @property {number} version  that `base` is the text of
 * @property {string} base
 * @property {{id: string, text: string, changes: any, made: number, early: boolean, steps: Steps|null}|null} sent  `made`: the
 *     version that it has become, 0 if it is not known yet; `early`: that version may have come before this page was there;
 *     `steps`: it is an undo or redo, which makes an older version current
 * @property {any} local
 * @property {string} text  what is shown
 * @property {boolean} undone  what was changed last was an undo or a redo
 * @property {Version|null} newest  of the server, if it is not taken over
 * @property {number[]} seen  the versions that have come lately
 * @property {UndoLine} line
 * @property {number} refused  the version with which a put could not be merged, or 0
 * @property {readonly Range[]} places  of the base, at which it could not
 *
 * What comes of an event: the new state, and how what is shown changes by it.
 * @typedef {{state: Unsaved, changes: any}} Step
 */

/** So many versions are remembered. */
const LATELY = 100;

/** @param {number} version @param {string} text @returns {Unsaved} */
export function open(version, text) {
  return { ...stateOf(version, text, null, ChangeSet.empty(text.length), text), line: moveLine(NO_LINE, version, text) };
}

/** @param {number} version @param {string} base @param {Unsaved["sent"]} sent @param {any} local @param {string} text @returns {Unsaved} */
function stateOf(version, base, sent, local, text) {
  return { version, base, sent, local, text, undone: false, newest: null, seen: [version], line: NO_LINE, refused: 0, places: [] };
}

/** @param {Unsaved} state @returns {Phase} */
export function phaseOf({ sent, local, refused, newest }) {
  if (sent) {
    return sent.made ? "made" : "sent";
  }
  return refused ? (newest ? "conflict" : "refused") : local.empty ? "saved" : "typed";
}

/** @param {Unsaved} state */
export const isSaved = (state) => phaseOf(state) === "saved";

/** Whether a put can be sent. @param {Unsaved} state */
export const isReady = (state) => phaseOf(state) === "typed";

/** Whether the server has a version that has not come yet. @param {Unsaved} state */
export const isAhead = (state) => ["made", "refused"].includes(phaseOf(state));

/**
 * @param {Unsaved} state
 * @param {any} changes  of what is shown
 * @param {string} text  what is shown now
 * @param {boolean} [undone]  it was an undo or a redo
 * @returns {Unsaved}
 */
export function type(state, changes, text, undone = false) {
  return { ...state, local: state.local.compose(changes), text, undone };
}

/** What was typed and taken back again is nothing to save. @param {Unsaved} state @returns {Step} */
export function reduce(state) {
  return isReady(state) && state.text === state.base ? progress({ ...state, local: ChangeSet.empty(state.text.length) }) : withoutChanges(state);
}

/** A put begins, of `text`, made of `version`; or steps to a version that has this text (rule 7). @param {Unsaved} state @param {string} id @param {boolean} [inSteps] @returns {Unsaved} */
export function send(state, id, inSteps = state.undone) {
  const { text, local, line, newest } = state;
  const steps = inSteps && !newest ? stepsTo(line, text) : null;
  return { ...state, sent: { id, text, changes: local, made: 0, early: false, steps }, local: ChangeSet.empty(text.length), undone: false };
}

/** The server has a version. @param {Unsaved} state @param {number} version @param {string} text @returns {Step} */
export function takeVersion(state, version, text) {
  const known = knownOf(state);
  const line = moveLine(state.line, version, text);
  if (version === known.version && text === known.text) {
    return withoutChanges({ ...state, line, refused: state.newest ? state.refused : 0 });
  }
  return progress({ ...state, line, newest: { version, text }, seen: [...state.seen, version].slice(-LATELY) });
}

/**
 * The put has made a version.
 * @param {Unsaved} state
 * @param {number} made
 * @param {boolean} [early]  it is not waited for: it has come and gone unseen
 * @returns {Step}
 */
export function acknowledge(state, made, early = false) {
  return state.sent ? progress({ ...state, sent: { ...state.sent, made, early: early || state.sent.early } }) : withoutChanges(state);
}

/** The put cannot be merged with a version. @param {Unsaved} state @param {number} version @param {readonly Range[]} [places] @returns {Step} */
export function refuse(state, version, places = []) {
  return progress({ ...takeBack(state), refused: version, places });
}

/** The put was not made, and may be sent again. @param {Unsaved} state @returns {Step} */
export function failed(state) {
  return progress({ ...takeBack(state), refused: 0 });
}

/** The version that the server has announced has come while nobody listened. @param {Unsaved} state @returns {Step} */
export function assumeArrived(state) {
  return state.sent ? acknowledge(state, state.sent.made, true) : failed(state);
}

/** @param {Unsaved} state */
function takeBack(state) {
  return state.sent ? { ...state, local: state.sent.changes.compose(state.local), sent: null } : state;
}

/** Comparing long texts takes longer than a frame has. @type {WeakMap<Unsaved, Piece[]|null>} */
const decisions = new WeakMap();

/** What there is to decide: the text in pieces, some of which have two forms; null if that is nothing. @param {Unsaved} state @returns {Piece[]|null} */
export function pieces(state) {
  const { refused, newest, base, text, places } = state;
  if (!decisions.has(state)) {
    decisions.set(state, refused && newest ? threeWay(base, newest.text, text, places) : null);
  }
  return decisions.get(state) ?? null;
}

/** The user has decided: this text goes over the newest version. @param {Unsaved} state @param {string} text @returns {Step} */
export function resolve(state, text) {
  const { version, text: base } = knownOf(state);
  const local = changesBetween(base, text);
  return { state: { ...state, version, base, sent: null, local, text, newest: null, refused: 0 }, changes: changesBetween(state.text, text) };
}

/** The newest version that is known. @param {Unsaved} state @returns {Version} */
const knownOf = ({ newest, version, base }) => newest ?? { version, text: base };

/** @param {Unsaved} state @param {NonNullable<Unsaved["sent"]>} sent */
function hasCome({ seen, newest, version }, { made, early, steps }) {
  return early || (steps ? newest?.version === made : seen.includes(made) || (newest?.version ?? version) >= made);
}

/** @param {Unsaved} state @returns {Step} */
function progress(state) {
  const { sent, newest } = state;
  if (sent) {
    return sent.made && hasCome(state, sent) ? settle(state, sent, knownOf(state)) : withoutChanges(state);
  }
  const parts = pieces(state);
  if (parts) {
    return parts.every((piece) => "text" in piece) ? resolve(state, join(parts)) : withoutChanges(state);
  }
  return newest ? takeOver(state, newest) : withoutChanges(state);
}

/** The version of the put is there. What was typed since the put is moved over what it was merged with. @param {Unsaved} state @param {NonNullable<Unsaved["sent"]>} sent @param {Version} known */
function settle(state, sent, known) {
  const since = { ...state, base: sent.text, sent: null, newest: null };
  const step = sent.text === known.text ? withoutChanges({ ...since, ...known, base: known.text, text: state.text }) : takeOver(since, known);
  // The text of the put is no version of the server: what touches it, only the user can decide.
  return step.state.newest ? progress({ ...step.state, refused: known.version, places: [] }) : step;
}

/** @param {Unsaved} state @param {Version} version @returns {Step} */
function takeOver(state, { version, text }) {
  const theirs = changesBetween(state.base, text);
  if (touch(state.base, theirs, state.local)) {
    return withoutChanges({ ...state, newest: { version, text } });
  }
  const changes = theirs.map(state.local, true);
  const local = state.local.map(theirs);
  return { state: { ...state, version, base: text, local, text: applyChanges(state.text, changes), newest: null }, changes };
}

/** @param {Unsaved} state @returns {Step} */
const withoutChanges = (state) => ({ state, changes: null });

/** @param {Piece[]} parts  without two forms */
const join = (parts) => parts.map((piece) => ("text" in piece ? piece.text : "")).join("");

/**
 * Where a place of the server's text is in what is shown; null while the two cannot be compared.
 * @template {{start: number, end: number}} R
 * @param {Unsaved} state
 * @param {number} version  that the range is of
 * @param {R} range
 * @returns {R|null}
 */
export function mapToShown(state, version, range) {
  if (version !== state.version) {
    return null;
  }
  const all = takeBack(state).local;
  return { ...range, start: all.mapPos(range.start, 1), end: Math.max(all.mapPos(range.start, 1), all.mapPos(range.end, -1)) };
}

// --- the undo line

/** So many of its versions are kept. */
const LONGEST_LINE = 20;

/** @type {UndoLine} */
export const NO_LINE = { versions: [], at: -1 };

/** Another version is current: one of the line, after undo or redo, or a new one. @param {UndoLine} line @param {number} version @param {string} text @returns {UndoLine} */
export function moveLine({ versions, at }, version, text) {
  const there = versions.findIndex((each) => each.version === version);
  if (there >= 0) {
    return { versions, at: there };
  }
  const kept = [...versions.slice(0, at + 1), { version, text }].slice(-LONGEST_LINE);
  return { versions: kept, at: kept.length - 1 };
}

/** How the document gets to a text that it had: the nearest version with this text. @param {UndoLine} line @param {string} text @returns {Steps|null} */
export function stepsTo({ versions, at }, text) {
  const found = versions.map((each, index) => ({ ...each, index })).filter((each) => each.index !== at && each.text === text);
  const nearest = found.sort((a, b) => Math.abs(a.index - at) - Math.abs(b.index - at))[0];
  return nearest ? { op: nearest.index < at ? "undo" : "redo", count: Math.abs(nearest.index - at), version: nearest.version } : null;
}

// --- storing

/** As JSON, to be kept over a reload. @param {Unsaved} state */
export function toStored({ version, base, sent, local, refused, places }) {
  return { version, base, refused, places, sent: sent && { id: sent.id, changes: sent.changes.toJSON() }, local: local.toJSON() };
}

/** @param {any} stored  of `toStored` @returns {Unsaved} */
export function fromStored({ version, base, sent, local, refused, places }) {
  const changes = sent && ChangeSet.fromJSON(sent.changes);
  const put = changes ? { id: sent.id, changes, text: applyChanges(base, changes), made: 0, early: true, steps: null } : null;
  const after = ChangeSet.fromJSON(local);
  return { ...stateOf(version, base, put, after, applyChanges(put?.text ?? base, after)), refused, places };
}
