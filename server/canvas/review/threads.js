// @ts-check
/**
 * The pane of the threads: each beside its passage where the document is wide enough (placing.js), otherwise as a list below
 * it. What has no place, and what is decided, is listed apart.
 */

import { button, iconButton } from "../controls.js";
import { fill, h, setText } from "../dom.js";
import { annotationsOf, inOrder, isAboutAnnotations, isDecided, isOpen, nameOfWriter } from "../state/annotations.js";
import { mayEdit, shownArtifact } from "../state/reducer.js";
import { TEXT, say } from "../strings.js";
import { placeThreads } from "./placing.js";
import { createThread } from "./thread.js";
import { writerOf } from "./writers.js";

/** @typedef {{redraw: () => void, reveal: (annotationId: string) => void}} Threads */
/** @typedef {ReturnType<typeof createThread>} Thread */

/** A narrower pane of the document has no room for a column. In pixels. */
const COLUMN = 600;
const GAP = 8;

/**
 * @param {App} app
 * @param {HTMLElement} element  which it fills
 * @param {import("./review.js").Reviewing} reviewing
 * @returns {Threads}
 */
export function createThreads(app, element, reviewing) {
  const { store } = app;
  const { view, toView, choose, operate, close } = reviewing;
  /** @type {Map<string, Thread>} */
  const threads = new Map();
  let by = "";
  let of = "";
  let watched = /** @type {HTMLElement|null} */ (null);
  /** The heights of the passages are known. */
  let drawn = 0;

  const authors = h("select", { class: "field review-authors", "aria-label": TEXT.author, onchange: () => ((by = authors.value), redraw()) });
  const acceptAll = button(TEXT.acceptAll, all, { class: "button" });
  const head = h("header", { class: "review-head" }, h("h3", { class: "review-title" }, TEXT.reviewTitle), authors, acceptAll, iconButton("close", TEXT.closeReview, close));
  const list = h("ol", { class: "review-list", "aria-label": TEXT.openThreads });
  const stage = h("div", { class: "review-stage" }, list);
  const none = h("p", { class: "review-none" });
  const gone = group(TEXT.passageGone);
  const decided = group(TEXT.decided);
  fill(element, head, none, stage, gone.element, decided.element);
  const sizes = new ResizeObserver(measure);
  sizes.observe(/** @type {HTMLElement} */ (element.parentElement));
  element.addEventListener("wheel", (event) => isColumn() && stage.contains(/** @type {Node} */ (event.target)) && view()?.scroller.scrollBy({ top: event.deltaY }), { passive: true });
  element.addEventListener("keydown", onKeydown);
  store.subscribe((state, previous) => {
    if (state.annotations !== previous.annotations || state.annotationId !== previous.annotationId || state.artifacts !== previous.artifacts || state.shared !== previous.shared || (state.tasks !== previous.tasks && statesOf(state) !== statesOf(previous)) || shownArtifact(state) !== shownArtifact(previous)) {
      redraw();
    }
  });
  return { redraw, reveal };

  function redraw() {
    if (element.hidden) {
      return;
    }
    const { state } = store;
    const artifact = shownArtifact(state);
    if (of !== (artifact?.artifactId ?? "")) {
      of = artifact?.artifactId ?? "";
      by = "";
    }
    const items = inOrder(annotationsOf(state, of));
    drawHead(state, items);
    const shown = items.filter((each) => by === "" || nameOfWriter(each) === by);
    drop(items);
    arrange(list, shown.filter(isOpen));
    arrange(gone.list, shown.filter((each) => each.state === "stale"));
    arrange(decided.list, shown.filter((each) => isDecided(each)));
    gone.update();
    decided.update();
    none.hidden = list.childElementCount > 0;
    setText(none, shown.length ? TEXT.nothingOpen : TEXT.noThreads);
    measure();
  }

  /** @param {State} state @param {AnnotationView[]} items */
  function drawHead(state, items) {
    const names = [...new Set(items.map(nameOfWriter))].filter(Boolean).sort();
    const key = names.join("\n");
    authors.hidden = names.length < 2 && by === "";
    if (authors.dataset.key !== key) {
      authors.dataset.key = key;
      const named = (/** @type {string} */ name) => writerOf(state, name === "agent" ? { author: "agent" } : { author: "user", by: name });
      fill(authors, h("option", { value: "" }, TEXT.allAuthors), names.map((name) => h("option", { value: name }, named(name))));
    }
    authors.value = by;
    const open = items.filter((each) => each.kind === "suggestion" && isOpen(each) && (by === "" || nameOfWriter(each) === by));
    acceptAll.hidden = !mayEdit(state) || open.length < 2;
    setText(acceptAll, say(TEXT.acceptCount, { count: open.length }));
  }

  /** Threads of what is there no longer. @param {AnnotationView[]} items */
  function drop(items) {
    const ids = new Set(items.map(({ annotationId }) => annotationId));
    for (const [id, thread] of threads) {
      if (!ids.has(id)) {
        thread.element.remove();
        threads.delete(id);
      }
    }
  }

  /** A thread that stays where it is keeps the focus and what is written in it. @param {HTMLElement} place @param {AnnotationView[]} items */
  function arrange(place, items) {
    const wanted = items.map(threadOf);
    for (const child of [...place.children]) {
      wanted.includes(/** @type {HTMLElement} */ (child)) || child.remove();
    }
    wanted.forEach((each, at) => place.children[at] === each || place.insertBefore(each, place.children[at] ?? null));
  }

  /** @param {AnnotationView} item */
  function threadOf(item) {
    const known = threads.get(item.annotationId) ?? createThread(app, item.annotationId, { choose, operate: decide, conflictOf: reviewing.conflictOf });
    threads.set(item.annotationId, known);
    known.update(item);
    return known.element;
  }

  /** After a decision the focus moves to the next thread. @type {typeof operate} */
  async function decide(verb, fields, text) {
    const here = threads.get(fields.annotationId)?.element;
    const beside = here?.nextElementSibling ?? here?.previousElementSibling;
    const focused = here?.contains(document.activeElement);
    const result = await operate(verb, fields, text);
    redraw();
    if (focused && verb !== "reply" && result.ok && (document.activeElement === document.body || here?.contains(document.activeElement))) {
      /** @type {HTMLElement} */ (beside?.querySelector("button") ?? head.querySelector("button:last-child")).focus({ preventScroll: true });
    }
    return result;
  }

  function all() {
    operate("accept-all", by === "" ? {} : { by });
  }

  // ------------------------------------------------------------------------------------------------------ the places

  function isColumn() {
    return element.dataset.as === "column";
  }

  /** Asks once a frame where the passages are. */
  function measure() {
    const width = element.parentElement?.clientWidth ?? 0;
    element.dataset.as = width >= COLUMN ? "column" : "sheet";
    watch(view()?.scroller ?? null);
    drawn ||= requestAnimationFrame(place);
  }

  /** @param {HTMLElement|null} scroller */
  function watch(scroller) {
    if (scroller !== watched) {
      watched?.removeEventListener("scroll", follow);
      watched?.firstElementChild && sizes.unobserve(watched.firstElementChild);
      watched = scroller;
      watched?.addEventListener("scroll", follow, { passive: true });
      watched?.firstElementChild && sizes.observe(watched.firstElementChild);
    }
  }

  function place() {
    drawn = 0;
    if (element.hidden) {
      return;
    }
    const column = isColumn();
    const stageTop = stage.getBoundingClientRect().top;
    const scrolled = watched?.scrollTop ?? 0;
    const cards = [...list.children].map((card) => {
      const { id: annotationId } = /** @type {HTMLElement} */ (card).dataset;
      const item = annotationsOf(store.state, of).find((each) => each.annotationId === annotationId);
      const range = column && item?.place ? toView(item.place) : null;
      const top = range && view()?.heightOf(range);
      return { card: /** @type {HTMLElement} */ (card), top: typeof top === "number" ? top - stageTop + scrolled : 0, height: card.getBoundingClientRect().height };
    });
    const chosen = cards.findIndex(({ card }) => card.dataset.id === store.state.annotationId);
    const tops = placeThreads(cards, chosen, GAP);
    cards.forEach(({ card }, at) => (card.style.transform = column ? `translateY(${Math.round(tops[at])}px)` : ""));
    follow();
  }

  function follow() {
    list.style.transform = isColumn() ? `translateY(${-Math.round(watched?.scrollTop ?? 0)}px)` : "";
  }

  /** @param {string} annotationId */
  function reveal(annotationId) {
    redraw();
    const thread = threads.get(annotationId)?.element;
    const details = thread?.closest("details");
    details && (details.open = true);
    (details || !isColumn()) && thread?.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    if (event.key === "Escape" && !event.defaultPrevented) {
      event.preventDefault();
      close();
    }
  }
}

/** How far the questions to the agent in threads are: tasks change with every piece of a reply. @param {State} state */
function statesOf({ tasks }) {
  const asking = Object.values(tasks).filter(({ operation }) => isAboutAnnotations(operation?.op));
  return asking.map(({ taskId, state }) => `${taskId} ${state}`).join();
}

/** A list that is folded until somebody opens it. @param {string} title  with the number of its entries */
function group(title) {
  const summary = h("summary", {});
  const list = h("ol", { class: "review-list" });
  const element = h("details", { class: "review-group" }, summary, list);
  return {
    element,
    list,
    update() {
      element.hidden = list.childElementCount === 0;
      setText(summary, say(title, { count: list.childElementCount }));
    },
  };
}
