// @ts-check
/**
 * The columns: their widths, the drawer of the conversations, the two views of a phone.
 *
 * A pane asks for a view with an event that rises from any element of it: `show-chat`, `show-document`,
 * `show-contexts`, `hide-contexts`, `show-developer` (see `ask`).
 */
import { createTabs } from "./controls.js";
import { isGuest, shownArtifact } from "./state/reducer.js";
import { readStored, writeStored } from "./storage.js";
import { TEXT } from "./strings.js";
import { plainName } from "./words.js";

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

/** Where the list of conversations is a drawer, it closes. @param {Element} element */
export function closeDrawer(element) {
  matchMedia(NARROW).matches && ask(element, "hide-contexts");
}

/** Whether there is, or will soon be, a document in the open conversation. @param {State} state */
function hasDocument(state) {
  const summary = state.contexts.find((context) => context.contextId === state.contextId);
  return Object.keys(state.artifacts).length > 0 || state.artifactId !== null || (summary?.artifacts.length ?? 0) > 0;
}

/**
 * @param {HTMLElement} shell
 * @param {any} app
 */
export function mountLayout(shell, app) {
  const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const stored = readLayout();
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
  const keep = (/** @type {number} */ width) => keepLayout({ [column.name]: set(width) });

  set(Number(stored[column.name]) || column.start);
  addEventListener("resize", () => set(Number(readLayout()[column.name]) || column.start));
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
    keepLayout({ contexts: shell.dataset.contexts });
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
  const show = (/** @type {string} */ view) => {
    shell.dataset.view = view;
    draw(app.store.state);
  };
  const tabs = createTabs({ label: TEXT.views, look: "view-tab", choose: show });
  bar.append(tabs.element);
  shell.addEventListener("show-chat", () => show("chat"));
  shell.addEventListener("show-document", () => show("document"));

  /** What the user has seen of the document; of a conversation that was there before, what it had at first. @type {State|null} */
  let seen = null;
  let begunHere = false;
  let touched = false;
  ["pointerdown", "keydown"].forEach((input) => shell.addEventListener(input, () => (touched = true), { capture: true, once: true }));
  const draw = (/** @type {State} */ state) => {
    shell.dataset.document = hasDocument(state) ? "shown" : "none";
    // Who comes by a link comes for the document.
    if (!touched && isGuest(state) && shell.dataset.document === "shown") {
      shell.dataset.view = "document";
    }
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
    const name = plainName(artifact?.name ?? "") || TEXT.document;
    const chat = { id: "chat", name: TEXT.conversation, panel: "chat", sign: "chat" };
    tabs.update([chat, { id: "document", name, panel: "document", sign: "document", busy: changed, note: changed ? TEXT.changed : "" }], shell.dataset.view ?? "");
  };
  app.store.subscribe(draw);
  show("chat");
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

/** @returns {Stored} */
const readLayout = () => readStored(STORED, "localStorage") ?? {};

/** @param {Stored} stored */
const keepLayout = (stored) => writeStored(STORED, { ...readLayout(), ...stored }, "localStorage");
