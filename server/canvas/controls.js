// @ts-check
/** The buttons of the page, and its lists of tabs. */

import { fill, h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * A button with a text, and an icon before it if `sign` names one.
 * @param {any} text
 * @param {((event: any) => void)|null} onclick
 * @param {Record<string, any>} [props]  of the element
 * @returns {HTMLButtonElement}
 */
export function button(text, onclick, { sign = "", ...props } = {}) {
  return h("button", { class: "button", type: "button", onclick, ...props }, sign && icon(sign), text);
}

/**
 * A button that shows an icon alone: its label is what screen readers say, and its tooltip unless `title` is another one.
 * @param {string} sign
 * @param {string} label
 * @param {((event: any) => void)|null} onclick
 * @param {Record<string, any>} [props]  of the element; `class` is added, `size` is that of the icon
 * @returns {HTMLButtonElement}
 */
export function iconButton(sign, label, onclick, { size = 16, class: look = "", ...props } = {}) {
  return h("button", { class: `icon-button ${look}`, type: "button", "aria-label": label, title: label, onclick, ...props }, icon(sign, size));
}

/** `panel` is the id of what the tab shows. @typedef {{id: string, name: string, panel: string, sign?: string, busy?: boolean, note?: string, count?: string}} Tab */

/**
 * A list of tabs: arrows, Home and End move between them.
 * @param {{label: string, look: string, choose: (id: string) => void}} options  `look` is the class of a tab
 * @returns {{element: HTMLElement, update: (tabs: Tab[], chosen: string) => void}}
 */
export function createTabs({ label, look, choose }) {
  /** @type {Tab[]} */
  let shown = [];
  let chosen = "";
  let drawn = "";
  const element = h("div", { class: `${look}s`, role: "tablist", "aria-label": label, onkeydown: move });
  return { element, update };

  /** @param {Tab[]} tabs @param {string} selected */
  function update(tabs, selected) {
    const content = JSON.stringify([tabs, selected]);
    if (content === drawn) {
      return;
    }
    const focused = element.contains(document.activeElement);
    [shown, chosen, drawn] = [tabs, selected, content];
    fill(element, tabs.map(tabElement));
    const current = /** @type {HTMLElement|null} */ (element.querySelector("[aria-selected=true]"));
    focused && current?.focus();
    current?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  /** @param {Tab} tab */
  function tabElement({ id, name, panel, sign, busy, note, count }) {
    const selected = id === chosen;
    return button([sign && icon(sign), busy && h("span", { class: "dot dot-working", "aria-hidden": "true" }), h("bdi", { class: "truncate" }, name), count && h("span", { class: "badge badge-unread", "aria-hidden": "true" }, count), note && h("span", { class: "visually-hidden" }, ` ${note}`)], () => choose(id), {
      class: look,
      role: "tab",
      "aria-selected": String(selected),
      "aria-controls": panel,
      tabIndex: selected ? 0 : -1,
      title: name,
    });
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const at = shown.findIndex((tab) => tab.id === chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined && shown.length > 0) {
      event.preventDefault();
      choose(shown[(to + shown.length) % shown.length].id);
    }
  }
}
