// @ts-check
/**
 * Comments and suggestions of the artifact that is shown: their marks in the text, the button that opens the pane of their
 * threads, and what the user does with them. The pane is loaded when it is opened first.
 */

import { randomId } from "../a2a/ids.js";
import { button } from "../controls.js";
import { h, setText } from "../dom.js";
import { partOf, withSheets } from "../loading.js";
import { annotationsOf, isOpen, notesOf, remarkOf, suggestionBeside } from "../state/annotations.js";
import { mayEdit, shownArtifact } from "../state/reducer.js";
import { TEXT, say } from "../strings.js";
import { mountReading } from "./reading.js";
import { markSeen, unreadCount } from "./seen.js";

/** @typedef {import("../document/views.js").View} View */
/** @typedef {{start: number, end: number}} SourceRange */
/** @typedef {"next"|"previous"|"accept"|"reject"} ReviewStep */
/** @typedef {Extract<Operation["op"], "annotate"|"reply"|"resolve"|"accept"|"reject"|"withdraw"|"accept-all">} Verb */
/** @typedef {{base: string, current: string, suggested: string, version: number}} Conflict  what a suggestion does not fit */

const ADDED = { ok: true, said: "", version: undefined, conflicts: [], busy: false, declined: false, answered: true };

const threadsPart = partOf(() => withSheets(import("./threads.js"), new URL("../style/review.css", import.meta.url)));

/**
 * @typedef {object} Reviewing  what the pane of the threads needs
 * @property {() => View|null} view
 * @property {(range: SourceRange) => SourceRange|null} toView  where a range of the artifact is in the text that is shown
 * @property {(annotationId: string|null, scrolls?: boolean) => void} choose
 * @property {(verb: Verb, fields: Record<string, any>, text?: string) => Promise<import("../app.js").Result>} operate
 * @property {(annotationId: string) => Conflict|undefined} conflictOf
 * @property {() => void} close
 */

/**
 * @param {App} app
 * @param {Pick<Reviewing, "view"|"toView">} options
 */
export function createReview(app, { view, toView }) {
  const { store } = app;
  const count = h("span", { class: "badge", "aria-hidden": "true" });
  const label = h("span", { class: "visually-hidden" });
  const toggle = button([count, label], () => show(!opened), { sign: "chat", class: "icon-button review-button", "aria-expanded": "false" });
  const place = h("aside", { class: "review", "aria-label": TEXT.review, hidden: true });
  /** @type {Map<string, Conflict>} */
  const conflicts = new Map();
  let opened = false;
  /** What the user does is no news to them. */
  let busy = 0;
  /** @type {import("./threads.js").Threads|null} */
  let threads = null;

  mountReading(app);
  store.subscribe(draw);
  document.addEventListener("visibilitychange", () => draw(store.state));
  draw(store.state);
  return { button: toggle, element: place, marks, choose, step, operate, unread: (/** @type {string} */ id) => unreadCount(store.state, id), redraw: () => threads?.redraw() };

  /** @param {State} state @param {State} [previous] */
  function draw(state, previous = state) {
    const artifact = shownArtifact(state);
    if (!artifact || state.contextId !== previous.contextId) {
      show(false);
    }
    const id = artifact?.artifactId ?? "";
    opened && document.visibilityState === "visible" && markSeen(state, id);
    const open = annotationsOf(state, id).filter(isOpen).length;
    const unread = busy ? 0 : unreadCount(state, id);
    toggle.hidden = !artifact || state.server?.canvas === false;
    count.hidden = unread === 0 && open === 0;
    setText(count, String(unread || open));
    count.classList.toggle("badge-unread", unread > 0);
    setText(label, [TEXT.review, open && say(TEXT.openCount, { count: open }), unread && say(TEXT.unreadCount, { count: unread })].filter(Boolean).join(", "));
    toggle.title = label.textContent ?? "";
  }

  /** @param {boolean} wished */
  async function show(wished) {
    if (wished === opened) {
      return;
    }
    opened = wished;
    toggle.setAttribute("aria-expanded", String(opened));
    if (opened && !threads) {
      const { createThreads } = await threadsPart.get();
      threads ??= createThreads(app, place, { view, toView, choose, operate, conflictOf, close: () => (show(false), toggle.focus()) });
    }
    place.hidden = !opened;
    threads?.redraw();
    draw(store.state);
  }

  /** The marks in the text that is shown. @param {State} state @param {ArtifactView} artifact @returns {Note[]} */
  function marks(state, artifact) {
    const notes = state.version === null && !artifact.open ? notesOf(state, artifact.artifactId) : [];
    return notes.flatMap((note) => {
      const range = toView(note);
      return range ? [{ ...note, ...range }] : [];
    });
  }

  /** @param {string} annotationId */
  function conflictOf(annotationId) {
    const conflict = conflicts.get(annotationId);
    return conflict?.version === shownArtifact(store.state)?.version ? conflict : undefined;
  }

  /** @param {string|null} annotationId @param {boolean} [scrolls] */
  async function choose(annotationId, scrolls = false) {
    store.dispatch({ type: "annotation-chosen", annotationId });
    if (annotationId !== null) {
      await show(true);
      const { version, annotations } = store.state;
      const found = annotations[shownArtifact(store.state)?.artifactId ?? ""]?.items.find((each) => each.annotationId === annotationId);
      const range = scrolls && found?.place && version === null ? toView(found.place) : null;
      range && view()?.reveal(range);
      threads?.reveal(annotationId);
    }
  }

  /** @param {ReviewStep} what */
  async function step(what) {
    const { annotationId, version } = store.state;
    const items = version === null ? annotationsOf(store.state, shownArtifact(store.state)?.artifactId) : [];
    if (what === "next" || what === "previous") {
      const beside = suggestionBeside(items, annotationId, what === "next" ? 1 : -1);
      beside && choose(beside.annotationId, true);
      return;
    }
    const chosen = items.find((each) => each.annotationId === annotationId && each.kind === "suggestion" && isOpen(each));
    if (chosen && mayEdit(store.state)) {
      const beside = suggestionBeside(items, annotationId, 1)?.annotationId;
      const { ok, details } = await operate(what, { annotationId });
      if (ok && !details.conflicts?.length && store.state.annotationId === annotationId) {
        choose(beside === annotationId ? null : (beside ?? null), true);
      }
    }
  }

  /**
   * @param {Verb} verb
   * @param {Record<string, any>} fields
   * @param {string} [text]
   * @returns {Promise<import("../app.js").Result>}
   */
  async function operate(verb, fields, text = "") {
    const { contextId } = store.state;
    const artifactId = shownArtifact(store.state)?.artifactId ?? "";
    const isAllSeen = unreadCount(store.state, artifactId) === 0;
    busy++;
    try {
      // What was typed is a version then, with which the suggestion is merged.
      verb.startsWith("accept") && (await app.flush());
      const messageId = randomId();
      const done = app.operate(verb, artifactId, fields, [{ text }], messageId);
      const result = await (verb === "annotate" || verb === "reply" ? added(messageId, artifactId, done) : done);
      if (app.isOpen(contextId)) {
        isAllSeen && markSeen(store.state, artifactId);
        tell(artifactId, verb, result);
        verb === "annotate" && fields.ask && result.ok && choose(result.details.annotationIds[0]);
      }
      return result;
    } finally {
      busy--;
      draw(store.state);
    }
  }

  /**
   * What a message adds is there before its task ends, and stays if the agent then fails to answer it.
   * @param {string} messageId @param {string} artifactId @param {Promise<import("../app.js").Result>} done
   * @returns {Promise<import("../app.js").Result>}
   */
  function added(messageId, artifactId, done) {
    return new Promise((resolve) => {
      const stop = store.subscribe(look);
      done.then((result) => (stop(), look(store.state), resolve(result)));
      /** @param {State} state */
      function look(state) {
        const task = Object.values(state.tasks).findLast(({ messages }) => messages.some((each) => each.messageId === messageId));
        const item = task && annotationsOf(state, artifactId).find((each) => remarkOf(task, each) !== -1);
        item && resolve({ ...ADDED, details: { annotationIds: [item.annotationId] } });
      }
    });
  }

  /** @param {string} artifactId @param {Verb} verb @param {import("../app.js").Result} result */
  function tell(artifactId, verb, { ok, said, details, version }) {
    const current = version ?? store.state.artifacts[artifactId]?.version ?? 0;
    for (const { annotationId, ...texts } of verb.startsWith("accept") ? (details.conflicts ?? []) : []) {
      conflicts.set(annotationId, { ...texts, version: current });
    }
    if (!ok || verb === "accept-all") {
      app.notify(ok ? "info" : "error", said);
    }
    threads?.redraw();
  }
}
