// @ts-check
/** Artifacts, folded from artifact updates, and the passages that are being rewritten. Pure. */

import { changesOf, mapRange, utf16Offset } from "./text.js";
import { recordOf, withEntry, without } from "./records.js";
import { CANVAS } from "./task.js";

/** @typedef {{start: number, end: number}} Range */

/** More of a text is not kept: a server that sends without end takes no more of the browser than this. In characters. */
export const LONGEST = 20_000_000;

/**
 * The artifact after an artifact update: without `append` all of it is replaced, with it the parts are added, and text is
 * joined to the text.
 * @param {ArtifactView|undefined} before
 * @param {Json} update
 * @returns {ArtifactView}
 */
export function artifactUpdated(before, update) {
  const { artifact, append, lastChunk } = update;
  const canvas = update.metadata?.[CANVAS] ?? {};
  const parts = /** @type {any[]} */ (artifact.parts ?? []);
  const texts = parts.filter((part) => "text" in part);
  const others = parts.filter((part) => !("text" in part));
  const added = texts.map((part) => part.text).join("");
  const base = append ? before : undefined;
  const { text, cut } = limitText(base ? (texts.length ? (base.text ?? "") + (base.cut ? "" : added) : base.text) : texts.length ? added : null, base?.cut);
  return {
    artifactId: artifact.artifactId,
    name: artifact.name || before?.name || artifact.artifactId,
    text,
    cut,
    mediaType: texts[0]?.mediaType || base?.mediaType || "",
    others: !base ? others : others.length > 0 ? [...base.others, ...others] : base.others,
    version: canvas.artifactVersion ?? before?.version ?? 1,
    author: canvas.author ?? "agent",
    open: !lastChunk,
    taskId: update.taskId,
  };
}

/** @param {string|null} text @param {boolean} [cut]  something is missing already @returns {{text: string|null, cut: boolean}} */
function limitText(text, cut = false) {
  return text !== null && text.length > LONGEST ? { text: text.slice(0, LONGEST), cut: true } : { text, cut };
}

/**
 * The ranges by which an update has changed the text; none if it only appended to it.
 * @param {ArtifactView|undefined} before
 * @param {ArtifactView} after
 * @param {boolean} append
 */
export function textChanges(before, after, append) {
  if (!before || append || before.text === null || after.text === null) {
    return [];
  }
  return changesOf(before.text, after.text);
}

/**
 * The edits after an event of an edit.
 * @param {Record<string, Edit>} edits
 * @param {string} taskId
 * @param {Json} edit  `metadata["urn:a2a-canvas:canvas:v1"].edit`
 * @param {Record<string, ArtifactView>} artifacts
 * @returns {Record<string, Edit>}
 */
export function editEvent(edits, taskId, edit, artifacts) {
  const key = `${taskId}/${edit.id}`;
  const known = edits[key];
  switch (edit.phase) {
    case "start":
      return withEntry(without(edits, askedKey(taskId)), key, openEdit(key, edit, artifacts));
    case "chunk":
      return known ? withEntry(edits, key, { ...known, text: (known.text + edit.chunk).slice(0, LONGEST) }) : edits;
    case "suggested":
      return known ? withEntry(edits, key, { ...known, complete: true, annotationId: edit.annotationId }) : edits;
    case "complete":
      return known ? completeEdit(edits, known, edit, artifacts) : edits;
    default:
      return without(edits, key);
  }
}

/**
 * An edit where it begins, or where a stream joins it.
 * @param {string} key
 * @param {Json} edit
 * @param {Record<string, ArtifactView>} artifacts
 * @returns {Edit}
 */
export function openEdit(key, edit, artifacts) {
  const artifact = artifacts[edit.artifactId];
  return {
    key,
    artifactId: edit.artifactId,
    ...rangeOf(edit, artifact),
    strategy: edit.strategy,
    text: edit.text ?? "",
    baseVersion: edit.baseVersion,
    complete: false,
    lost: Boolean(artifact) && artifact.version !== edit.baseVersion,
    suggested: edit.mode === "suggest",
  };
}

/** The edits that a task has begun, by their keys. @param {Json} task @param {Record<string, ArtifactView>} artifacts @returns {Record<string, Edit>} */
export function openEdits(task, artifacts) {
  const open = /** @type {Json[]} */ (task.metadata?.[CANVAS]?.openEdits ?? []);
  return recordOf(open.map((edit) => [`${task.id}/${edit.id}`, openEdit(`${task.id}/${edit.id}`, edit, artifacts)]));
}

/**
 * The edits without those of a task; `waiting`: those stay that wait for their version.
 * @param {Record<string, Edit>} edits
 * @param {string} taskId
 * @param {boolean} waiting
 */
export function editsOfOthers(edits, taskId, waiting) {
  const entries = Object.entries(edits);
  const left = entries.filter(([key, edit]) => !key.startsWith(`${taskId}/`) || (waiting && edit.complete));
  return left.length === entries.length ? edits : recordOf(left);
}

/**
 * The edits without those that are there as suggestions, and have a place.
 * @param {Record<string, Edit>} edits
 * @param {readonly AnnotationView[]} items
 */
export function withoutSuggested(edits, items) {
  const made = new Set(items.filter(({ state, place }) => place || state !== "open").map(({ annotationId }) => annotationId));
  const entries = Object.entries(edits);
  const left = entries.filter(([, { annotationId }]) => !annotationId || !made.has(annotationId));
  return left.length === entries.length ? edits : recordOf(left);
}

/** The key of an edit that a message asks for, before the agent begins it. @param {string} id  of the task, or of the message */
export const askedKey = (id) => `${id}/asked`;

/**
 * An edit that a message asks for: its passage is shown as being written from the moment at which it is sent.
 * @param {string} id  of the task, or of the message while it is on its way
 * @param {Operation|null|undefined} operation
 * @param {Record<string, ArtifactView>} artifacts
 * @returns {Record<string, Edit>}  with that edit, or empty if it asks for none whose place is known
 */
export function askedEdit(id, operation, artifacts) {
  const { start, end } = operation?.selection ?? {};
  const artifact = artifacts[operation?.artifactId ?? ""];
  if (operation?.op !== "edit" || operation.mode === "suggest" || start === undefined || end === undefined || artifact?.version !== operation.baseVersion) {
    return recordOf();
  }
  const { artifactId, baseVersion, strategy = "replace" } = operation;
  const key = askedKey(id);
  return recordOf([[key, openEdit(key, { artifactId, baseVersion, strategy, selection: { start, end } }, artifacts)]]);
}

/**
 * The edits of an artifact after it has changed: moved with their passages. Those that wait for this version are over.
 * @param {Record<string, Edit>} edits
 * @param {ArtifactView} artifact
 * @param {readonly import("./text.js").Change[]} changes
 * @returns {Record<string, Edit>}
 */
export function editsMoved(edits, artifact, changes) {
  const entries = Object.entries(edits);
  if (!entries.some(([, edit]) => edit.artifactId === artifact.artifactId)) {
    return edits;
  }
  return recordOf(
    entries.flatMap(([key, edit]) => {
      if (edit.artifactId !== artifact.artifactId) {
        return [/** @type {[string, Edit]} */ ([key, edit])];
      }
      if (edit.complete && !edit.suggested && artifact.version > edit.baseVersion) {
        return [];
      }
      return [[key, mapRange(edit, changes) ?? { ...edit, lost: true }]];
    }),
  );
}

/**
 * The text that is shown: the artifact's, with what its edits have written so far in their places; and the ranges that
 * they have come to occupy in it, each with the range `of` the artifact's text that it stands for.
 * @param {ArtifactView} artifact
 * @param {Edit[]} edits
 * @returns {{text: string, ranges: (Range & {key: string, of: Range})[]}}
 */
export function shownText(artifact, edits) {
  const text = artifact.text ?? "";
  let result = "";
  let at = 0;
  const ranges = [];
  for (const { key, start, end, text: written } of overlays(artifact, edits)) {
    const there = written ?? text.slice(start, end);
    result += text.slice(at, start);
    ranges.push({ key, start: result.length, end: result.length + there.length, of: { start, end } });
    result += there;
    at = end;
  }
  return { text: ranges.length ? result + text.slice(at) : text, ranges };
}

/**
 * What is being written into an artifact, in order: ranges of its text, and what is shown in their place; null for the text
 * that is there. Of two edits of one place, the second is shown when it is complete.
 * @param {ArtifactView} artifact
 * @param {Edit[]} edits
 * @returns {(Range & {key: string, text: string|null})[]}
 */
export function overlays(artifact, edits) {
  const all = edits
    .filter((edit) => edit.artifactId === artifact.artifactId && !edit.lost && !edit.suggested)
    .map((edit) => ({ ...replacedBy(edit), key: edit.key, text: isUnwritten(edit) ? null : edit.text }))
    .sort((a, b) => a.start - b.start);
  let at = 0;
  return all.filter(({ start, end }) => {
    const free = start >= at;
    at = free ? end : at;
    return free;
  });
}

/** Until it has written something, the passage of an edit is shown as it was. @param {Edit} edit */
const isUnwritten = ({ strategy, text, complete }) => strategy === "replace" && !text && !complete;

/**
 * What an edit replaces.
 * @param {Edit} edit
 * @returns {Range}
 */
function replacedBy({ start, end, strategy }) {
  if (strategy === "insert_before") {
    return { start, end: start };
  }
  return strategy === "insert_after" ? { start: end, end } : { start, end };
}

/**
 * @param {Record<string, Edit>} edits
 * @param {Edit} known
 * @param {Json} edit
 * @param {Record<string, ArtifactView>} artifacts
 */
function completeEdit(edits, known, edit, artifacts) {
  const artifact = artifacts[known.artifactId];
  if (artifact && artifact.version > edit.baseVersion) {
    return without(edits, known.key);
  }
  const lost = Boolean(artifact) && artifact.version !== edit.baseVersion;
  /** @type {Edit} */
  const whole = {
    ...known,
    ...rangeOf(edit, artifact, known),
    strategy: "replace",
    text: edit.updatedContent,
    baseVersion: edit.baseVersion,
    complete: true,
    lost,
  };
  return withEntry(edits, known.key, whole);
}

/**
 * The selection of an event in UTF-16 units. A `complete` counts in the unit of its `start`.
 * @param {Json} edit
 * @param {ArtifactView|undefined} artifact
 * @param {any} [known]
 * @returns {Range & {unit: string}}
 */
function rangeOf(edit, artifact, known) {
  const { start, end } = edit.selection;
  const unit = edit.unit ?? known?.unit ?? "utf16";
  if (unit === "codepoint" && artifact?.text) {
    return { unit, start: utf16Offset(artifact.text, start), end: utf16Offset(artifact.text, end) };
  }
  return { unit, start, end };
}
