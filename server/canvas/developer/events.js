// @ts-check
/** What the developer view says of an entry of the log. Pure. */

import { CANVAS, TURN, stateOf } from "../state/task.js";

/** @typedef {import("../a2a/log.js").LogEntry} LogEntry */

/**
 * @typedef {object} Line
 * @property {string} type  the type of the event, as "text_delta"
 * @property {string} block  the index of the content block, "" if it belongs to none
 * @property {string} place  epoch and generation, as "1/30"
 * @property {string} summary  its content in a few words
 */

/** The kinds of entries that can be chosen. */
export const KINDS = /** @type {const} */ ({
  all: "All",
  request: "Requests",
  status: "Statuses",
  turn: "Turn events",
  artifact: "Artifacts",
  error: "Errors",
});

const SUMMARY = 160;

/** @param {LogEntry} entry @returns {keyof typeof KINDS} */
export function kindOf({ kind, content }) {
  if (kind !== "event") {
    return kind;
  }
  const event = eventOf(content);
  if (content?.error) {
    return "error";
  }
  if (event?.artifactUpdate || event?.statusUpdate?.metadata?.[CANVAS]?.edit) {
    return "artifact";
  }
  if (event?.statusUpdate?.metadata?.[TURN]?.event_type) {
    return "turn";
  }
  return event?.statusUpdate || event?.task ? "status" : "all";
}

/** @param {LogEntry} entry @returns {Line} */
export function lineOf(entry) {
  if (entry.kind === "request") {
    return { type: "request", block: "", place: "", summary: shortenedJson(bodyOf(entry)?.params) };
  }
  if (entry.kind === "error") {
    return { type: "error", block: "", place: "", summary: String(entry.content).slice(0, SUMMARY) };
  }
  const { error } = entry.content ?? {};
  const event = eventOf(entry.content);
  const update = event?.statusUpdate ?? event?.artifactUpdate ?? event?.task;
  const turn = update?.metadata?.[TURN] ?? {};
  const canvas = update?.metadata?.[CANVAS] ?? {};
  const { epoch = canvas.epoch, generation = canvas.generation } = turn;
  return {
    type: error ? "error" : entry.event || typeOf(event, turn, canvas),
    block: String(turn.data?.index ?? ""),
    place: epoch === undefined ? "" : `${epoch}/${generation}`,
    summary: error ? String(error.message).slice(0, SUMMARY) : shortenedJson(summaryOf(event, turn, canvas)),
  };
}

/** The JSON of an entry. @param {LogEntry} entry */
export function bodyOf({ kind, content, request }) {
  return kind === "request" ? request.body && JSON.parse(request.body) : content;
}

/** Whether an entry is shown. @param {LogEntry} entry @param {keyof typeof KINDS} kind @param {string} words */
export function isShown(entry, kind, words) {
  return (kind === "all" || kindOf(entry) === kind) && (!words || textOf(entry).includes(words.toLowerCase()));
}

/** Milliseconds as "12 ms", "3.4 s". @param {number} ms */
export function duration(ms) {
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/**
 * The selected passage as the older AG-UI form has it (docs/ag-ui.md).
 * @param {PassageSelection} selection
 */
export function selectedText({ start, end, text, lineStart, lineEnd }) {
  return { selectedText: { start, end, text, lineStart, lineEnd } };
}

/** @param {any} content  a JSON-RPC answer, an event of a context, or JSON over HTTP */
function eventOf(content) {
  return content?.result ?? content;
}

/** @param {any} event @param {any} turn @param {any} canvas @returns {string} */
function typeOf(event, turn, canvas) {
  if (turn.event_type) {
    return turn.event_type;
  }
  if (canvas.edit) {
    return `edit ${canvas.edit.phase}`;
  }
  if (event?.statusUpdate) {
    return turn.label ? "label" : stateOf(String(event.statusUpdate.status?.state ?? "status"));
  }
  if (event?.task) {
    return "task";
  }
  return event?.artifactUpdate ? `artifact${event.artifactUpdate.append ? " append" : ""}` : event?.message ? "message" : "answer";
}

/** @param {any} event @param {any} turn @param {any} canvas */
function summaryOf(event, turn, canvas) {
  if (turn.data || canvas.edit) {
    return turn.data ?? canvas.edit;
  }
  const { statusUpdate, artifactUpdate, task } = event ?? {};
  if (artifactUpdate) {
    const { artifact } = artifactUpdate;
    return { artifactId: artifact?.artifactId, version: artifactUpdate.metadata?.[CANVAS]?.artifactVersion, parts: artifact?.parts };
  }
  return statusUpdate ? (statusUpdate.status?.message?.parts ?? {}) : task ? { id: task.id, state: stateOf(String(task.status?.state ?? "status")) } : event;
}

/** The beginning of the JSON of a value; of a long text in it only the beginning is read. @param {any} value */
function shortenedJson(value) {
  const short = (/** @type {string} */ _, /** @type {any} */ each) => (typeof each === "string" ? each.slice(0, SUMMARY) : each);
  const json = value === undefined || value === null ? "" : JSON.stringify(value, short);
  return json.length > SUMMARY ? `${json.slice(0, SUMMARY)}…` : json;
}

/** @type {WeakMap<LogEntry, string>} */
const TEXTS = new WeakMap();

/** What an entry is searched in. @param {LogEntry} entry */
function textOf(entry) {
  let text = TEXTS.get(entry);
  if (text === undefined) {
    text = `${entry.name} ${entry.request.url} ${JSON.stringify(bodyOf(entry))}`.toLowerCase();
    TEXTS.set(entry, text);
  }
  return text;
}
