// @ts-check
/** A JSON text as a tree. A value that is edited is a change of its place in the text (json.js): the user writes it as JSON. */

import { fill, h } from "../../dom.js";
import { TEXT } from "../../strings.js";
import { dataView } from "../files/preview.js";
import { createEditedText } from "./edited_text.js";
import { placeOf, readScalar } from "./json.js";

/** @typedef {import("./edited_text.js").Change} Change */
/** @typedef {{value: HTMLElement, path: readonly string[], field: HTMLInputElement}} Editing */

/**
 * @param {object} options
 * @param {string} options.text
 * @param {(shown: string, change: Change) => Promise<unknown>} [options.onChange]  the user has changed a value of what is shown; it
 *     is saved, or could not be, once this resolves
 * @param {(why: string) => void} options.onBroken  it is no JSON
 */
export function createTree({ text: given, onChange, onBroken }) {
  const element = h("div", { class: "document-scroller document-parts", tabIndex: 0 });
  /** @type {Editing|null} */
  let editing = null;
  /** Whether the user has opened or closed what is nested, by its path. @type {Map<string, boolean>} */
  const opened = new Map();
  const edited = createEditedText({ text: given, isEditing: () => editing !== null, show, onChange });
  show(given);

  return { element, update: edited.update };

  /** @param {string} next */
  function show(next) {
    try {
      const data = JSON.parse(next);
      edited.text = next;
      element.replaceChildren(dataView(data, { opened, onValue: onChange ? makeEditable : undefined }));
    } catch (error) {
      onBroken(error instanceof Error ? error.message : "");
    }
  }

  /** @param {HTMLElement} value @param {readonly string[]} path */
  function makeEditable(value, path) {
    value.tabIndex = 0;
    value.title = TEXT.editValue;
    value.addEventListener("dblclick", () => edit(value, path));
    value.addEventListener("keydown", (event) => {
      if (event.target === value && (event.key === "Enter" || event.key === "F2")) {
        event.preventDefault();
        edit(value, path);
      }
    });
  }

  /** @param {HTMLElement} value @param {readonly string[]} path */
  function edit(value, path) {
    if (editing) {
      return;
    }
    const { start, end } = placeOf(edited.text, path);
    const field = h("input", { class: "value-field", value: edited.text.slice(start, end), "aria-label": path.at(-1) ?? TEXT.editValue, onblur: () => commit(), onkeydown: onKey });
    editing = { value, path, field };
    fill(value, field);
    field.focus();
    field.select();
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    event.stopPropagation();
    if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) {
      return;
    }
    event.preventDefault();
    const value = editing?.value;
    event.key === "Enter" ? commit() : end();
    editing || value?.focus();
  }

  /** What is no value stays in the field, with the reason. */
  function commit() {
    if (!editing) {
      return;
    }
    const { field, value, path } = editing;
    const source = field.value.trim();
    if (!readScalar(source)) {
      field.setAttribute("aria-invalid", "true");
      value.querySelector("[role=alert]") ?? value.append(h("span", { class: "value-wrong", role: "alert" }, TEXT.noValue));
      return;
    }
    const place = placeOf(edited.text, path);
    if (source !== edited.text.slice(place.start, place.end)) {
      edited.change({ ...place, text: source });
    }
    end();
  }

  /** The field goes, and the value is shown as it is now. */
  function end() {
    if (editing) {
      const { value, path } = editing;
      editing = null;
      const place = placeOf(edited.text, path);
      const { value: now } = readScalar(edited.text.slice(place.start, place.end)) ?? { value: null };
      const inTable = value.matches("td");
      value.className = inTable ? (typeof now === "number" ? "number" : "") : `document-value document-value-${now === null ? "null" : typeof now}`;
      fill(value, inTable && typeof now === "string" ? now : JSON.stringify(now));
      edited.catchUp();
    }
  }
}
