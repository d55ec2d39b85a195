// @ts-check
/** Copies text, also where the browser has no clipboard for the page: over plain http from another machine. */

import { h } from "./dom.js";

/** @param {string} text @returns {Promise<boolean>} false if the browser does not let the page copy */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

/** @param {string} text */
function copiedBySelection(text) {
  const focused = /** @type {HTMLElement|null} */ (document.activeElement);
  const field = h("textarea", { class: "visually-hidden", value: text, tabIndex: -1 });
  // Behind a modal dialog nothing can be selected.
  (focused?.closest("dialog") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}
