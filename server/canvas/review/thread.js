// @ts-check
/** A comment or a suggestion with the replies to it, and what can be done with it. */

import { button, iconButton } from "../controls.js";
import { confirmAction } from "../dialogs.js";
import { fill, h } from "../dom.js";
import { isDecided, isOpen } from "../state/annotations.js";
import { mayComment, mayEdit, shownArtifact } from "../state/reducer.js";
import { linesOf } from "../state/text.js";
import { TEXT, say } from "../strings.js";
import { ago } from "../words.js";
import { placeOf } from "../passage/actions.js";
import { askedIn } from "./asked.js";
import { mayWithdraw, writerOf } from "./writers.js";

/** @type {Record<string, string>} */
const DECIDED = { accepted: TEXT.accepted, rejected: TEXT.rejected, resolved: TEXT.resolved };

/**
 * @param {App} app
 * @param {string} annotationId
 * @param {Pick<import("./review.js").Reviewing, "choose"|"operate"|"conflictOf">} reviewing
 */
export function createThread(app, annotationId, { choose, operate, conflictOf }) {
  const { store } = app;
  let drawn = "";
  let pending = false;
  /** @type {AnnotationView|null} */
  let item = null;
  const said = h("div", { class: "note-said" });
  const actions = h("div", { class: "note-actions" });
  const field = h("textarea", { class: "field note-reply", rows: 1, dir: "auto", placeholder: TEXT.replyPlaceholder, "aria-label": TEXT.replyPlaceholder, oninput: grow, onkeydown: onKeydown });
  const send = button(TEXT.reply, () => reply(), { class: "button button-primary", hidden: true });
  const ask = button(TEXT.askAgent, () => reply({ ask: true }), { class: "button", hidden: true });
  const form = h("div", { class: "note-form" }, field, ask, send);
  const answer = h("div", { class: "note-answer", role: "status" });
  const element = h("li", { class: "note-thread", "data-id": annotationId, onfocusin: focusIn }, said, answer, actions, form);
  element.addEventListener("click", (/** @type {MouseEvent} */ { target }) => !(target instanceof Element && target.closest("button, textarea")) && choose(annotationId, true));
  return { element, update };

  /** Who comes with the keyboard chooses; what is pressed must not move before. @param {FocusEvent} event */
  function focusIn({ target }) {
    if (store.state.annotationId !== annotationId && target instanceof Element && target.matches(":focus-visible")) {
      choose(annotationId, true);
    }
  }

  /** @param {AnnotationView} next */
  function update(next) {
    item = next;
    const { state } = store;
    const isChosen = state.annotationId === annotationId;
    element.classList.toggle("note-thread-chosen", isChosen);
    form.hidden = !mayComment(state);
    const conflict = conflictOf(annotationId);
    const place = placeWords(state, next);
    const asked = askedIn(state, next);
    const key = JSON.stringify([{ ...next, place: null }, place, conflict, pending, state.shared, state.identity, asked]);
    if (key !== drawn) {
      drawn = key;
      const focused = /** @type {HTMLElement|null} */ (actions.contains(document.activeElement) ? document.activeElement : null)?.dataset.verb;
      fill(said, saidOf(state, next, place), conflict && next.kind === "suggestion" && isOpen(next) && conflictBox(conflict));
      fill(answer, asked && answerOf(state, asked));
      fill(actions, actionsOf(state, next));
      focused && /** @type {HTMLElement|null} */ (actions.querySelector(`[data-verb=${focused}]`))?.focus({ preventScroll: true });
    }
  }

  /** @param {State} state @param {AnnotationView} next @param {string} place */
  function saidOf(state, next, place) {
    const { kind, quote, replacement = "", thread, decision } = next;
    const writer = writerOf(state, next);
    const title = kind === "comment" ? writer : writer === TEXT.you ? TEXT.youSuggest : say(TEXT.suggestionBy, { writer });
    const change = [quote.exact && h("del", {}, quote.exact), " ", replacement && h("ins", {}, replacement)];
    return [
      button([h("span", { class: "note-title" }, title), h("span", { class: "note-place" }, place || ago(next.at, Date.now()))], () => choose(annotationId, true), { class: "note-head" }),
      h("p", { class: "note-quote", dir: "auto" }, kind === "suggestion" ? change : h("q", {}, quote.exact)),
      thread.map((each, at) => h("div", { class: "note-remark" }, (at > 0 || kind === "suggestion") && h("span", { class: "note-writer" }, writerOf(state, each)), h("p", { class: "note-text", dir: "auto" }, each.text))),
      decision && isDecided(next) && h("p", { class: "note-decision" }, say(DECIDED[next.state] ?? "{writer}", { writer: writerOf(state, decision) })),
    ];
  }

  /** How far the agent is that was asked. @param {State} state @param {import("./asked.js").Asked} asked */
  function answerOf(state, { taskId, kind, text, words }) {
    const works = kind === "answering" || kind === "waits";
    const line = { answering: TEXT.agentAnswers, waits: TEXT.agentWaits, stopped: TEXT.stopped, failed: say(TEXT.unanswered, { why: text || TEXT.failedWithoutReason }) }[kind];
    const again = () => operate("reply", { annotationId, ask: true }, words);
    return [h("p", { dir: "auto" }, line), mayEdit(state) && (works ? button(TEXT.stop, () => app.cancel(taskId)) : button(TEXT.tryAgain, again))];
  }

  /** @param {import("./review.js").Conflict} conflict */
  function conflictBox({ current, suggested }) {
    const text = (/** @type {string} */ label, /** @type {string} */ words) => [h("dt", {}, label), h("dd", { dir: "auto" }, words || TEXT.nothing)];
    return h("div", { class: "note-conflict", role: "alert" }, h("p", {}, TEXT.passageChanged), h("dl", {}, text(TEXT.inDocument, current), text(TEXT.suggested, suggested)));
  }

  /** @param {State} state @param {AnnotationView} next */
  function actionsOf(state, next) {
    const { kind, state: shown } = next;
    const open = shown === "open" || shown === "stale";
    const act = (/** @type {"accept"|"reject"|"resolve"} */ verb, /** @type {string} */ label, look = "") => button(label, () => run(verb), { class: `button ${look}`, disabled: pending, "data-verb": verb });
    return [
      mayEdit(state) && kind === "suggestion" && shown === "open" && act("accept", TEXT.accept, "button-primary"),
      mayEdit(state) && kind === "suggestion" && open && act("reject", TEXT.reject),
      mayEdit(state) && kind === "comment" && open && act("resolve", TEXT.resolve),
      mayWithdraw(state, next) && iconButton("trash", kind === "comment" ? TEXT.deleteComment : TEXT.deleteSuggestion, withdraw, { disabled: pending, class: "note-delete" }),
    ];
  }

  /** @param {"accept"|"reject"|"resolve"|"withdraw"} verb */
  async function run(verb) {
    pending = true;
    item && update(item);
    await operate(verb, { annotationId });
    pending = false;
    item && update(item);
  }

  async function withdraw() {
    const isComment = item?.kind === "comment";
    const title = isComment ? TEXT.deleteComment : TEXT.deleteSuggestion;
    if (await confirmAction({ title, text: [TEXT.deleteThread], action: TEXT.delete, danger: true })) {
      run("withdraw");
    }
  }

  /** @param {{ask?: boolean}} [fields]  with `ask` the agent answers in the thread */
  async function reply(fields) {
    const text = field.value.trim();
    if (text && !send.disabled) {
      send.disabled = ask.disabled = true;
      const { ok } = await operate("reply", { annotationId, ...fields }, text);
      send.disabled = ask.disabled = false;
      if (ok) {
        field.value = "";
        grow();
      }
    }
  }

  function grow() {
    send.hidden = field.value.trim() === "";
    ask.hidden = send.hidden || !mayEdit(store.state);
    field.style.height = "auto";
    field.style.height = field.value ? `${field.scrollHeight + 2}px` : "";
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    const sends = event.ctrlKey || event.metaKey || (!event.shiftKey && !event.altKey && !matchMedia("(pointer: coarse)").matches);
    if (event.key === "Enter" && sends && !event.isComposing) {
      event.preventDefault();
      reply();
    }
  }
}

/** @param {State} state @param {AnnotationView} annotation */
function placeWords(state, { place }) {
  const text = shownArtifact(state)?.text ?? "";
  return place ? placeOf(linesOf(text, place.start, place.end)) : "";
}
