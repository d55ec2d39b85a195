// @ts-check
/** The dialog that lists the keys of the page. */

import { closingButton, closingButtons, openDialog } from "./dialogs.js";
import { h } from "./dom.js";

const MAC = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");
const MOD = MAC ? "⌘" : "Ctrl";

/** What the dialog lists: keys and what they do. A test compares it with the keys that modules listen to. */
export const KEYS = [
  ["Enter", "Send the message"],
  ["Shift+Enter", "Start a new line in the message"],
  [`${MOD}+Enter`, "Send the message, also on a touch screen"],
  ["/", "Go to the message field"],
  ["Esc", "Close what is open; stop the agent"],
  [`${MOD}+Z`, "Undo the last change of the document"],
  [`${MOD}+Shift+Z`, `Redo it; ${MOD}+Y does so, too`],
  [`${MOD}+S`, "Save your changes to the document now"],
  [`${MOD}+K`, "Find a conversation, a document, a version, a line or an action"],
  [`${MOD}+F`, "Search the source of the document"],
  ["Tab", "Move from a selected passage to its action bar, Shift+Tab back. Typing a letter starts an instruction"],
  ["↑ ↓", "Move in the list of conversations, in menus and in lists of events"],
  ["← →", "Move between tabs; to the actions of a conversation in the list and back; resize a column"],
  [`${MOD}+A`, "Select all of the document"],
  ["Home End", "Move to the first or last of them"],
  ["] [", "Go to the next or the previous suggestion"],
  ["A R", "Accept or reject the suggestion"],
  ["Space", "Tick or untick a task in the document"],
  ["F2", "Rename the conversation in the list"],
  ["Delete", "Delete the conversation in the list"],
  ["?", "Show this list"],
];

export function showKeys() {
  if (document.querySelector("dialog[open]")) {
    return;
  }
  const rows = KEYS.map(([keys, what]) => [
    h("dt", {}, keys.split(/([+ ])/).map((key) => (/^[+ ]$/.test(key) ? key : h("kbd", {}, key)))),
    h("dd", {}, what),
  ]);
  openDialog("Keys", [h("dl", { class: "keys" }, rows), closingButtons(closingButton("Close", ""))], "dialog-keys");
}
