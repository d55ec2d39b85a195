// @ts-check
/**
 * Comments and suggestions in the rendered text: what is commented on and what a suggestion takes away are marked, what it
 * puts there is shown behind. That is no text of the document: an element without text, whose words the style sheet shows,
 * so that places, selections and copies are those of the document alone.
 */

import { h } from "../dom.js";
import { createHighlighter } from "./highlight.js";

/** @typedef {import("./markdown/markdown.js").MarkdownView} MarkdownView */
/** @typedef {(view: MarkdownView, start: number, end: number) => Range[]} VisibleRanges */

/** @param {MarkdownView} markdown @param {VisibleRanges} visibleRanges */
export function createNotes(markdown, visibleRanges) {
  const marks = {
    comment: createHighlighter("note-comment"),
    suggestion: createHighlighter("note-suggestion"),
    rewritten: createHighlighter("note-rewritten"),
  };
  const chosenMark = createHighlighter("note-chosen");
  /** @type {readonly Note[]} */
  let shown = [];
  /** @type {HTMLElement[]} */
  let inserted = [];
  let drawn = "[]";
  return { draw, at };

  /** @param {readonly Note[]} notes */
  function draw(notes) {
    shown = notes;
    insert(notes.filter(({ text }) => text));
    const placed = notes.map((note) => ({ note, ranges: rangesOf(note) }));
    for (const [kind, mark] of Object.entries(marks)) {
      mark(placed.flatMap(({ note, ranges }) => (note.kind === kind ? ranges : [])));
    }
    chosenMark(placed.flatMap(({ note, ranges }) => (note.chosen ? ranges : [])));
  }

  /** What is there already stays: a selection may reach over it. @param {readonly Note[]} notes */
  function insert(notes) {
    const next = JSON.stringify([notes, markdown.text().length]);
    if (next === drawn && inserted.every((each) => each.isConnected)) {
      return;
    }
    drawn = next;
    inserted.forEach(takeOut);
    inserted = notes.flatMap((note) => {
      const place = endOf(note);
      if (!place) {
        return [];
      }
      const element = h("ins", { class: `note-inserted${note.chosen ? " note-chosen" : ""}`, "data-note-id": note.id, "data-words": note.text });
      place.insertNode(element);
      return [element];
    });
    // A note whose block is not rendered yet comes with it.
    drawn = inserted.length === notes.length ? drawn : "";
  }

  /** @param {Note} note */
  function rangesOf({ start, end }) {
    return start < end ? visibleRanges(markdown, start, end) : [];
  }

  /** The end of what is replaced, or the place of an insertion. @param {Note} note @returns {Range|null} */
  function endOf({ start, end }) {
    const before = visibleRanges(markdown, start < end ? start : Math.max(0, start - 1), end).at(-1);
    const place = before ?? visibleRanges(markdown, end, end + 1)[0];
    place?.collapse(place !== before);
    return place ?? null;
  }

  /** The note at a place on the screen; the chosen one lies over the others. @param {EventTarget|null} target @param {number} x @param {number} y */
  function at(target, x, y) {
    const word = target instanceof Element ? target.closest("[data-note-id]") : null;
    const isThere = (/** @type {Range} */ range) => [...range.getClientRects()].some(({ left, right, top, bottom }) => left <= x && x <= right && top <= y && y <= bottom);
    return word?.getAttribute("data-note-id") ?? shown.findLast((note) => note.id && rangesOf(note).some(isThere))?.id ?? null;
  }
}

/** @param {HTMLElement} element */
function takeOut(element) {
  const parent = element.parentNode;
  element.remove();
  parent?.normalize();
}
