// @ts-check
/** The part of the bar in which the user comments on the selected passage, or writes what should stand there. */

import { button } from "../controls.js";
import { h, setText } from "../dom.js";
import { TEXT } from "../strings.js";

/** @typedef {"comment"|"suggest"} NoteKind */

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
  const field = h("textarea", { class: "field passage-note-field", rows: 2, dir: "auto", oninput: draw, onkeydown: onKeydown });
  const submit = button("", null, { type: "submit", class: "button button-primary" });
  const ask = button(TEXT.askAgent, () => give(true));
  const cancel = button(TEXT.back, back);
  const element = h("form", { class: "passage-note", hidden: true, onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), give()) }, field, h("div", { class: "passage-note-actions" }, cancel, ask, submit));
  return { element, field, open, close, cancel };

  /** @param {NoteKind} wished @param {string} passage */
  function open(wished, passage) {
    kind = wished;
    const isComment = kind === "comment";
    field.value = isComment ? draft : passage;
    field.placeholder = isComment ? TEXT.writeComment : "";
    field.setAttribute("aria-label", isComment ? TEXT.yourComment : TEXT.yourSuggestion);
    element.hidden = false;
    draw();
  }

  function close() {
    if (kind === "comment" && !element.hidden) {
      draft = field.value;
    }
    element.hidden = true;
  }

  function draw() {
    const isDeletion = kind === "suggest" && field.value === "";
    setText(submit, kind === "comment" ? TEXT.comment : isDeletion ? TEXT.suggestDeletion : TEXT.suggest);
    ask.hidden = kind !== "comment" || !mayAsk();
    submit.disabled = ask.disabled = kind === "comment" && field.value.trim() === "";
  }

  async function give(asks = false) {
    if (!submit.disabled) {
      submit.disabled = ask.disabled = true;
      const text = kind === "comment" ? field.value.trim() : field.value;
      if (await send(kind, text, asks)) {
        draft = "";
        field.value = "";
      }
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
