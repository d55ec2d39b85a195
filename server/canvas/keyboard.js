// @ts-check
/** The keys of the page, and the dialog that lists them. */

import { h } from "./dom.js";

const MAC = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");
const MOD = MAC ? "⌘" : "Ctrl";

/** What the dialog lists: keys and what they do. A test compares it with the keys that modules listen to. */
export const KEYS = [
  ["Enter", "Send the message"],
  ["Shift+Enter", "Begin a new line in the message"],
  [`${MOD}+Enter`, "Send the message, also on a touch screen"],
  ["/", "Go to the message field"],
  ["Esc", "Close what is open; stop the agent"],
  [`${MOD}+Z`, "Undo the last change of the document"],
  [`${MOD}+Shift+Z`, `Redo it; ${MOD}+Y does so, too`],
  [`${MOD}+S`, "Save now what you typed into the document"],
  [`${MOD}+F`, "Search the source of the document"],
  ["Tab", "From a selected passage to the bar that changes it; Shift+Tab goes back"],
  ["↑ ↓", "Move in the list of conversations, in menus and in lists of events"],
  ["← →", "Move between tabs; resize a column"],
  ["Home End", "To the first or last of them"],
  ["F2", "Rename the conversation in the list"],
  ["Delete", "Delete the conversation in the list"],
  ["?", "Show this list"],
];

/**
 * What a key means where it was pressed; null for nothing. Pure.
 * @param {{key: string, ctrlKey: boolean, metaKey: boolean, shiftKey: boolean, altKey: boolean}} event
 * @param {"text"|"editor"|"elsewhere"} where  `editor` is the source of the document
 * @returns {"focus"|"stop"|"undo"|"redo"|"save"|"help"|null}
 */
export function meaningOf({ key, ctrlKey, metaKey, shiftKey, altKey }, where) {
  const modified = ctrlKey || metaKey;
  if (modified && !altKey && where !== "text") {
    const lower = key.toLowerCase();
    if (lower === "z") {
      return shiftKey ? "redo" : "undo";
    }
    if (lower === "s" && !shiftKey) {
      return "save";
    }
    return lower === "y" && !shiftKey ? "redo" : null;
  }
  if (modified || altKey) {
    return null;
  }
  if (key === "Escape") {
    return "stop";
  }
  if (where !== "elsewhere") {
    return null;
  }
  return key === "/" ? "focus" : key === "?" ? "help" : null;
}

/**
 * Listens to the keys of the whole page. What another listener has taken (`preventDefault`, `stopPropagation`) is not taken
 * again: the editor undoes what was typed in it before the document goes back a version.
 * @param {{focus: () => void, stop: () => void, undo: () => void, redo: () => void, save: () => void}} actions
 */
export function mountKeyboard(actions) {
  const dialog = createHelp();
  document.body.append(dialog);
  const help = () => dialog.showModal();
  document.addEventListener("keydown", (event) => {
    const meaning = event.defaultPrevented || document.querySelector("dialog[open]") ? null : meaningOf(event, placeOf(event.target));
    if (meaning) {
      event.preventDefault();
      ({ ...actions, help })[meaning]();
    }
  });
  return { help };
}

/** @param {EventTarget|null} target @returns {"text"|"editor"|"elsewhere"} */
function placeOf(target) {
  const element = target instanceof Element ? target : null;
  if (element?.closest(".cm-editor")) {
    return "editor";
  }
  return element?.closest("input:not([type=range]), textarea, select, [contenteditable]") ? "text" : "elsewhere";
}

/** @returns {HTMLDialogElement} */
function createHelp() {
  const rows = KEYS.map(([keys, what]) => [
    h("dt", {}, keys.split(/([+ ])/).map((key) => (/^[+ ]$/.test(key) ? key : h("kbd", {}, key)))),
    h("dd", {}, what),
  ]);
  return h(
    "dialog",
    { class: "dialog dialog-keys", "aria-label": "Keys" },
    h("h2", { class: "dialog-title" }, "Keys"),
    h("dl", { class: "keys" }, rows),
    h("form", { method: "dialog", class: "dialog-actions" }, h("button", { class: "button" }, "Close")),
  );
}
