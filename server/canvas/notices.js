// @ts-check
/** What the user must know now: how the connection is, errors, and what has just been done. */

import { button, iconButton } from "./controls.js";
import { fill, h, setText } from "./dom.js";
import { icon } from "./icons.js";
import { TEXT, say } from "./strings.js";

const INFO_MS = 6_000;
const RETRY_MS = 15_000;
const BACK_MS = 2_500;
const SECOND = 1_000;

/** @type {Record<string, string>} */
const ANNOUNCED = {
  offline: TEXT.offline,
  reconnecting: TEXT.connectionLost,
  online: TEXT.connectedAgain,
};

/** @param {HTMLElement} element @param {App} app */
export function mountNotices(element, app) {
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", "Notices");
  const connection = createConnection(app);
  /** @type {Map<number, HTMLElement>} */
  const toasts = new Map();
  const list = h("div", { class: "notices-list", "aria-live": "polite" });
  fill(element, list);
  element.before(...connection);

  app.store.subscribe((state, previous) => state.notices !== previous.notices && draw(state));
  draw(app.store.state);

  /** @param {State} state */
  function draw({ notices }) {
    const there = new Set(notices.map((notice) => notice.id));
    for (const [id, toast] of toasts) {
      if (!there.has(id)) {
        toast.remove();
        toasts.delete(id);
      }
    }
    for (const notice of notices) {
      if (!toasts.has(notice.id)) {
        const toast = toastOf(notice, () => app.store.dispatch({ type: "notice-dismissed", id: notice.id }));
        toasts.set(notice.id, toast);
        list.append(toast);
      }
    }
  }
}

/** @param {State["notices"][number]} notice @param {() => void} dismiss */
function toastOf({ kind, text, action }, dismiss) {
  const toast = h(
    "div",
    { class: "toast floating", role: kind === "error" ? "alert" : "status" },
    kind === "error" && icon("failed"),
    h("span", { class: "toast-text", dir: "auto" }, text),
    action && button(action.label, () => (dismiss(), action.run())),
    iconButton("close", TEXT.dismiss, dismiss, { size: 14 }),
  );
  // What can be tried again stands in the conversation, too.
  const time = kind === "info" ? INFO_MS : RETRY_MS;
  if (kind === "info" || action) {
    let timer = setTimeout(dismiss, time);
    toast.addEventListener("pointerenter", () => clearTimeout(timer));
    toast.addEventListener("pointerleave", () => (timer = setTimeout(dismiss, time)));
    toast.addEventListener("focusin", () => clearTimeout(timer));
  }
  return toast;
}

/**
 * The line at the end of the page that says how the connection is, and what a screen reader is told: not each second.
 * @param {App} app
 * @returns {HTMLElement[]}
 */
function createConnection(app) {
  const text = h("span", {});
  const dot = h("span", { class: "dot" });
  const bar = h("div", { class: "connection", "aria-hidden": "true", hidden: true }, dot, text);
  const status = h("p", { class: "visually-hidden", role: "status" });
  let ticking = 0;
  let lost = false;

  const show = (/** @type {string} */ kind, /** @type {string} */ words, /** @type {string} */ colour) => {
    if (bar.dataset.state !== kind) {
      bar.dataset.state = kind;
      status.textContent = ANNOUNCED[kind];
    }
    bar.hidden = false;
    dot.className = `dot ${colour}`;
    setText(text, words);
  };
  const draw = () => {
    const { connection, retryAt } = app.store.state;
    clearTimeout(ticking);
    if (!navigator.onLine) {
      lost = true;
      show("offline", ANNOUNCED.offline, "dot-danger");
    } else if (connection === "reconnecting") {
      lost = true;
      const seconds = Math.ceil((retryAt - Date.now()) / SECOND);
      show("reconnecting", seconds > 0 ? say(TEXT.reconnectingIn, { seconds }) : TEXT.reconnecting, "dot-warning");
      ticking = setTimeout(draw, SECOND / 2);
    } else if (lost && connection === "online") {
      lost = false;
      show("online", ANNOUNCED.online, "dot-working");
      ticking = setTimeout(draw, BACK_MS);
    } else {
      bar.hidden = true;
      delete bar.dataset.state;
      status.textContent = "";
    }
  };
  addEventListener("online", draw);
  addEventListener("offline", draw);
  app.store.subscribe((state, previous) => (state.connection !== previous.connection || state.retryAt !== previous.retryAt) && draw());
  draw();
  return [bar, status];
}
