// @ts-check
/**
 * The columns: their widths, the drawer of the conversations, the two views of a phone.
 *
 * A pane asks for a view with an event that rises from any element of it: `show-chat`, `show-document`,
 * `show-contexts`, `hide-contexts`, `show-developer` (see `ask`).
 */
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { shownArtifact } from "./state/reducer.js";
import { plainName } from "./words.js";

/** @typedef {import("./types.js").State} State */
/** @typedef {{name: string, start: number, least: number, most: (room: number) => number}} Column */

const NARROW = "(max-width: 1099.98px)";
const STORED = "a2a-canvas.layout";
const STEP = 16;

/** @type {Record<string, Column>} widths in pixels; `most` depends on the width of the page */
const COLUMNS = {
  "contexts-separator": { name: "--contexts-width", start: 260, least: 200, most: () => 420 },
  "document-separator": { name: "--chat-width", start: 400, least: 320, most: (room) => Math.max(320, room - 360) },
};

/** @param {Element} element @param {"show-chat"|"show-document"|"show-contexts"|"hide-contexts"|"show-developer"} what */
export function ask(element, what) {
  element.dispatchEvent(new CustomEvent(what, { bubbles: true }));
}

/** Whether there is, or will soon be, a document in the open conversation. @param {State} state */
export function hasDocument(state) {
  const summary = state.contexts.find((context) => context.contextId === state.contextId);
  return Object.keys(state.artifacts).length > 0 || state.artifactId !== null || (summary?.artifacts.length ?? 0) > 0;
}

/**
 * @param {HTMLElement} shell
 * @param {any} app
 */
export function mountLayout(shell, app) {
  const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const stored = readStored();
  for (const [id, column] of Object.entries(COLUMNS)) {
    mountSeparator(shell, find(id), column, stored);
  }
  mountContextsColumn(shell, find("contexts"), find("main"), find("scrim"), stored);
  mountViews(shell, find("tabs"), app);
  mountSkipLinks(find);
}

// ------------------------------------------------------------------------------------------------------- separators

/** @param {HTMLElement} shell @param {HTMLElement} separator @param {Column} column @param {Stored} stored */
function mountSeparator(shell, separator, column, stored) {
  const pane = /** @type {HTMLElement} */ (document.getElementById(separator.getAttribute("aria-controls") ?? ""));
  const most = () => column.most(/** @type {HTMLElement} */ (separator.parentElement).clientWidth);
  const set = (/** @type {number} */ wished) => {
    const width = Math.round(Math.min(Math.max(wished, column.least), most()));
    shell.style.setProperty(column.name, `${width}px`);
    separator.setAttribute("aria-valuenow", String(width));
    separator.setAttribute("aria-valuemin", String(column.least));
    separator.setAttribute("aria-valuemax", String(most()));
    return width;
  };
  const keep = (/** @type {number} */ width) => store({ ...readStored(), [column.name]: set(width) });

  set(Number(stored[column.name]) || column.start);
  addEventListener("resize", () => set(Number(readStored()[column.name]) || column.start));
  separator.addEventListener("dblclick", () => keep(column.start));
  separator.addEventListener("keydown", (event) => {
    const width = pane.getBoundingClientRect().width;
    const step = event.shiftKey ? 4 * STEP : STEP;
    /** @type {Record<string, number>} */
    const widths = { ArrowLeft: width - step, ArrowRight: width + step, Home: column.least, End: most() };
    if (event.key in widths) {
      event.preventDefault();
      keep(widths[event.key]);
    }
  });
  separator.addEventListener("pointerdown", (event) => {
    const offset = pane.getBoundingClientRect().width - event.clientX;
    event.preventDefault();
    separator.focus({ preventScroll: true });
    separator.setPointerCapture(event.pointerId);
    shell.dataset.dragging = separator.dataset.dragging = "";
    const move = (/** @type {PointerEvent} */ moved) => set(moved.clientX + offset);
    separator.addEventListener("pointermove", move);
    separator.addEventListener(
      "lostpointercapture",
      () => {
        separator.removeEventListener("pointermove", move);
        delete shell.dataset.dragging;
        delete separator.dataset.dragging;
        keep(pane.getBoundingClientRect().width);
      },
      { once: true },
    );
  });
}

// --------------------------------------------------------------------------------------------------- conversations

/**
 * Beside the conversation on a wide page, where it can be closed for good; a drawer over it on a narrow one.
 * @param {HTMLElement} shell @param {HTMLElement} contexts @param {HTMLElement} main @param {HTMLElement} scrim
 * @param {Stored} stored
 */
function mountContextsColumn(shell, contexts, main, scrim, stored) {
  const narrow = matchMedia(NARROW);
  /** @type {HTMLElement|null} */
  let opener = null;

  const drawer = (/** @type {boolean} */ open) => {
    if (open === (shell.dataset.drawer === "open")) {
      return;
    }
    shell.dataset.drawer = open ? "open" : "closed";
    main.inert = open;
    scrim.hidden = !open;
    if (open) {
      opener = /** @type {HTMLElement|null} */ (document.activeElement);
      /** @type {HTMLElement|null} */ (contexts.querySelector("[aria-current], button:not([hidden]), a"))?.focus();
    } else {
      opener?.focus();
      opener = null;
    }
  };
  const column = (/** @type {boolean} */ open) => {
    shell.dataset.contexts = open ? "open" : "closed";
    store({ ...readStored(), contexts: shell.dataset.contexts });
  };
  const show = (/** @type {boolean} */ open) => (narrow.matches ? drawer(open) : column(open));

  shell.dataset.contexts = stored.contexts === "closed" ? "closed" : "open";
  shell.addEventListener("show-contexts", () => show(true));
  shell.addEventListener("hide-contexts", () => show(false));
  scrim.addEventListener("click", () => drawer(false));
  contexts.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && shell.dataset.drawer === "open") {
      event.preventDefault();
      drawer(false);
    }
  });
  narrow.addEventListener("change", () => drawer(false));
}

// ---------------------------------------------------------------------------------------------------------- views

/** @param {HTMLElement} shell @param {HTMLElement} bar @param {any} app */
function mountViews(shell, bar, app) {
  const chat = viewTab("chat", "chat", "Conversation");
  const page = viewTab("document", "document", "Document");
  bar.setAttribute("role", "tablist");
  bar.setAttribute("aria-label", "Views");
  fill(bar, chat, page);

  const show = (/** @type {"chat"|"document"} */ view) => {
    shell.dataset.view = view;
    for (const tab of [chat, page]) {
      tab.setAttribute("aria-selected", String(tab.dataset.view === view));
      tab.tabIndex = tab.dataset.view === view ? 0 : -1;
    }
    draw(app.store.state);
  };
  bar.addEventListener("click", (event) => {
    const tab = /** @type {HTMLElement} */ (event.target).closest(".view-tab");
    tab && show(/** @type {any} */ (tab).dataset.view);
  });
  bar.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const other = document.activeElement === chat ? page : chat;
      show(other.dataset.view);
      other.focus();
    }
  });
  shell.addEventListener("show-chat", () => show("chat"));
  shell.addEventListener("show-document", () => show("document"));

  /** What the user has seen of the document; of a conversation that was there before, what it had at first. @type {State|null} */
  let seen = null;
  let begunHere = false;
  const draw = (/** @type {State} */ state) => {
    shell.dataset.document = hasDocument(state) ? "shown" : "none";
    if (shell.dataset.document === "none" && shell.dataset.view === "document") {
      show("chat");
    }
    if (seen?.contextId !== state.contextId) {
      begunHere = Object.values(state.outgoing).some((each) => each.contextId === state.contextId);
      seen = state;
    }
    if (shell.dataset.view === "document" || (!begunHere && Object.keys(seen.artifacts).length === 0)) {
      seen = state;
    }
    const artifact = shownArtifact(state);
    const changed = artifact !== null && artifact !== seen?.artifacts[artifact.artifactId];
    fill(page, icon("document"), h("span", { class: "truncate" }, plainName(artifact?.name ?? "") || "Document"), changed && h("span", { class: "dot dot-working" }), changed && h("span", { class: "visually-hidden" }, "changed"));
  };
  app.store.subscribe(draw);
  show("chat");
}

/** @param {string} view @param {string} sign @param {string} name */
function viewTab(view, sign, name) {
  return h("button", { class: "view-tab", type: "button", role: "tab", "aria-controls": view, "data-view": view }, icon(sign), name);
}

/** The fragment of the address says what is open, so these links move the focus and nothing else. @param {(id: string) => HTMLElement} find */
function mountSkipLinks(find) {
  for (const link of document.querySelectorAll("[data-skip]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const field = /** @type {HTMLElement|null} */ (document.querySelector(".composer-field"));
      (/** @type {HTMLElement} */ (link).dataset.skip === "message" ? field : find("document"))?.focus();
    });
  }
}

// -------------------------------------------------------------------------------------------------------- storage

/** @typedef {Record<string, string|number>} Stored */

/** What was kept, if the browser lets us. @returns {Stored} */
function readStored() {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** @param {Stored} stored */
function store(stored) {
  try {
    localStorage.setItem(STORED, JSON.stringify(stored));
  } catch {
    // A browser that keeps nothing forgets the widths.
  }
}
