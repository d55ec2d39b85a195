// @ts-check
/** The developer view: a drawer below the page with what was sent and received, the agent card and the selected text. */

import { fill, h } from "../dom.js";
import { icon } from "../icons.js";
import { previewOf } from "../document/files/preview.js";
import { copied } from "../clipboard.js";
import { createEventList } from "./event_list.js";
import { KINDS, selectedText } from "./events.js";

/** @typedef {import("../types.js").State} State */

const SEARCH_MS = 150;

/** @type {{open: () => void, close: () => void, isOpen: () => boolean}|null} */
let drawer = null;

/** Opens it, or closes it. @param {import("../app.js").App} app */
export function toggleDeveloper(app) {
  drawer ??= createDrawer(app);
  drawer.isOpen() ? drawer.close() : drawer.open();
}

/** @param {import("../app.js").App} app */
function createDrawer(app) {
  const { store, client } = app;
  /** @type {HTMLElement|null} */
  let opener = null;
  const copy = async (/** @type {string} */ text, /** @type {string} */ what) => {
    const done = await copied(text);
    app.notify(done ? "info" : "error", done ? `Copied ${what}.` : "The browser does not let the page copy.");
  };

  const events = createEventList(client.log, copy);
  const card = h("div", { class: "developer-panel" });
  const selection = h("div", { class: "developer-panel" });
  const tabs = createTabs({
    Events: [filters(events), events.element],
    "Agent card": [card],
    "Selected text": [selection],
  });
  const close = h("button", { class: "icon-button", type: "button", "aria-label": "Close the developer view", title: "Close", onclick: shut }, icon("close"));
  const element = h(
    "section",
    { class: "developer", "aria-label": "Developer view", hidden: true, onkeydown: escape },
    h("header", { class: "developer-head" }, tabs.list, events.count, close),
    tabs.panels,
  );
  const ready = styled();
  document.body.append(element);
  store.subscribe((state, previous) => !element.hidden && draw(state, previous));

  /** @param {State} state @param {State|null} previous */
  function draw(state, previous) {
    if (state.server !== previous?.server) {
      fill(card, cardOf(state, client.base, copy));
    }
    if (state.selection !== previous?.selection) {
      fill(selection, selectionOf(state, copy));
    }
  }

  async function show() {
    await ready;
    opener = /** @type {HTMLElement|null} */ (document.activeElement);
    element.hidden = false;
    document.body.dataset.developer = "open";
    draw(store.state, null);
    events.start();
    tabs.focus();
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

/** The style sheet is loaded with the view. @returns {Promise<void>} */
function styled() {
  return new Promise((resolve) => {
    const href = new URL("../style/developer.css", import.meta.url).href;
    document.head.append(h("link", { rel: "stylesheet", href, onload: () => resolve(), onerror: () => resolve() }));
  });
}

/** @param {ReturnType<typeof createEventList>} events */
function filters(events) {
  let timer = 0;
  const kinds = h(
    "select",
    { class: "field", "aria-label": "Kind of event", onchange: () => events.show({ kind: kinds.value }) },
    Object.entries(KINDS).map(([value, text]) => h("option", { value }, text)),
  );
  const words = h("input", {
    class: "field",
    type: "search",
    placeholder: "Filter",
    "aria-label": "Text in the events",
    autocomplete: "off",
    spellcheck: false,
    oninput: () => (clearTimeout(timer), (timer = setTimeout(() => events.show({ words: words.value.trim() }), SEARCH_MS))),
  });
  return h("div", { class: "developer-filters" }, kinds, words);
}

/** @param {State} state @param {string} base @param {(text: string, what: string) => void} copy */
function cardOf({ server }, base, copy) {
  if (!server) {
    return h("p", { class: "developer-empty" }, "The agent card could not be read.");
  }
  const json = () => copy(JSON.stringify(server.card, null, 2), "the agent card");
  return [
    h(
      "div",
      { class: "developer-actions" },
      h("button", { class: "button", type: "button", onclick: json }, "Copy JSON"),
      h("span", { class: "muted truncate" }, `${base}.well-known/agent-card.json`),
    ),
    previewOf({ data: server.card }),
  ];
}

/** @param {State} state @param {(text: string, what: string) => void} copy */
function selectionOf({ selection }, copy) {
  if (!selection) {
    return h("p", { class: "developer-empty" }, "Select a passage in the document to see how a request refers to it.");
  }
  const json = JSON.stringify(selectedText(selection), null, 2);
  return [
    h(
      "div",
      { class: "developer-actions" },
      h("button", { class: "button", type: "button", onclick: () => copy(json, "the selected text") }, "Copy JSON"),
      h("span", { class: "muted" }, `Version ${selection.version}. Offsets count UTF-16 code units, lines count from 1.`),
    ),
    h("pre", { class: "developer-text" }, json),
  ];
}

/** @param {Record<string, HTMLElement[]>} contents  by their titles */
function createTabs(contents) {
  const titles = Object.keys(contents);
  const id = (/** @type {string} */ title) => `developer-${title.toLowerCase().replace(" ", "-")}`;
  const buttons = titles.map((title) =>
    h("button", { class: "developer-tab", type: "button", role: "tab", id: `${id(title)}-tab`, "aria-controls": id(title), onclick: () => choose(title) }, title),
  );
  const panels = titles.map((title) =>
    h("div", { class: "developer-body", role: "tabpanel", id: id(title), "aria-labelledby": `${id(title)}-tab` }, contents[title]),
  );
  const list = h("div", { class: "developer-tabs", role: "tablist", "aria-label": "Parts of the developer view", onkeydown: keyed }, buttons);

  /** @param {string} chosen */
  function choose(chosen) {
    titles.forEach((title, at) => {
      buttons[at].setAttribute("aria-selected", String(title === chosen));
      buttons[at].tabIndex = title === chosen ? 0 : -1;
      panels[at].hidden = title !== chosen;
    });
  }

  /** @param {KeyboardEvent} event */
  function keyed(event) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step) {
      const next = (buttons.indexOf(event.target) + step + titles.length) % titles.length;
      choose(titles[next]);
      buttons[next].focus();
    }
  }

  choose(titles[0]);
  return { list, panels, focus: () => buttons.find((button) => button.tabIndex === 0).focus() };
}
