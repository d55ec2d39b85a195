// @ts-check
/** The empty conversation: what this is, and three requests to try. */

import { button } from "../controls.js";
import { fill, h } from "../dom.js";
import { icon } from "../icons.js";
import { TEXT } from "../strings.js";

/** Requests that every model answers well, the rehearsal model included. */
const EXAMPLES = [
  { sign: "document", text: "Write a guide to tide pools", note: "A document that grows while you read along" },
  { sign: "code", text: "Write a Python function that reverses a string", note: "Code; select a line to have it changed" },
  { sign: "list", text: "Write a plan for 7 days in Japan and a checklist", note: "Two documents from one request" },
];

/** Skills that every agent of this server has. */
const GENERAL = ["write-artifacts", "edit-selections"];
const MOST = 3;

/** The examples of an agent with skills of its own. @param {any} card @returns {string[]} */
export function examplesOf(card) {
  const skills = (Array.isArray(card?.skills) ? card.skills : []).filter((/** @type {any} */ each) => !GENERAL.includes(each?.id));
  const texts = skills.flatMap((/** @type {any} */ { examples }) => (Array.isArray(examples) ? examples : []));
  return texts.filter((/** @type {unknown} */ each) => typeof each === "string" && each.trim()).slice(0, MOST);
}

/** What is above the field. */
export function createWelcome() {
  return h(
    "div",
    { class: "start" },
    h("h1", { class: "start-title" }, TEXT.welcome),
    h("p", { class: "start-text" }, TEXT.welcomeMore),
  );
}

/**
 * What is below the field: the examples, and the way to a document that is there already.
 * @param {{onExample: (text: string) => void, onFiles: (files: File[]) => void}} options
 *   an example is sent as if it had been typed
 */
export function createExamples({ onExample, onFiles }) {
  const picker = h("input", { type: "file", multiple: true, hidden: true, onchange: () => onFiles([...picker.files]) });
  const list = h("ul", { class: "examples", "aria-label": TEXT.examples });
  /** @param {any} card */
  const show = (card) => {
    const own = examplesOf(card).map((text) => ({ sign: "document", text, note: "" }));
    fill(list, (own.length ? own : EXAMPLES).map(({ sign, text, note }) => h("li", {}, example(sign, text, note, () => onExample(text)))));
  };
  show(null);
  const element = h(
    "div",
    { class: "start" },
    list,
    h(
      "p",
      { class: "start-more" },
      TEXT.or,
      button(TEXT.openOwnDocument, () => picker.click(), { class: "link-button" }),
      ".",
      picker,
    ),
  );
  return { element, show };
}

/** @param {string} sign @param {string} text @param {string} note @param {() => void} onclick */
function example(sign, text, note, onclick) {
  const words = h("span", { class: "example-text" }, text, note && h("small", {}, note));
  return button([h("span", { class: "example-icon" }, icon(sign)), words, icon("forward")], onclick, { class: "example" });
}
