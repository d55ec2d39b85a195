// @ts-check
/**
 * The bar beside a selected passage: an instruction field and quick actions. It closes when one was chosen.
 *
 * The focus stays in the document until the user moves it here: with Tab, or by clicking into the field. While the pointer is
 * down in the document the bar is away.
 */

import { button } from "../controls.js";
import { fill, h } from "../dom.js";
import { ask } from "../layout.js";
import { mayEdit, shownArtifact } from "../state/reducer.js";
import { actionsFor, charactersOf, placeOf, rewritesPassages } from "./actions.js";
import { placeBeside } from "./placing.js";
import { createRewriting } from "./rewriting.js";
import { TEXT, say } from "../strings.js";

const MARGIN = 8;
/** On narrow screens the bar is at the bottom; style/document.css has the same width. */
const NARROW = "(max-width: 720px)";

/**
 * @param {App} app
 * @param {object} options
 * @param {HTMLElement} options.panel  what shows the document
 * @param {(selection: PassageSelection) => DOMRect|null} options.rectOf  where a passage is on the screen; null if it is not shown
 * @param {(pixels: number) => void} options.scrollBy  scrolls the document
 * @param {() => void} options.deselect  leaves nothing selected in the document
 * @returns {HTMLElement}
 */
export function createPassageBar(app, { panel, rectOf, scrollBy, deselect }) {
  const { store } = app;
  const rewrite = createRewriting(app);
  const place = h("span", { class: "passage-place" });
  const actions = h("div", { class: "passage-actions", role: "group", "aria-label": TEXT.quickActions });
  /** @type {HTMLInputElement} */
  const field = h("input", {
    class: "passage-field",
    dir: "auto",
    type: "text",
    placeholder: TEXT.describeChange,
    autocomplete: "off",
    enterKeyHint: "send",
    "aria-label": TEXT.passageInstruction,
  });
  const form = h(
    "form",
    { class: "passage-form", onsubmit: submit },
    field,
    button(TEXT.rewrite, null, { type: "submit", class: "button button-primary" }),
  );
  const said = h("p", { class: "visually-hidden", role: "status" });
  const box = h("div", { class: "passage-box", role: "dialog", "aria-label": TEXT.passageBar }, form, h("div", { class: "passage-head" }, place, actions));
  const bar = h("div", { class: "passage-bar", hidden: true }, box);
  const element = h("div", { class: "passage" }, bar, said);
  const narrow = matchMedia(NARROW);
  /** Where the focus was before it came here. @type {HTMLElement|null} */
  let before = null;
  /** It came here with Tab, and goes back with a ring. */
  let byKeyboard = false;
  let filledFor = "";
  /** The passage that the bar was opened for, so that one that others move is not scrolled to. */
  let shown = "";

  store.subscribe((state, previous) => {
    if (state.selection !== previous.selection || state.artifacts !== previous.artifacts || state.version !== previous.version) {
      update(state.selection);
    }
  });
  addEventListener("scroll", () => move(store.state.selection), { capture: true, passive: true });
  addEventListener("resize", () => move(store.state.selection), { passive: true });
  new ResizeObserver(() => move(store.state.selection)).observe(panel);
  visualViewport?.addEventListener("resize", () => (move(store.state.selection), uncover(store.state.selection)));
  visualViewport?.addEventListener("scroll", () => move(store.state.selection));
  document.addEventListener("keydown", onKeydown, { capture: true });
  document.addEventListener("pointerdown", ({ target }) => isInDocument(target) && bar.classList.add("passage-dragging"), { capture: true });
  for (const type of ["pointerup", "pointercancel"]) {
    document.addEventListener(type, () => bar.classList.remove("passage-dragging"), { capture: true });
  }
  bar.addEventListener("focusin", (/** @type {FocusEvent} */ { relatedTarget }) => {
    if (relatedTarget instanceof HTMLElement && !bar.contains(relatedTarget)) {
      before = relatedTarget;
    }
  });
  return element;

  /** @param {PassageSelection|null} selection */
  function update(selection) {
    const artifact = shownArtifact(store.state);
    const edits = mayEdit(store.state) && rewritesPassages(store.state.server?.card);
    if (!edits || !selection || artifact?.artifactId !== selection.artifactId || artifact.open || store.state.version !== null) {
      hide();
      return;
    }
    offer(artifact);
    place.textContent = placeOf(selection);
    place.title = charactersOf(selection);
    if (bar.hidden) {
      field.value = "";
      bar.hidden = false;
      byKeyboard = false;
      said.textContent = say(TEXT.passageSelected, { place: placeOf(selection), characters: charactersOf(selection).toLowerCase() });
    }
    move(selection);
    if (shown !== `${selection.artifactId} ${selection.text}`) {
      shown = `${selection.artifactId} ${selection.text}`;
      uncover(selection);
    }
  }

  /** Scrolls a passage that the bar at the bottom covers to above it, as far as its beginning stays in view. @param {PassageSelection|null} selection */
  function uncover(selection) {
    const rect = selection && !bar.hidden && narrow.matches ? rectOf(selection) : null;
    const covered = rect ? rect.bottom + MARGIN - bar.getBoundingClientRect().top : 0;
    if (rect && covered > 0) {
      scrollBy(Math.min(covered, Math.max(0, rect.top - panel.getBoundingClientRect().top - MARGIN)));
    }
  }

  /** @param {ArtifactView} artifact */
  function offer(artifact) {
    const offered = actionsFor(artifact, store.state.server?.card);
    const key = offered.map(({ label }) => label).join();
    if (key !== filledFor) {
      filledFor = key;
      fill(actions, offered.map((action) => button(action.label, () => choose(action), { class: "chip" })));
    }
  }

  /** Keeps the bar beside the passage, above it where there is room; or at the bottom. @param {PassageSelection|null} selection */
  function move(selection) {
    if (!selection || bar.hidden) {
      return;
    }
    if (narrow.matches) {
      const seen = visualViewport;
      const covered = seen ? Math.max(0, innerHeight - seen.height - seen.offsetTop) : 0;
      bar.classList.remove("away");
      bar.style.maxWidth = "";
      bar.style.transform = covered > 0 ? `translateY(${-Math.round(covered)}px)` : "";
      return;
    }
    const rect = rectOf(selection);
    bar.classList.toggle("away", rect === null);
    if (rect) {
      const pane = panel.getBoundingClientRect();
      bar.style.maxWidth = `${Math.round(pane.width - 2 * MARGIN)}px`;
      const { left, top } = placeBeside(rect, { width: bar.offsetWidth, height: bar.offsetHeight }, pane);
      bar.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    }
  }

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    const instruction = field.value.trim();
    if (instruction) {
      start(instruction);
    }
  }

  /** @param {import("./actions.js").Action} action */
  function choose({ instruction, chat }) {
    if (chat) {
      app.send(instruction);
      ask(element, "show-chat");
      close();
    } else if (instruction.endsWith(" ")) {
      field.value = instruction;
      field.focus();
    } else {
      start(instruction);
    }
  }

  /** @param {string} instruction */
  function start(instruction) {
    const { selection } = store.state;
    close();
    // What is being written is marked, and not the words that were there before.
    deselect();
    selection && rewrite(selection, instruction);
  }

  function close() {
    hide();
    store.dispatch({ type: "selected", selection: null });
  }

  /** The focus goes back to where it was. */
  function hide() {
    const focused = bar.contains(document.activeElement);
    bar.hidden = true;
    shown = "";
    said.textContent = "";
    if (focused && before?.isConnected) {
      focusAgain(before, byKeyboard);
    }
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    const within = bar.contains(/** @type {Node} */ (event.target));
    if (bar.hidden || document.querySelector("dialog[open]") || !(within || isInDocument(event.target) || event.target === document.body)) {
      return;
    }
    if (event.key === "Escape") {
      consume(event);
      close();
    } else if (event.key === "Tab" && !event.shiftKey && !within) {
      consume(event);
      byKeyboard = true;
      field.focus({ preventScroll: true });
    } else if (!within && isWriting(event)) {
      // The browser writes it into the field, which has the focus by then.
      event.stopPropagation();
      byKeyboard = false;
      field.focus({ preventScroll: true });
    } else if (event.key === "Tab" && event.shiftKey && event.target === field) {
      consume(event);
      (before ?? document.body).focus({ preventScroll: true });
    }
  }

  /** Whether something is the document's, and not the bar's. @param {EventTarget|null} target */
  function isInDocument(target) {
    return target instanceof Node && panel.contains(target);
  }
}

/**
 * Whether a key begins to write, where nothing can be written: not in the source, whose passage it replaces. The blank would scroll.
 * @param {KeyboardEvent} event
 */
function isWriting({ key, ctrlKey, metaKey, altKey, target }) {
  const inText = target instanceof HTMLElement && target.isContentEditable;
  return /^(?:[^ ]|Process)$/u.test(key) && !ctrlKey && !metaKey && !altKey && !inText;
}

/** The ring of the focus is for those who came by keyboard. @param {HTMLElement} element @param {boolean} ring */
function focusAgain(element, ring) {
  element.toggleAttribute("data-no-ring", !ring);
  element.addEventListener("blur", () => element.removeAttribute("data-no-ring"), { once: true });
  element.addEventListener("keydown", () => element.removeAttribute("data-no-ring"), { once: true });
  element.focus({ preventScroll: true });
}

/** @param {KeyboardEvent} event */
function consume(event) {
  event.preventDefault();
  event.stopPropagation();
}
