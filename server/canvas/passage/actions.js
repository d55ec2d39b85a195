// @ts-check
/** What the bar over a selected passage offers. Pure. */

import { CANVAS } from "../state/task.js";

/**
 * @typedef {object} Action
 * @property {string} label
 * @property {string} instruction  what the agent is told; one that ends in a blank is to be completed by the user
 * @property {boolean} [chat]  asked in the conversation, and changes nothing
 */

/** @type {Action[]} */
const PROSE = [
  { label: "Shorter", instruction: "Make it shorter" },
  { label: "Longer", instruction: "Make it longer" },
  { label: "Simpler", instruction: "Make it simpler" },
  { label: "More formal", instruction: "Make it more formal" },
  { label: "Fix grammar", instruction: "Fix the grammar" },
  { label: "Translate…", instruction: "Translate it to " },
];

/** @type {Action[]} */
const CODE = [
  { label: "Add comments", instruction: "Add comments" },
  { label: "Add types", instruction: "Add types" },
  { label: "Make async", instruction: "Make it async" },
  { label: "Explain in chat", instruction: "Explain this passage", chat: true },
];

const PROSE_TYPES = /^text\/(plain|markdown|html)$|^$/;
const PROSE_NAMES = /\.(md|markdown|txt|html?|rst|tex)$|^[^.]*$/i;

/**
 * The quick actions for a passage of an artifact: those that the server declares in its card, as `params.quickActions` of
 * canvas:v1 (docs/canvas.md), else those that a language model can do.
 * @param {{name: string, mediaType: string}} artifact
 * @param {any} [card]
 * @returns {Action[]}
 */
export function actionsFor(artifact, card) {
  const kind = isProse(artifact) ? "prose" : "code";
  const declared = declaredIn(card);
  return declared ? declared.filter((each) => (each.for ?? kind) === kind) : kind === "prose" ? PROSE : CODE;
}

/**
 * Whether the server rewrites passages: its card does not say `params.edits: false` in canvas:v1.
 * @param {any} card
 */
export function rewritesPassages(card) {
  return paramsOf(card).edits !== false;
}

/** The formats in which the server offers Markdown for download. @param {any} card @returns {string[]} */
export function formatsOf(card) {
  const { formats } = paramsOf(card);
  return Array.isArray(formats) ? formats : [];
}

/** The params of canvas:v1. @param {any} card @returns {Record<string, any>} */
function paramsOf(card) {
  const extensions = card?.capabilities?.extensions ?? [];
  return extensions.find((/** @type {any} */ each) => each.uri === CANVAS)?.params ?? {};
}

/** @param {any} card @returns {(Action & {for?: string})[]|null}  null if it says nothing about them */
function declaredIn(card) {
  const actions = paramsOf(card).quickActions;
  const isText = (/** @type {unknown} */ text) => typeof text === "string" && text.trim() !== "";
  return Array.isArray(actions) ? actions.filter((each) => isText(each?.label) && isText(each.instruction)) : null;
}

/** @param {{name: string, mediaType: string}} artifact */
export function isProse({ name, mediaType }) {
  return PROSE_TYPES.test(mediaType.split(";")[0]) && PROSE_NAMES.test(name);
}

/**
 * How a passage is named: by its lines; of several, the last selected.
 * @param {{lineStart: number, lineEnd: number, others?: readonly unknown[]}} selection
 */
export function placeOf({ lineStart, lineEnd, others = [] }) {
  const lines = lineStart === lineEnd ? `Line ${lineStart}` : `Lines ${lineStart}–${lineEnd}`;
  return others.length > 0 ? `${lines} and ${others.length} more` : lines;
}

/**
 * Its characters, as operations count them: from 0, the end exclusive.
 * @param {{start: number, end: number}} selection
 */
export function charactersOf({ start, end }) {
  return `Characters ${start}–${end}`;
}
