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
 * @param {string} [html]  the same with its formatting
 */
export async function copyAndTell(app, text, done, instead = "", html = "") {
  const isCopied = await copyText(text, html);
  app.notify(isCopied ? "info" : "error", isCopied ? done : `${TEXT.cannotCopy} ${instead}`.trim());
}

/** @param {string} text @param {string} [html]  the same with its formatting @returns {Promise<boolean>} false if the browser does not let the page copy */
export async function copyText(text, html = "") {
  const types = { "text/plain": text, ...(html && { "text/html": html }) };
  const blobs = Object.entries(types).map(([type, content]) => [type, new Blob([content], { type })]);
  try {
    await navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]);
    return true;
  } catch {
    return copySelection(text, types);
  }
}

/** @param {string} text @param {Record<string, string>} types */
function copySelection(text, types) {
  const focused = /** @type {HTMLElement|null} */ (document.activeElement);
  const field = h("textarea", { class: "visually-hidden", value: text, tabIndex: -1 });
  // Behind a modal dialog nothing can be selected.
  (focused?.closest("dialog") ?? document.body).append(field);
  field.select();
  const fill = (/** @type {ClipboardEvent} */ event) => {
    event.preventDefault();
    Object.entries(types).forEach(([type, content]) => event.clipboardData?.setData(type, content));
  };
  document.addEventListener("copy", fill, { once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", fill);
  field.remove();
  focused?.focus();
  return done;
}
