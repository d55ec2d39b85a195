// @ts-check
/**
 * The source view: CodeMirror over the text of an artifact. What comes from elsewhere is a change of the smallest ranges; it
 * moves neither the cursor nor what is seen, and the user's undo does not know it.
 */

import { h } from "../../dom.js";
import { applyChanges, changesOf } from "../../state/text.js";
import {
  Annotation,
  Compartment,
  Decoration,
  EditorSelection,
  EditorState,
  EditorView,
  StateEffect,
  StateField,
  Transaction,
  WidgetType,
  bracketMatching,
  classHighlighter,
  defaultKeymap,
  drawSelection,
  highlightSpecialChars,
  history,
  indentOnInput,
  keymap,
  lineNumbers,
  redo,
  search,
  searchKeymap,
  syntaxHighlighting,
  undo,
} from "../../vendor/codemirror.js";
import { styleNonce } from "../../policy.js";
import { loadLanguage } from "./language.js";
import { passage } from "../markdown/selection.js";
import { peopleField, setPeople } from "./people_marks.js";
import { createSettling } from "./settling.js";

/** @typedef {import("../markdown/selection.js").Passage} Passage */
/** @typedef {{start: number, end: number}} SourceRange */

/**
 * What is shown in the text beside the text itself: the selected passage, what is being written, comments and suggestions.
 * In place of a passage that is being rewritten, `text` is shown, if it is given; it is no part of the editor's text.
 * @typedef {{selection: SourceRange|null, others?: SourceRange[], writing: readonly (SourceRange & {text?: string|null})[], notes?: readonly Note[]}} Marks
 */

/** A longer text has no colours: parsing it would take more of each frame than there is. In characters. */
const LARGEST_COLOURED = 300_000;

/** Without something to undo here, the keys go on to the page, which undoes in the document. */
const UNDO_KEYS = [
  { key: "Mod-z", run: undo },
  { key: "Mod-y", mac: "Mod-Shift-z", run: redo },
  { linux: "Ctrl-Shift-z", win: "Ctrl-Shift-z", run: redo },
];

/** What the search says, by the words of the editor. */
const PHRASES = {
  next: "Next", previous: "Previous", all: "All", "match case": "Match case", regexp: "Regular expression", "by word": "Whole words",
  replace: "Replace", "replace all": "Replace all", close: "Close the search",
};

/** How far below the top of the view a place is to which the user goes. In pixels. */
const MARGIN = 24;

/** A change that comes from elsewhere. */
const remote = Annotation.define();

/** @type {any} */
const setMarks = StateEffect.define();

/**
 * @param {object} options
 * @param {string} options.text
 * @param {string} options.label  for screen readers
 * @param {string} options.language  as `languageOf` names it
 * @param {boolean} options.prose  lines are wrapped and have no numbers
 * @param {boolean} [options.readOnly]
 * @param {(input: {text: string, changes: any, undone: boolean}) => void} [options.onInput]  the user has changed the text;
 *     `undone`: by undo or redo
 * @param {(passage: Passage|null) => void} [options.onSelect]  the user has selected something, or cleared the selection
 * @param {(range: SourceRange) => void} [options.onMove]  the user has moved the cursor
 */
export function createEditor({ text, label, language, prose, readOnly = false, onInput = () => {}, onSelect = () => {}, onMove = () => {} }) {
  const languageSlot = new Compartment();
  const readOnlySlot = new Compartment();
  const historySlot = new Compartment();
  const view = new EditorView({
    state: EditorState.create({
      doc: text,
      extensions: [
        // The text has its line ends as they are, so that its offsets are those of the artifact.
        EditorState.lineSeparator.of("\n"),
        highlightSpecialChars({ render: specialChar }),
        EditorState.transactionFilter.of(keepLineEnds),
        EditorState.changeFilter.of(outsideOfWriting),
        prose ? [EditorView.lineWrapping, EditorView.perLineTextDirection.of(true)] : lineNumbers(),
        EditorState.tabSize.of(prose ? 4 : 2),
        historySlot.of(history()),
        EditorState.allowMultipleSelections.of(true),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        search({ top: true }),
        EditorState.phrases.of(PHRASES),
        syntaxHighlighting(classHighlighter),
        keymap.of([...defaultKeymap, ...UNDO_KEYS, ...searchKeymap]),
        marksField,
        peopleField,
        languageSlot.of([]),
        readOnlySlot.of(EditorState.readOnly.of(readOnly)),
        // Classes set in any other way are gone when the editor takes the focus.
        EditorView.editorAttributes.of({ class: prose ? "document-editor document-editor-prose" : "document-editor" }),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", spellcheck: prose ? "true" : "false" }),
        EditorView.updateListener.of(onUpdate),
        EditorView.cspNonce.of(styleNonce()),
      ],
    }),
  });
  /** What the editor shows. Joining the lines of a long text takes longer than a frame has. */
  let known = text;
  let marked = "";
  let people = "[]";
  let coloured = false;
  const settling = createSettling(view.dom, () => onSelect(selectedPassage(view.state, known)));
  load(language);

  return {
    element: view.dom,
    scroller: view.scrollDOM,
    view,
    text: () => known,
    update,
    /**
     * Makes a change that comes from elsewhere.
     * @param {any} changes
     * @param {string} next  the text after it
     */
    apply(changes, next) {
      if (changes.length === view.state.doc.length) {
        known = next;
        change(changes);
      }
      update(next);
    },
    /** What was typed so far can no longer be undone here. */
    forget() {
      view.dispatch({ effects: historySlot.reconfigure([]) });
      view.dispatch({ effects: historySlot.reconfigure(history()) });
    },
    /** @param {boolean} value */
    setReadOnly(value) {
      if (view.state.readOnly !== value) {
        view.dispatch({ effects: readOnlySlot.reconfigure(EditorState.readOnly.of(value)) });
      }
    },
    /** @param {Marks} marks */
    mark(marks) {
      const next = JSON.stringify(marks);
      if (next !== marked) {
        marked = next;
        view.dispatch({ effects: setMarks.of(marks) });
      }
    },
    /** Shows where others are. @param {import("../../presence/roster.js").PersonMark[]} marks */
    showPeople(marks) {
      const next = JSON.stringify(marks);
      if (next !== people) {
        people = next;
        view.dispatch({ effects: setPeople.of(marks) });
      }
    },
    selection: () => selectedPassage(view.state, known),
    selectAll: () => view.dispatch({ selection: EditorSelection.single(0, view.state.doc.length), userEvent: "select" }),
    deselect: () => view.dispatch({ selection: EditorSelection.cursor(view.state.selection.main.to) }),
    /** Where a passage is seen, for what is placed beside it. @param {SourceRange} range */
    coordinates({ start, end }) {
      return [view.coordsAtPos(start, 1), view.coordsAtPos(end, -1)];
    },
    /** Where a place is, seen or not, on the screen. @param {number} place */
    heightOf: (place) => view.documentTop + view.lineBlockAt(Math.min(place, view.state.doc.length)).top,
    /** @param {SourceRange} range */
    scrollTo: ({ start }) => view.dispatch({ effects: EditorView.scrollIntoView(Math.min(start, view.state.doc.length), { y: "center" }) }),
    /** Puts the cursor there. @param {SourceRange} range */
    goTo({ start }) {
      const at = Math.min(start, view.state.doc.length);
      view.focus();
      view.dispatch({ selection: EditorSelection.cursor(at), effects: EditorView.scrollIntoView(at, { y: "start", yMargin: MARGIN }), userEvent: "select" });
    },
    /** Heights far away are estimated, so this is not the same as setting `scrollTop`. */
    scrollToEnd: () => view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.length, { y: "end" }) }),
    destroy() {
      settling.end();
      view.destroy();
    },
  };

  /** Makes it show another text. @param {string} next */
  function update(next) {
    let by = 0;
    const changes = changesOf(known, next).map(({ start, end, inserted }) => {
      const insert = next.slice(start + by, start + by + inserted);
      by += inserted - (end - start);
      return { from: start, to: end, insert };
    });
    known = next;
    if (next.length > LARGEST_COLOURED && coloured) {
      coloured = false;
      view.dispatch({ effects: languageSlot.reconfigure([]) });
    }
    if (changes.length > 0) {
      change(view.state.changes(changes));
    }
  }

  /** @param {any} changes  that come from elsewhere */
  function change(changes) {
    view.dispatch({
      changes,
      effects: keepFirstLine(changes),
      annotations: [remote.of(true), Transaction.remote.of(true), Transaction.addToHistory.of(false)],
    });
  }

  /**
   * The first line that is seen stays where it is when something changes above it: the editor knows the heights of other lines
   * only after it has drawn them.
   * @param {any} changes
   */
  function keepFirstLine(changes) {
    const top = view.scrollDOM.getBoundingClientRect().top;
    const first = view.lineBlockAtHeight(top - view.documentTop);
    const next = Math.min(first.to + 1, view.state.doc.length);
    const place = view.coordsAtPos(next, 1);
    if (!place || view.scrollDOM.scrollTop === 0 || !changes.touchesRange(0, next) || changes.touchesRange(next)) {
      return [];
    }
    return EditorView.scrollIntoView(changes.mapPos(next, 1), { y: "start", yMargin: place.top - top });
  }

  /** @param {string} name */
  async function load(name) {
    const extension = await loadLanguage(name);
    coloured = known.length <= LARGEST_COLOURED;
    view.dispatch({ effects: languageSlot.reconfigure(coloured ? extension : []) });
  }

  /** @param {any} update */
  function onUpdate(update) {
    const typed = update.docChanged && !update.transactions.some((/** @type {any} */ one) => one.annotation(remote));
    if (typed) {
      known = applyChanges(known, update.changes);
      const undone = update.transactions.some((/** @type {any} */ one) => one.isUserEvent("undo") || one.isUserEvent("redo"));
      onInput({ text: known, changes: update.changes, undone });
    }
    if (typed || (update.selectionSet && update.transactions.some((/** @type {any} */ one) => one.isUserEvent("select")))) {
      const { from, to } = update.state.selection.main;
      onMove({ start: from, end: to });
      settling.selectionChanged();
    }
  }
}

/** @param {any} state @param {string} text @returns {Passage|null} */
function selectedPassage(state, text) {
  const { main, ranges } = state.selection;
  const others = ranges
    .filter((/** @type {any} */ range) => range !== main && !range.empty)
    .map((/** @type {any} */ { from, to }) => ({ start: from, end: to, text: text.slice(from, to) }));
  return main.empty ? null : { ...passage(text, { start: main.from, end: main.to }), ...(others.length > 0 && { others }) };
}

// --- marks

/** What has been written of a passage. */
class Written extends WidgetType {
  /** @param {string} text */
  constructor(text) {
    super();
    this.text = text;
  }

  toDOM() {
    return h("span", { class: "document-writing document-written" }, this.text);
  }

  /** @param {Written} other */
  eq(other) {
    return other.text === this.text;
  }

  /** @param {HTMLElement} element */
  updateDOM(element) {
    element.textContent = this.text;
    return true;
  }
}

/** What a suggestion puts into the text. */
class Suggested extends WidgetType {
  /** @param {Note} note */
  constructor(note) {
    super();
    this.note = note;
  }

  toDOM() {
    return h("ins", { class: `note-inserted ${classOf(this.note)}`, "data-note-id": this.note.id }, this.note.text);
  }

  /** @param {Suggested} other */
  eq({ note: { id, text, chosen } }) {
    return id === this.note.id && text === this.note.text && chosen === this.note.chosen;
  }

  ignoreEvent() {
    return false;
  }
}

class Caret extends WidgetType {
  toDOM() {
    return h("span", { class: "document-caret", "aria-hidden": "true" });
  }

  eq() {
    return true;
  }
}

const marksField = StateField.define({
  create: () => Decoration.none,
  update(decorations, transaction) {
    const effect = transaction.effects.find((/** @type {any} */ one) => one.is(setMarks));
    return effect ? decorationsOf(effect.value, transaction.state.doc.length) : decorations.map(transaction.changes);
  },
  provide: (/** @type {any} */ field) => EditorView.decorations.from(field),
});

/** @param {Marks} marks @param {number} length */
function decorationsOf({ selection, others = [], writing, notes = [] }, length) {
  const within = (/** @type {SourceRange} */ { start, end }) => [Math.min(start, length), Math.min(end, length)];
  const ranges = writing.flatMap((range) => {
    const [start, end] = within(range);
    const caret = Decoration.widget({ widget: new Caret(), side: 1 }).range(end);
    if (range.text) {
      const widget = new Written(range.text);
      return [start < end ? Decoration.replace({ widget, writing: true }).range(start, end) : Decoration.widget({ widget, side: 1 }).range(end), caret];
    }
    return start < end ? [Decoration.mark({ class: "document-writing" }).range(start, end), caret] : [caret];
  });
  for (const note of notes) {
    const [start, end] = within(note);
    const mark = { class: `note-${note.kind} ${classOf(note)}`, attributes: { "data-note-id": note.id } };
    ranges.push(...(start < end ? [Decoration.mark(mark).range(start, end)] : []));
    ranges.push(...(note.text ? [Decoration.widget({ widget: new Suggested(note), side: 1 }).range(end)] : []));
  }
  for (const one of selection ? [selection, ...others] : []) {
    const [start, end] = within(one);
    ranges.push(...(start < end ? [Decoration.mark({ class: "document-passage" }).range(start, end)] : []));
  }
  return Decoration.set(ranges, true);
}

/** @param {Note} note */
const classOf = ({ chosen }) => (chosen ? "note-chosen" : "");

/**
 * What is being rewritten cannot be typed into. The ranges in which nothing changes, or true if there are none.
 * @param {any} transaction
 */
function outsideOfWriting(transaction) {
  /** @type {number[]} */
  const kept = [];
  if (!transaction.docChanged || transaction.annotation(remote)) {
    return true;
  }
  transaction.startState.field(marksField).between(0, transaction.startState.doc.length, (/** @type {number} */ from, /** @type {number} */ to, /** @type {any} */ { spec }) => {
    if (from < to && (spec.writing || spec.class === "document-writing")) {
      kept.push(from, to);
    }
  });
  return kept.length > 0 ? kept : true;
}

// --- line ends

/** The `\r` of a line end is not seen; of other control characters CodeMirror shows a sign. @param {number} code @returns {any} */
function specialChar(code) {
  return code === 13 ? h("span") : null;
}

/**
 * In a text whose lines end in `\r\n`, what is typed keeps to it: a line end is inserted and deleted as one.
 * @param {any} transaction
 */
function keepLineEnds(transaction) {
  const { doc } = transaction.startState;
  if (!transaction.docChanged || transaction.annotation(remote) || doc.line(1).text.at(-1) !== "\r") {
    return transaction;
  }
  /** @type {any[]} */
  const changes = [];
  const cut = (/** @type {number} */ at) => doc.sliceString(at - 1, at + 1) === "\r\n";
  /** @param {number} from @param {number} to @param {number} _ @param {number} __ @param {any} insert */
  function keep(from, to, _, __, insert) {
    changes.push({
      from: cut(from) ? from - 1 : from,
      to: cut(to) ? (from === to ? to - 1 : to + 1) : to,
      insert: insert.toString().replace(/\r?\n/g, "\r\n"),
    });
  }
  transaction.changes.iterChanges(keep);
  const kept = transaction.startState.changes(changes);
  const selection = transaction.startState.selection.map(kept, 1);
  const userEvent = transaction.annotation(Transaction.userEvent);
  return [{ changes: kept, selection, scrollIntoView: transaction.scrollIntoView, userEvent }];
}
