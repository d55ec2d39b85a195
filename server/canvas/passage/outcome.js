// @ts-check
/**
 * What stands at a passage after it was rewritten: what was there before, and *Keep · Try again · Undo*. It goes when the user
 * moves on: presses something else in the document, or Escape, or another version is current.
 */

import { button } from "../controls.js";
import { fill, h } from "../dom.js";
import { shownArtifact } from "../state/reducer.js";
import { TEXT } from "../strings.js";
import { keepBeside } from "./floating.js";
import { createRewriting } from "./rewriting.js";

/**
 * @param {App} app
 * @param {{panel: HTMLElement, rectOf: (range: {start: number, end: number}) => DOMRect|null}} options
 * @returns {HTMLElement}
 */
export function createOutcome(app, { panel, rectOf }) {
  const { store } = app;
  const rewrite = createRewriting(app);
  const before = h("div", { class: "passage-before" });
  const keep = button(TEXT.keep, done, { class: "button button-primary" });
  const actions = h("div", { class: "passage-choices" }, keep, button(TEXT.tryAgain, again), button(TEXT.undo, undo));
  const box = h("div", { class: "passage-box", role: "group", "aria-label": TEXT.passageRewritten }, before, actions);
  const bar = h("div", { class: "passage-bar passage-outcome", hidden: true, onkeydown: escape }, box);
  const said = h("p", { class: "visually-hidden", role: "status" });
  panel.addEventListener("pointerdown", () => store.state.outcome && done());
  panel.addEventListener("keydown", (event) => store.state.outcome && escape(event), { capture: true });
  const { move } = keepBeside(bar, panel, () => (store.state.outcome ? rectOf(store.state.outcome) : undefined));
  store.subscribe((state, previous) => {
    if (state.outcome !== previous.outcome || state.artifactId !== previous.artifactId || state.version !== previous.version || state.lastChanged !== previous.lastChanged) {
      draw(state.outcome);
    }
    move();
  });
  return h("div", { class: "passage" }, bar, said);

  /** @param {RewriteOutcome|null} outcome */
  function draw(outcome) {
    const isShown = outcome !== null && store.state.version === null && shownArtifact(store.state)?.artifactId === outcome.artifactId;
    if (bar.hidden === isShown) {
      bar.hidden = !isShown;
      said.textContent = isShown ? outcome.said : "";
    }
    if (!isShown) {
      fill(before);
    } else {
      fill(before, h("span", { class: "visually-hidden" }, TEXT.before), outcome.old ? h("del", { dir: "auto" }, outcome.old) : TEXT.nothingThere);
      move();
    }
  }

  function done() {
    const focused = bar.contains(document.activeElement);
    store.dispatch({ type: "rewritten", outcome: null });
    focused && /** @type {HTMLElement|null} */ (panel.querySelector(".cm-content, .document-scroller"))?.focus({ preventScroll: true });
  }

  function undo() {
    const { outcome } = store.state;
    done();
    outcome && rewrite.undo(outcome);
  }

  async function again() {
    const { outcome } = store.state;
    done();
    outcome && (await rewrite.again(outcome));
  }

  /** @param {KeyboardEvent} event */
  function escape(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      done();
    }
  }
}
