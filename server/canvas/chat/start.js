// @ts-check
/** The empty conversation: what this is, and three requests to try. */

import { h } from "../dom.js";
import { icon } from "../icons.js";

/** Requests that every model answers well, the rehearsal model included. */
const EXAMPLES = [
  { sign: "document", text: "Write a guide to tide pools", note: "A document that grows while you read along" },
  { sign: "code", text: "Write a Python function that reverses a string", note: "Code; select a line to have it changed" },
  { sign: "list", text: "Make a plan and a checklist for a week in Japan", note: "Two documents from one request" },
];

/**
 * @param {{name: string, onExample: (text: string) => void, onFiles: (files: File[]) => void}} options
 *   `name` of the agent; an example is written into the field and sent
 */
export function createStart({ onExample, onFiles }) {
  const picker = h("input", { type: "file", multiple: true, hidden: true, onchange: () => onFiles([...picker.files]) });
  return h(
    "div",
    { class: "start" },
    h(
      "div",
      {},
      h("h1", { class: "start-title" }, "What shall we write?"),
      h("p", { class: "start-text" }, "Ask for a document and watch it grow. Then select any passage and say what to change."),
    ),
    h(
      "ul",
      { class: "examples", "aria-label": "Examples" },
      EXAMPLES.map(({ sign, text, note }) =>
        h(
          "li",
          {},
          h(
            "button",
            { class: "example", type: "button", onclick: () => onExample(text) },
            h("span", { class: "example-icon" }, icon(sign)),
            h("span", { class: "example-text" }, text, h("small", {}, note)),
            icon("forward"),
          ),
        ),
      ),
    ),
    h(
      "p",
      { class: "start-more" },
      "Or ",
      h("button", { class: "link-button", type: "button", onclick: () => picker.click() }, "open a document of your own"),
      picker,
      ".",
    ),
  );
}
