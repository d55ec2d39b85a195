// @ts-check
/** The developer view: a drawer below the page with what was sent and received, the agent card and the selected text. */

import { copyAndTell } from "../clipboard.js";
import { button, createTabs, iconButton } from "../controls.js";
import { previewOf } from "../document/files/preview.js";
import { fill, h } from "../dom.js";
import { createEventList } from "./event_list.js";
import { KINDS, selectedText } from "./events.js";
import { TEXT, say } from "../strings.js";

const SEARCH_MS = 150;

/** @type {{open: () => void, close: () => void, isOpen: () => boolean}|null} */
let drawer = null;

/** Opens it, or closes it. @param {App} app */
export function toggleDeveloper(app) {
  drawer ??= createDrawer(app);
  drawer.isOpen() ? drawer.close() : drawer.open();
}

/** @param {App} app */
function createDrawer(app) {
  const { store, client } = app;
  /** @type {HTMLElement|null} */
  let opener = null;
  const copy = (/** @type {string} */ text, /** @type {string} */ what) => copyAndTell(app, text, say(TEXT.copied, { what }));

  const events = createEventList(client.log, copy);
  const card = h("div", { class: "developer-panel" });
  const selection = h("div", { class: "developer-panel" });
  const panels = [panel(TEXT.events, filters(events), events.element), panel(TEXT.agentCardTab, card), panel(TEXT.selectedTextTab, selection)];
  const tabs = createTabs({ label: TEXT.developerParts, look: "developer-tab", choose });
  choose(panels[0].id);
  const close = iconButton("close", TEXT.closeDeveloperView, shut, { title: TEXT.close });
  const element = h(
    "section",
    { class: "developer", "aria-label": TEXT.developerView, hidden: true, onkeydown: escape },
    h("header", { class: "developer-head" }, tabs.element, events.count, close),
    panels,
  );
  document.body.append(element);
  store.subscribe((state, previous) => !element.hidden && draw(state, previous));

  /** @param {string} id  of a panel */
  function choose(id) {
    tabs.update(panels.map((each) => ({ id: each.id, name: each.ariaLabel, panel: each.id })), id);
    panels.forEach((each) => (each.hidden = each.id !== id));
  }

  /** @param {State} state @param {State|null} previous */
  function draw(state, previous) {
    if (state.server !== previous?.server) {
      fill(card, cardOf(state, client.base, copy));
    }
    if (state.selection !== previous?.selection) {
      fill(selection, selectionOf(state, copy));
    }
  }

  function show() {
    opener = /** @type {HTMLElement|null} */ (document.activeElement);
    element.hidden = false;
    document.body.dataset.developer = "open";
    draw(store.state, null);
    events.start();
    /** @type {HTMLElement|null} */ (tabs.element.querySelector("[aria-selected=true]"))?.focus();
  }

  function shut() {
    element.hidden = true;
    delete document.body.dataset.developer;
    events.stop();
    opener?.focus();
  }

  /** @param {KeyboardEvent} event */
  function escape(event) {
    if (event.key === "Escape" && !event.defaultPrevented) {
      event.preventDefault();
      shut();
    }
  }

  return { open: show, close: shut, isOpen: () => !element.hidden };
}

/** @param {ReturnType<typeof createEventList>} events */
function filters(events) {
  let timer = 0;
  const kinds = h(
    "select",
    { class: "field", "aria-label": TEXT.kindEvent, onchange: () => events.show({ kind: kinds.value }) },
    Object.entries(KINDS).map(([value, text]) => h("option", { value }, text)),
  );
  const words = h("input", {
    class: "field",
    type: "search",
    placeholder: TEXT.filter,
    "aria-label": TEXT.textInEvents,
    autocomplete: "off",
    spellcheck: false,
    oninput: () => (clearTimeout(timer), (timer = setTimeout(() => events.show({ words: words.value.trim() }), SEARCH_MS))),
  });
  return h("div", { class: "developer-filters" }, kinds, words);
}

/** @param {State} state @param {string} base @param {(text: string, what: string) => void} copy */
function cardOf({ server }, base, copy) {
  if (!server) {
    return h("p", { class: "developer-empty" }, TEXT.agentCardNotRead);
  }
  const json = () => copy(JSON.stringify(server.card, null, 2), TEXT.theAgentCard);
  return [
    h(
      "div",
      { class: "developer-actions" },
      button(TEXT.copyJson, json),
      h("span", { class: "muted truncate" }, `${base}.well-known/agent-card.json`),
    ),
    previewOf({ data: server.card }),
  ];
}

/** @param {State} state @param {(text: string, what: string) => void} copy */
function selectionOf({ selection }, copy) {
  if (!selection) {
    return h("p", { class: "developer-empty" }, TEXT.nothingSelected);
  }
  const json = JSON.stringify(selectedText(selection), null, 2);
  return [
    h(
      "div",
      { class: "developer-actions" },
      button(TEXT.copyJson, () => copy(json, TEXT.theSelectedText)),
      h("span", { class: "muted" }, say(TEXT.aboutOffsets, { version: selection.version })),
    ),
    h("pre", { class: "developer-text" }, json),
  ];
}

/** @param {string} title @param {...HTMLElement} content */
function panel(title, ...content) {
  const id = `developer-${title.toLowerCase().replace(" ", "-")}`;
  return h("div", { class: "developer-body", role: "tabpanel", id, "aria-label": title }, content);
}
