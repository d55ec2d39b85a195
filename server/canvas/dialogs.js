// @ts-check
/** Dialogs and menus. Both give the focus back when they close. A dialog is closed by a button of a form with `method: "dialog"`. */

import { button } from "./controls.js";
import { h } from "./dom.js";
import { TEXT } from "./strings.js";

let opened = 0;

/**
 * Shows a modal dialog.
 * @param {string} title
 * @param {any[]} content
 * @param {string} [look]  one more class
 * @returns {Promise<string>}  the value of the button that closed it; empty for the Escape key
 */
export function openDialog(title, content, look = "") {
  const id = `dialog-${++opened}`;
  const dialog = h(
    "dialog",
    { class: `dialog ${look}`, "aria-labelledby": id },
    h("h2", { class: "dialog-title", id, dir: "auto" }, title),
    content,
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}

/** The buttons below a dialog; each closes it with its value. @param {...any} buttons */
export const closingButtons = (...buttons) => h("form", { method: "dialog", class: "dialog-actions" }, buttons);

/** @param {string} text @param {string} value @param {Record<string, any>} [props] */
export const closingButton = (text, value, props) => button(text, null, { type: "submit", value, ...props });

/**
 * Asks before something is done that cannot be taken back.
 * @param {{title: string, text: string[], action: string, danger?: boolean}} options  `action` is on the button
 * @returns {Promise<boolean>}
 */
export async function confirmAction({ title, text, action, danger = false }) {
  const cancel = closingButton(TEXT.cancel, "", { autofocus: true });
  const asked = openDialog(title, [
    text.map((sentence) => h("p", { class: "dialog-text", dir: "auto" }, sentence)),
    closingButtons(cancel, closingButton(action, "yes", { class: `button ${danger ? "button-danger" : "button-primary"}` })),
  ]);
  const dialog = cancel.closest("dialog");
  dialog?.addEventListener("click", (event) => event.target === dialog && isOutside(event, dialog) && dialog.close(""));
  return (await asked) === "yes";
}

/** @param {MouseEvent} event @param {HTMLElement} element */
function isOutside({ clientX, clientY }, element) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

/** A menu has at least so much room below its opener, in pixels, or stands elsewhere. */
const ROOM = 240;

/** `look` is one more class; `current`: it has the focus at first. @typedef {{text: string, sign?: string, danger?: boolean, look?: string, current?: boolean, run: () => void}} MenuItem */

/**
 * Opens a menu at a button.
 * @param {HTMLElement} opener
 * @param {MenuItem[]} items
 */
export function openMenu(opener, items) {
  const menu = h(
    "div",
    { class: "menu floating", role: "menu", popover: "auto" },
    items.map(({ text, sign, danger, look = danger ? "menu-danger" : "", current, run }) =>
      button(text, () => (menu.hidePopover(), run()), { sign, class: `menu-item ${look}`, role: "menuitem", "aria-current": current ? "true" : null }),
    ),
  );
  menu.addEventListener("keydown", moveFocus);
  menu.addEventListener("toggle", (/** @type {any} */ event) => {
    if (event.newState === "closed") {
      menu.remove();
      opener.setAttribute("aria-expanded", "false");
      (menu.contains(document.activeElement) || document.activeElement === document.body) && opener.focus();
    }
  });
  document.body.append(menu);
  menu.showPopover();
  opener.setAttribute("aria-expanded", "true");
  placeAt(menu, opener.getBoundingClientRect());
  (menu.querySelector("[aria-current]") ?? menu.querySelector("button")).focus();
}

/** @param {KeyboardEvent} event */
function moveFocus(event) {
  const menu = /** @type {HTMLElement} */ (event.currentTarget);
  if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    menu.hidePopover();
    return;
  }
  const items = [...menu.querySelectorAll("button")];
  const at = items.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  /** @type {Record<string, number>} */
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 };
  if (event.key in next) {
    event.preventDefault();
    items.at(next[event.key] % items.length)?.focus();
  }
}

/** Below the opener and under its right edge, or above it if there is no room; what fits nowhere scrolls below it. @param {HTMLElement} menu @param {DOMRect} rect */
function placeAt(menu, rect) {
  const { width, height } = menu.getBoundingClientRect();
  const below = rect.bottom + 4;
  const room = innerHeight - 8 - below;
  const above = rect.top - height - 4;
  const top = height > room && (above > 8 || room < ROOM) ? Math.max(8, above) : below;
  top === below && (menu.style.maxHeight = `${room}px`);
  menu.style.top = `${top}px`;
  menu.style.left = `${Math.min(Math.max(8, rect.right - width), innerWidth - width - 8)}px`;
}
