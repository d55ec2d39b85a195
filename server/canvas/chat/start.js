// @ts-check
/** The empty conversation: what this is, and three requests to try. */

import { h } from "../dom.js";
import { icon } from "../icons.js";

/** Requests that every model answers well, the rehearsal model included. */
const EXAMPLES = [
  { sign: "document", text: "Write a guide to tide pools", note: "A document that grows while you read along" },
  { sign: "code", text: "Write a Python function that reverses a string", note: "Code; select a line to have it changed" },
  { sign: "list", text: "Write a plan for 7 days in Japan and a checklist", note: "Two documents from one request" },
];

/** What stands over the field. */
export function createWelcome() {
  return h(
    "div",
    { class: "start" },
    h("h1", { class: "start-title" }, "What shall we write?"),
    h("p", { class: "start-text" }, "Ask for a document and watch it grow. Then select any passage and say what to change."),
  );
}

/**
 * What stands under the field: the examples, and the way to a document that is there already.
 * @param {{onExample: (text: string) => void, onFiles: (files: File[]) => void}} options
 *   an example is sent as if it had been typed
 */
export function createExamples({ onExample, onFiles }) {
  const picker = h("input", { type: "file", multiple: true, hidden: true, onchange: () => onFiles([...picker.files]) });
  return h(
    "div",
    { class: "start" },
    h(
      "ul",
      { class: "examples", "aria-label": "Examples" },
      EXAMPLES.map(({ sign, text, note }) => h("li", {}, example(sign, text, note, () => onExample(text)))),
    ),
    h(
      "p",
      { class: "start-more" },
      "Or ",
      h("button", { class: "link-button", type: "button", onclick: () => picker.click() }, "open a document of your own"),
      ".",
      picker,
    ),
  );
}

/** @param {string} sign @param {string} text @param {string} note @param {() => void} onclick */
function example(sign, text, note, onclick) {
  return h(
    "button",
    { class: "example", type: "button", onclick },
    h("span", { class: "example-icon" }, icon(sign)),
    h("span", { class: "example-text" }, text, h("small", {}, note)),
    icon("forward"),
  );
}
