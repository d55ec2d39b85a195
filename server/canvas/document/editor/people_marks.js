// @ts-check
/** The cursors and selections of others in the source. What is typed moves them until the server tells their new places. */

import { h } from "../../dom.js";
import { Decoration, EditorView, StateEffect, StateField, WidgetType } from "../../vendor/codemirror.js";

/** @typedef {import("../../presence/roster.js").PersonMark} PersonMark */

/** @type {any} */
export const setPeople = StateEffect.define();

class PersonCaret extends WidgetType {
  /** @param {string} name @param {string} look */
  constructor(name, look) {
    super();
    this.name = name;
    this.look = look;
  }

  toDOM() {
    return h("span", { class: `people-inline ${this.look}`, title: this.name, "aria-hidden": "true" });
  }

  /** @param {PersonCaret} other */
  eq(other) {
    return other.name === this.name && other.look === this.look;
  }
}

export const peopleField = StateField.define({
  create: () => Decoration.none,
  update(decorations, transaction) {
    const effect = transaction.effects.find((/** @type {any} */ one) => one.is(setPeople));
    return effect ? decorationsOf(effect.value, transaction.state.doc.length) : decorations.map(transaction.changes);
  },
  provide: (/** @type {any} */ field) => EditorView.decorations.from(field),
});

/** @param {PersonMark[]} marks @param {number} length */
function decorationsOf(marks, length) {
  const ranges = marks.flatMap(({ name, look, ...range }) => {
    const [start, end] = [Math.min(range.start, length), Math.min(range.end, length)];
    const caret = Decoration.widget({ widget: new PersonCaret(name, look), side: 1 }).range(end);
    return start < end ? [Decoration.mark({ class: `people-selected ${look}`, attributes: { title: name } }).range(start, end), caret] : [caret];
  });
  return Decoration.set(ranges, true);
}
