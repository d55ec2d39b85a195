// @ts-check
/** The bar over a selected passage: an instruction field and quick actions. It closes when one was chosen. */

import { h, fill } from "../dom.js";
import { shownArtifact } from "../state/reducer.js";
import { actionsFor, placeOf } from "./actions.js";

/** @typedef {import("../types.js").Selection} Selection */

const MARGIN = 8;

/**
 * @param {import("../app.js").App} app
 * @param {(selection: Selection) => DOMRect|null} rectOf  where a passage is on the screen; null if it is not shown
 * @returns {HTMLElement}
 */
export function createPassageBar(app, rectOf) {
  const { store } = app;
  const place = h("span", { class: "passage-place" });
  const actions = h("div", { class: "passage-actions", role: "group", "aria-label": "Quick actions" });
  /** @type {HTMLInputElement} */
  const field = h("input", {
    class: "passage-field",
    type: "text",
    placeholder: "Describe the change",
    autocomplete: "off",
    "aria-label": "Change of the selected passage",
  });
  const form = h(
    "form",
    { class: "passage-form", onsubmit: submit },
    field,
    h("button", { class: "button button-primary", type: "submit" }, "Rewrite"),
  );
  const bar = h(
    "div",
    { class: "passage-bar", role: "dialog", "aria-label": "Change the selected passage", hidden: true, onkeydown: escape },
    h("div", { class: "passage-head" }, place, actions),
    form,
  );

  store.subscribe((state, previous) => {
    if (state.selection !== previous.selection || state.artifacts !== previous.artifacts) {
      update(state.selection);
    }
  });
  addEventListener("scroll", () => move(store.state.selection), { capture: true, passive: true });
  addEventListener("resize", () => move(store.state.selection), { passive: true });

  /** @param {Selection|null} selection */
  function update(selection) {
    const artifact = shownArtifact(store.state);
    const usable = selection && artifact?.artifactId === selection.artifactId && !artifact.open && store.state.version === null;
    if (!usable) {
      bar.hidden = true;
      return;
    }
    if (bar.hidden) {
      field.value = "";
      const buttons = actionsFor(artifact).map((action) =>
        h("button", { class: "chip", type: "button", onclick: () => choose(action) }, action.label),
      );
      fill(actions, buttons);
    }
    place.textContent = placeOf(selection);
    bar.hidden = false;
    move(selection);
  }

  /** Keeps the bar beside the passage: above it where there is room. @param {Selection|null} selection */
  function move(selection) {
    if (!selection || bar.hidden) {
      return;
    }
    const rect = rectOf(selection);
    bar.classList.toggle("away", rect === null);
    if (rect) {
      const { offsetWidth: width, offsetHeight: height } = bar;
      const above = rect.top - height - MARGIN;
      const top = above > MARGIN ? above : Math.min(rect.bottom + MARGIN, innerHeight - height - MARGIN);
      const left = Math.max(MARGIN, Math.min(rect.left, innerWidth - width - MARGIN));
      bar.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(top, MARGIN))}px)`;
    }
  }

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    const instruction = field.value.trim();
    if (instruction) {
      rewrite(instruction);
    }
  }

  /** @param {import("./actions.js").Action} action */
  function choose({ instruction, chat }) {
    if (chat) {
      app.send(instruction);
      close();
    } else if (instruction.endsWith(" ")) {
      field.value = instruction;
      field.focus();
    } else {
      rewrite(instruction);
    }
  }

  /** @param {string} instruction */
  async function rewrite(instruction) {
    const { selection } = store.state;
    if (!selection) {
      return;
    }
    close();
    const result = await app.edit(selection, instruction);
    app.notify(result.ok ? "info" : "error", result.said);
  }

  function close() {
    bar.hidden = true;
    store.dispatch({ type: "selected", selection: null });
  }

  /** @param {KeyboardEvent} event */
  function escape(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
  }

  return bar;
}
