// @ts-check
/**
 * The bar beside a selected passage, one line: an instruction field, *Edit text*, *Comment* and *Suggest*. With the field, or the
 * last button, it opens to the quick actions. It closes when something was chosen. Who may only comment is offered nothing else.
 *
 * The focus stays in the document until the user moves it here: with Tab, by clicking into the field, or by writing, which the
 * ring of the field announces. While the pointer is down in the document the bar is away.
 */

import { copyText } from "../clipboard.js";
import { button, iconButton } from "../controls.js";
import { fill, h } from "../dom.js";
import { ask } from "../layout.js";
import { mayComment, mayEdit, shownArtifact } from "../state/reducer.js";
import { actionsFor, charactersOf, isProse, placeOf, rewritesPassages } from "./actions.js";
import { keepBeside } from "./floating.js";
import { createNote } from "./note.js";
import { createRewriting } from "./rewriting.js";
import { TEXT, say } from "../strings.js";
import { formatCount, shorten } from "../words.js";

const MARGIN = 8;
/** So much higher the quick actions make the bar, on a touch screen. In pixels. */
const OPENS = 52;
/** So many characters of a passage are read out. */
const SAID = 60;

/**
 * @param {App} app
 * @param {object} options
 * @param {HTMLElement} options.panel  what shows the document
 * @param {(selection: PassageSelection) => DOMRect|null} options.rectOf  where a passage is on the screen; null if it is not shown
 * @param {(pixels: number) => void} options.scrollBy  scrolls the document
 * @param {() => void} options.deselect  leaves nothing selected in the document
 * @param {(fields: Record<string, any>, text: string) => Promise<import("../app.js").Result>} options.annotate
 * @param {() => boolean} options.mayReplace  whether the user may write in place of the passage, and cannot type there
 * @param {(selection: PassageSelection, text: string) => Promise<boolean>} options.replace  whether it is saved
 * @returns {HTMLElement}
 */
export function createPassageBar(app, { panel, rectOf, scrollBy, deselect, annotate, mayReplace, replace }) {
  const { store } = app;
  const { rewrite } = createRewriting(app);
  const place = h("span", { class: "passage-place" });
  const actions = h("div", { class: "passage-actions", role: "group", "aria-label": TEXT.quickActions });
  /** @type {HTMLInputElement} */
  const field = h("input", {
    class: "passage-field",
    dir: "auto",
    type: "text",
    placeholder: TEXT.describeChange,
    onfocus: () => openActions(true),
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
  const edit = iconButton("edit", TEXT.editText, () => write("edit"));
  const comment = button(h("span", { class: "passage-label" }, TEXT.comment), () => write("comment"), { sign: "chat" });
  const suggest = button(TEXT.suggest, () => write("suggest"));
  const notes = h("div", { class: "passage-notes", role: "group", "aria-label": TEXT.notes }, edit, comment, suggest);
  const note = createNote({ send: giveNote, mayAsk: () => mayEdit(store.state), back: () => (toChange(), (form.hidden ? comment : field).focus()) });
  const more = iconButton("more", TEXT.quickActions, () => openActions(actions.hidden), { class: "passage-more" });
  const top = h("div", { class: "passage-top" }, form, place, notes, more);
  const box = h("div", { class: "passage-box", role: "dialog", "aria-label": TEXT.passageBar }, top, actions, note.element);
  const bar = h("div", { class: "passage-bar", hidden: true }, box);
  const element = h("div", { class: "passage" }, bar, said);
  const { move, isNarrow } = keepBeside(bar, panel, () => (store.state.selection ? rectOf(store.state.selection) : undefined), () => (top.hidden || more.hidden || !actions.hidden ? 0 : OPENS));
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
  visualViewport?.addEventListener("resize", () => uncover(store.state.selection));
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
    if (!mayComment(store.state) || !selection || artifact?.artifactId !== selection.artifactId || artifact.open || store.state.version !== null) {
      keepWords();
      hide();
      return;
    }
    offer(artifact);
    if (note.element.hidden) {
      offerRewriting();
    }
    edit.hidden = !mayReplace() || Boolean(selection.others?.length);
    const count = 1 + (selection.others?.length ?? 0);
    // In prose nobody counts lines: the passage is seen.
    place.textContent = count > 1 ? formatCount(count, "passage") : isProse(artifact) ? "" : placeOf(selection);
    place.title = charactersOf(selection);
    if (bar.hidden) {
      field.value = "";
      toChange();
      bar.hidden = false;
      byKeyboard = false;
      said.textContent = say(TEXT.passageSelected, { what: place.textContent || `“${shorten(selection.text, SAID)}”` });
    }
    move();
    if (shown !== `${selection.artifactId} ${selection.text}`) {
      shown = `${selection.artifactId} ${selection.text}`;
      uncover(selection);
    }
  }

  /** Scrolls a passage that the bar at the bottom covers to above it, as far as its beginning stays in view. @param {PassageSelection|null} selection */
  function uncover(selection) {
    const rect = selection && !bar.hidden && isNarrow() ? rectOf(selection) : null;
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

  /** Whether the agent rewrites the passage for this user. */
  function rewrites() {
    return mayEdit(store.state) && rewritesPassages(store.state.server?.card);
  }

  /** The passage has changed, or the user selects another one: nothing that was written for it is lost. */
  function keepWords(words = note.unsent()) {
    words && app.notify("error", TEXT.textNotSaved, { label: TEXT.copy, run: () => void copyText(words) });
  }

  /** @param {import("./note.js").NoteKind} kind */
  function write(kind) {
    const { selection } = store.state;
    if (selection) {
      top.hidden = actions.hidden = true;
      note.open(kind, selection.text);
      move();
      uncover(selection);
      note.field.focus({ preventScroll: true });
    }
  }

  function toChange() {
    note.close();
    top.hidden = false;
    offerRewriting();
    openActions(false);
  }

  function offerRewriting() {
    form.hidden = !rewrites();
    more.hidden = form.hidden || actions.childElementCount === 0;
    actions.hidden ||= more.hidden;
  }

  /** @param {boolean} opened */
  function openActions(opened) {
    actions.hidden = !opened || more.hidden;
    more.setAttribute("aria-expanded", String(!actions.hidden));
    move();
  }

  /** @param {import("./note.js").NoteKind} kind @param {string} text @param {boolean} asks */
  async function giveNote(kind, text, asks) {
    const { selection } = store.state;
    if (!selection) {
      return false;
    }
    if (kind === "edit") {
      const isSaved = await replace(selection, text);
      isSaved && (close(), deselect());
      isSaved || (bar.hidden && keepWords(text));
      return isSaved;
    }
    const { version: baseVersion, start, end, text: passage } = selection;
    const isSuggestion = kind === "suggest";
    const fields = { baseVersion, selection: { start, end, text: passage }, ...(isSuggestion && { replacement: text }), ...(asks && { ask: true }) };
    const { ok } = await annotate(fields, isSuggestion ? "" : text);
    if (ok && store.state.selection === selection) {
      close();
      deselect();
      said.textContent = TEXT.noteAdded;
    }
    return ok;
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
    note.close();
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
      first().focus({ preventScroll: true });
    } else if (!within && isWriting(event) && first() !== comment) {
      // The browser writes it into the field, which has the focus by then.
      event.stopPropagation();
      byKeyboard = false;
      first().focus({ preventScroll: true });
    } else if (event.key === "Tab" && event.shiftKey && event.target === first()) {
      consume(event);
      (before ?? document.body).focus({ preventScroll: true });
    }
  }

  /** What takes the focus: where the passage can be rewritten, the instruction. @returns {HTMLElement} */
  function first() {
    return !note.element.hidden ? note.field : form.hidden ? comment : field;
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
