// @ts-check
/** The part of the bar in which the user comments on the selected passage, or writes what should stand there: as a suggestion, or at once. */

import { button } from "../controls.js";
import { h, setText } from "../dom.js";
import { TEXT } from "../strings.js";

/** @typedef {"comment"|"suggest"|"edit"} NoteKind */

const LABELS = { comment: TEXT.yourComment, suggest: TEXT.yourSuggestion, edit: TEXT.newText };
const VERBS = { comment: TEXT.comment, suggest: TEXT.suggest, edit: TEXT.save };

/**
 * @param {object} options
 * @param {(kind: NoteKind, text: string, ask: boolean) => Promise<boolean>} options.send  whether it was taken; `ask`: the agent answers
 * @param {() => boolean} options.mayAsk
 * @param {() => void} options.back  to the instruction
 */
export function createNote({ send, back, mayAsk }) {
  /** @type {NoteKind} */
  let kind = "comment";
  /** What was not sent is there when somebody comments again. */
  let draft = "";
  let passage = "";
  let sending = false;
  const field = h("textarea", { class: "field passage-note-field", rows: 2, dir: "auto", oninput: draw, onkeydown: onKeydown });
  const submit = button("", null, { type: "submit", class: "button button-primary" });
  const ask = button(TEXT.askAgent, () => give(true));
  const cancel = button(TEXT.back, back);
  const element = h("form", { class: "passage-note", hidden: true, onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), give()) }, field, h("div", { class: "passage-note-actions" }, cancel, ask, submit));
  return { element, field, open, close, cancel, unsent };

  /** @param {NoteKind} wished @param {string} selected */
  function open(wished, selected) {
    kind = wished;
    passage = selected;
    const isComment = kind === "comment";
    field.value = isComment ? draft : passage;
    field.placeholder = isComment ? TEXT.writeComment : "";
    field.setAttribute("aria-label", LABELS[kind]);
    element.hidden = false;
    draw();
  }

  function close() {
    if (kind === "comment" && !element.hidden) {
      draft = field.value;
    }
    element.hidden = true;
  }

  /** What was written in place of the passage, until it is sent. */
  function unsent() {
    return !element.hidden && !sending && kind !== "comment" && field.value !== passage ? field.value : "";
  }

  function draw() {
    const isDeletion = kind === "suggest" && field.value === "";
    setText(submit, isDeletion ? TEXT.suggestDeletion : VERBS[kind]);
    ask.hidden = kind !== "comment" || !mayAsk();
    submit.disabled = ask.disabled = kind === "comment" && field.value.trim() === "";
  }

  async function give(asks = false) {
    if (!submit.disabled) {
      submit.disabled = ask.disabled = sending = true;
      const text = kind === "comment" ? field.value.trim() : field.value;
      if (await send(kind, text, asks)) {
        draft = "";
        field.value = "";
      }
      sending = false;
      draw();
    }
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    const sends = event.ctrlKey || event.metaKey || (kind === "comment" && !event.shiftKey && !event.altKey && !matchMedia("(pointer: coarse)").matches);
    if (event.key === "Enter" && sends && !event.isComposing) {
      event.preventDefault();
      give();
    }
  }
}
