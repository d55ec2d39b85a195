// @ts-check
/** Dialogs and menus. Both give the focus back when they close. */

import { h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * Asks before something is done that cannot be taken back.
 * @param {{title: string, text: string[], action: string, danger?: boolean}} options  `action` is on the button
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, action, danger = false }) {
  return new Promise((resolve) => {
    const close = (/** @type {string} */ value) => dialog.close(value);
    const cancel = h("button", { class: "button", type: "button", onclick: () => close("") }, "Cancel");
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": "dialog-title" },
      h("h2", { class: "dialog-title", id: "dialog-title", dir: "auto" }, title),
      text.map((sentence) => h("p", { class: "dialog-text", dir: "auto" }, sentence)),
      h("div", { class: "dialog-actions" }, cancel, h("button", { class: `button ${danger ? "button-danger" : "button-primary"}`, type: "button", onclick: () => close("yes") }, action)),
    );
    dialog.addEventListener("click", (/** @type {Event} */ event) => event.target === dialog && isOutside(/** @type {MouseEvent} */ (event), dialog) && close(""));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    cancel.focus();
  });
}

/** @param {MouseEvent} event @param {HTMLElement} element */
function isOutside({ clientX, clientY }, element) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

/**
 * Opens a menu at a button.
 * @param {HTMLElement} opener
 * @param {{text: string, sign?: string, danger?: boolean, run: () => void}[]} items
 */
export function openMenu(opener, items) {
  const menu = h(
    "div",
    { class: "menu floating", role: "menu", popover: "auto" },
    items.map(({ text, sign, danger, run }) =>
      h("button", { class: danger ? "menu-item menu-danger" : "menu-item", type: "button", role: "menuitem", onclick: () => (menu.hidePopover(), run()) }, sign && icon(sign), text),
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
  menu.querySelector("button").focus();
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

/** Below the opener and under its right edge, or above it if there is no room. @param {HTMLElement} menu @param {DOMRect} rect */
function placeAt(menu, rect) {
  const { width, height } = menu.getBoundingClientRect();
  const below = rect.bottom + 4;
  const top = below + height > innerHeight - 8 ? Math.max(8, rect.top - height - 4) : below;
  menu.style.top = `${top}px`;
  menu.style.left = `${Math.min(Math.max(8, rect.right - width), innerWidth - width - 8)}px`;
}
