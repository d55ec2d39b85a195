// @ts-check
/** The tabs of the artifacts: arrows, Home and End move between them, as in any list of tabs. */

import { fill, h } from "../dom.js";

/** @typedef {{id: string, name: string, busy: boolean}} Tab */

/**
 * @param {(id: string) => void} onChoose
 */
export function createTabs(onChoose) {
  /** @type {Tab[]} */
  let shown = [];
  let chosen = "";
  const element = h("div", { class: "document-tabs", role: "tablist", "aria-label": "Documents", onkeydown: move });
  return { element, update };

  /** @param {Tab[]} tabs @param {string} selected */
  function update(tabs, selected) {
    const same = tabs.length === shown.length && tabs.every((tab, at) => equal(tab, shown[at]));
    if (same && selected === chosen) {
      return;
    }
    const focused = element.contains(document.activeElement);
    shown = tabs;
    chosen = selected;
    fill(element, tabs.map(tabElement));
    element.hidden = tabs.length < 2;
    const current = /** @type {HTMLElement|null} */ (element.querySelector("[aria-selected=true]"));
    focused && current?.focus();
    current?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  /** @param {Tab} tab */
  function tabElement({ id, name, busy }) {
    const selected = id === chosen;
    return h(
      "button",
      {
        type: "button",
        class: "document-tab",
        role: "tab",
        "aria-selected": String(selected),
        "aria-controls": "document-panel",
        tabIndex: selected ? 0 : -1,
        title: name,
        onclick: () => onChoose(id),
      },
      busy ? h("span", { class: "dot dot-working", "aria-hidden": "true" }) : null,
      h("bdi", { class: "truncate" }, name),
    );
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const at = shown.findIndex((tab) => tab.id === chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined && shown.length > 0) {
      event.preventDefault();
      onChoose(shown[(to + shown.length) % shown.length].id);
    }
  }
}

/** @param {Tab} a @param {Tab} b */
const equal = (a, b) => a.id === b.id && a.name === b.name && a.busy === b.busy;
