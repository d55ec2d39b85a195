// @ts-check
/** Copies text, also on a page without the clipboard of the browser: it has none over http but for this machine. */

import { h } from "../dom.js";

/** @param {string} text @returns {Promise<boolean>} */
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
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}
