// @ts-check
/**
 * The annotations of artifacts: comments and suggestions (docs/annotations.md). Pure.
 *
 * Rule 1: what is known of them is what was read last, and what events have told since. An event has no places, and after a new version
 * the server places them again: `news` counts both, `read` those that the last read covered. If they differ, read again.
 * Rule 2: until then an annotation moves with its passage. One whose passage has changed is not shown in the text.
 */

import { recordOf, withEntry } from "./records.js";
import { textOf } from "./task.js";
import { mapRange } from "./text.js";

/** @typedef {{items: AnnotationView[], news: number, read: number}} Annotated */

/** @type {Annotated} */
const NONE = { items: [], news: 1, read: 0 };

/** What may be done with annotations over canvas:v1: none of it stands in the conversation. */
const OPERATIONS = new Set(["annotate", "reply", "resolve", "accept", "reject", "withdraw", "accept-all"]);

/** @param {string|undefined} op  of a message */
export const isAboutAnnotations = (op) => OPERATIONS.has(op ?? "");

/** Whether the annotations of an artifact have to be read (rule 1). @param {Record<string, Annotated>} all @param {string} artifactId */
export function isBehind(all, artifactId) {
  const { news, read } = all[artifactId] ?? NONE;
  return news !== read;
}

/** How much was known of when a reading begins. @param {Record<string, Annotated>} all @param {string} artifactId */
export const newsOf = (all, artifactId) => (all[artifactId] ?? NONE).news;

/**
 * After a reading.
 * @param {Record<string, Annotated>} all
 * @param {string} artifactId
 * @param {Json[]|null} listed  as `GET …/annotations` has them under `canvas`; null if they could not be read
 * @param {number} news  that were known of when the reading began
 * @param {number|undefined} version  of the artifact here
 */
export function annotationsRead(all, artifactId, listed, news, version) {
  const before = all[artifactId] ?? NONE;
  const known = placesOf(before.items);
  const items = listed?.map((each) => {
    const { selection, version: placedIn } = each.place ?? {};
    const place = selection && placedIn === version ? { start: selection.start, end: selection.end } : selection ? (known.get(each.annotationId) ?? null) : null;
    return { ...each, place };
  });
  return withEntry(all, artifactId, { items: items ?? before.items, news: before.news, read: news });
}

/** After an event `annotations`. @param {Record<string, Annotated>} all @param {Json} event */
export function annotationsChanged(all, { artifactId, annotations, removed }) {
  const before = all[artifactId] ?? NONE;
  const known = new Map(before.items.map((each) => [each.annotationId, each]));
  removed.forEach((/** @type {string} */ id) => known.delete(id));
  for (const each of annotations) {
    const one = known.get(each.annotationId);
    const state = each.state === "open" && one?.state === "stale" ? "stale" : each.state;
    known.set(each.annotationId, { ...each, state, place: one?.place ?? null });
  }
  return withEntry(all, artifactId, { ...before, items: [...known.values()], news: before.news + 1 });
}

/**
 * After an artifact has changed (rule 2).
 * @param {Record<string, Annotated>} all
 * @param {ArtifactView|undefined} before
 * @param {ArtifactView} after
 * @param {readonly import("./text.js").Change[]} changes
 */
export function annotationsMoved(all, before, after, changes) {
  const annotated = all[after.artifactId];
  const isNew = before?.version !== after.version || before.open !== after.open;
  if (!annotated || (!isNew && changes.length === 0)) {
    return all;
  }
  const items = changes.length === 0 ? annotated.items : annotated.items.map((each) => ({ ...each, place: each.place && mapRange(each.place, changes) }));
  return withEntry(all, after.artifactId, { ...annotated, items, news: annotated.news + Number(isNew) });
}

/** When a stream begins: what was missed before its first event is not repeated. @param {Record<string, Annotated>} all */
export const allBehind = (all) => recordOf(Object.entries(all).map(([id, each]) => [id, { ...each, news: each.news + 1 }]));

/** The annotations of an artifact as they are known. @param {State} state @param {string|undefined} artifactId @returns {AnnotationView[]} */
export const annotationsOf = ({ annotations }, artifactId) => annotations[artifactId ?? ""]?.items ?? NONE.items;

/** @param {AnnotationView} annotation */
export const isOpen = ({ state }) => state === "open";

/** @param {AnnotationView} annotation */
export const isDecided = ({ state }) => state !== "open" && state !== "stale";

/** The name by which an author is filtered: docs/annotations.md, `by` of `accept-all`. @param {{author: string, by?: string}} writer */
export const nameOfWriter = ({ author, by = "" }) => (author === "agent" ? "agent" : by);

/**
 * Where the remark of a task is in a thread; -1 if it is not there.
 * @param {TaskView} task
 * @param {AnnotationView} item
 */
export function remarkOf({ taskId, operation, messages }, item) {
  if (operation?.op === "annotate") {
    return item.taskId === taskId && item.author === "user" ? 0 : -1;
  }
  const words = textOf(messages[0]).trim();
  return operation?.op === "reply" && operation.annotationId === item.annotationId ? item.thread.findLastIndex(({ author, text }) => author === "user" && text.trim() === words) : -1;
}

/** When something was last written in a thread. @param {AnnotationView} annotation */
export const lastWritten = ({ at, thread }) => thread.reduce((latest, each) => (each.at > latest ? each.at : latest), at);

/**
 * In the order of the text: those with a place first.
 * @param {readonly AnnotationView[]} items
 */
export function inOrder(items) {
  const at = (/** @type {AnnotationView} */ { place }) => place?.start ?? Number.MAX_SAFE_INTEGER;
  return items.toSorted((a, b) => at(a) - at(b) || a.number - b.number);
}

/**
 * The open suggestion before or after another one, in the order of the text, around the end.
 * @param {readonly AnnotationView[]} items
 * @param {string|null} from  the annotation that is chosen
 * @param {1|-1} step
 */
export function suggestionBeside(items, from, step) {
  const all = inOrder(items).filter((each) => each.kind === "suggestion" && isOpen(each) && each.place);
  const at = all.findIndex(({ annotationId }) => annotationId === from);
  const next = at === -1 ? (step === 1 ? 0 : all.length - 1) : (at + step + all.length) % all.length;
  return all[next] ?? null;
}

/**
 * What of the annotations is seen in the text, in order; suggestions that are being written, too. Of two on one place the
 * chosen one is last, so that it lies over the other.
 * @param {State} state
 * @param {string} artifactId
 * @returns {Note[]}
 */
export function notesOf(state, artifactId) {
  const { annotationId: chosen, edits, outcome } = state;
  const items = annotationsOf(state, artifactId).filter((each) => isOpen(each) && each.place);
  /** @type {Note[]} */
  const made = items.map(({ annotationId, kind, place, replacement }) => ({
    id: annotationId, kind, .../** @type {{start: number, end: number}} */ (place), text: replacement ?? "", chosen: annotationId === chosen,
  }));
  const growing = Object.values(edits).filter((edit) => edit.suggested && !edit.lost && edit.artifactId === artifactId);
  /** @type {Note[]} */
  const written = growing.map(({ key, start, end, text }) => ({ id: key, kind: "suggestion", start, end, text, chosen: false, growing: true }));
  /** @type {Note[]} */
  const rewritten = outcome?.artifactId === artifactId ? [{ id: "", kind: "rewritten", start: outcome.start, end: outcome.end, text: "", chosen: false }] : [];
  return [...made, ...written, ...rewritten].sort((a, b) => Number(a.chosen) - Number(b.chosen) || a.start - b.start);
}

/** @param {readonly AnnotationView[]} items */
const placesOf = (items) => new Map(items.map(({ annotationId, place }) => [annotationId, place]));
