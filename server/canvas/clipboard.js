// @ts-check
/** Copies text, also where the browser has no clipboard for the page: over plain http from another machine. */

import { h } from "./dom.js";
import { TEXT } from "./strings.js";

/**
 * Copies a text, and tells the user that it is done, or what to do instead.
 * @param {App} app
 * @param {string} text
 * @param {string} done
 * @param {string} [instead]
 */
export async function copyAndTell(app, text, done, instead = "") {
  const isCopied = await copyText(text);
  app.notify(isCopied ? "info" : "error", isCopied ? done : `${TEXT.cannotCopy} ${instead}`.trim());
}

/** @param {string} text @returns {Promise<boolean>} false if the browser does not let the page copy */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}

/** @param {string} text */
function copySelection(text) {
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
