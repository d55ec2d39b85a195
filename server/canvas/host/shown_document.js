// @ts-check
/**
 * The document that a view in an MCP host shows: what the host's model is writing, then what the server has. Pure.
 *
 * Rule: what the model writes is shown until the result of its call names the version; from then on only the server is believed.
 */

import { artifactUpdated } from "../state/artifacts.js";

/**
 * @typedef {object} Shown
 * @property {string} id  `context/artifact`; "" while it has none
 * @property {string} url  of the page
 * @property {boolean} writing  the host's model is writing it
 * @property {string} error  why the call was refused
 * @property {ArtifactView|null} artifact
 */

/** @type {Shown} */
export const NOTHING = { id: "", url: "", writing: false, error: "", artifact: null };
export const FOLLOW = "a2a-canvas/follow";
export const TEXT_OF = "a2a-canvas/text";

/** The document while its text arrives, piece by piece, as the input of a call. @param {Shown} shown @param {Json} input @returns {Shown} */
export function inputArrived(shown, input = {}) {
  const { name, text, id = shown.id } = input;
  if (typeof text !== "string" || typeof name !== "string") {
    return { ...shown, id, writing: true };
  }
  return { ...shown, writing: true, error: "", artifact: artifactOf(name, text, 0, true) };
}

/** The document after a call. @param {Shown} shown @param {Json} result  of a tool @returns {Shown} */
export function callEnded(shown, { isError, content = [], structuredContent: data = {}, _meta: meta = {} }) {
  if (isError) {
    return { ...shown, writing: false, error: content[0]?.text ?? "" };
  }
  const { id = shown.id, url = shown.url, version = 0, name = shown.artifact?.name ?? "" } = data;
  const text = meta[TEXT_OF];
  const known = typeof text === "string" ? artifactOf(name, text, version, false) : shown.artifact && { ...shown.artifact, version, open: false };
  return { id, url, writing: false, error: "", artifact: known };
}

/** The document after a change on the server; unchanged by those of other documents. @param {Shown} shown @param {Json} update @returns {Shown} */
export function changeArrived(shown, update) {
  const [, artifactId = ""] = shown.id.split("/").map(decodeURIComponent);
  return update.artifact?.artifactId === artifactId ? { ...shown, artifact: artifactUpdated(shown.artifact ?? undefined, update) } : shown;
}

/** @param {string} name @param {string} text @param {number} version @param {boolean} open @returns {ArtifactView} */
const artifactOf = (name, text, version, open) => ({
  artifactId: name, name, text, cut: false, mediaType: "", others: [], version, author: "user", open, taskId: "",
});

/** Whether it is shown rendered: a text that says nothing of its kind is Markdown. @param {ArtifactView} artifact */
export function isMarkdown({ name, mediaType }) {
  return /markdown/.test(mediaType) || (!mediaType && /(^[^.]*|\.(md|markdown))$/i.test(name));
}

/** What the host's model is asked for a passage. @param {Shown} shown @param {string} passage @param {string} wish */
export function passageMessage({ id, artifact }, passage, wish) {
  return `${wish}\n\nThis is about a passage of ${id}, version ${artifact?.version}:\n\n${passage}`;
}
