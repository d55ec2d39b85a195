// @ts-check
/** Where others have changed the same words as the user: both forms, place by place, for the user to decide. */

import { button } from "../../controls.js";
import { fill, h } from "../../dom.js";
import { TEXT, say } from "../../strings.js";
import { formatCount } from "../../words.js";

/** @typedef {import("./merging.js").Piece} Piece */
/** @typedef {Extract<Piece, {base: string}>} Place */

const AROUND = 60;

/**
 * @param {(text: string) => void} decided
 * @returns {{element: HTMLElement, update: (pieces: Piece[]|null) => void}}
 */
export function createConflict(decided) {
  const element = h("section", { class: "document-conflict", "aria-label": TEXT.conflict, hidden: true });
  /** What the user has made of a place. @type {Map<string, string>} */
  const made = new Map();
  let shown = "null";
  /** @type {Piece[]|null} */
  let drawn = null;

  return {
    element,
    update(pieces) {
      const key = pieces === drawn ? shown : JSON.stringify(pieces);
      drawn = pieces;
      if (key !== shown) {
        shown = key;
        element.hidden = pieces === null;
        fill(element, pieces ? content(pieces) : []);
        pieces || made.clear();
      }
    },
  };

  /** @param {Piece[]} pieces */
  function content(pieces) {
    const places = pieces.filter((piece) => "base" in piece);
    const save = () => decided(pieces.map((piece) => ("text" in piece ? piece.text : (made.get(keyOf(piece)) ?? piece.yours))).join(""));
    const where = places.length === 1 ? TEXT.sameWords : say(TEXT.placesWere, { places: formatCount(places.length, "place") });
    return [
      h("p", { role: "status" }, h("b", {}, say(TEXT.changedMeanwhile, { where })), TEXT.chooseVersion),
      h("div", { class: "document-conflict-places" }, pieces.map((piece, at) => ("text" in piece ? null : placeOf(piece, at, pieces)))),
      h("div", { class: "document-conflict-end" }, button(TEXT.save, save, { class: "button button-primary" })),
    ];
  }

  /** @param {Place} place @param {number} at @param {Piece[]} pieces */
  function placeOf(place, at, pieces) {
    const key = keyOf(place);
    const both = place.current + (/\s$/.test(place.current) || /^\s/.test(place.yours) ? "" : " ") + place.yours;
    const result = h("textarea", {
      class: "field document-conflict-text",
      "aria-label": TEXT.textToKeep,
      rows: Math.min(8, 1 + both.split("\n").length),
      value: made.get(key) ?? place.yours,
      oninput: () => made.set(key, result.value),
    });
    const name = `conflict-${at}`;
    const choice = (/** @type {string} */ label, /** @type {string} */ text) =>
      h(
        "label",
        { class: "document-conflict-choice" },
        h("input", { type: "radio", name, checked: (made.get(key) ?? place.yours) === text, onchange: () => made.set(key, (result.value = text)) }),
        h("span", { class: "document-conflict-label" }, label),
        h("span", { class: "document-conflict-form" }, text || h("i", {}, TEXT.nothing)),
      );
    return h(
      "fieldset",
      { class: "document-conflict-place" },
      h("legend", {}, "… ", before(pieces, at), h("b", {}, place.base || " "), after(pieces, at), " …"),
      choice(TEXT.yours, place.yours),
      choice(TEXT.inDocument, place.current),
      choice(TEXT.both, both),
      result,
    );
  }
}

/** @param {Place} place */
const keyOf = ({ base, current, yours }) => JSON.stringify([base, current, yours]);

/** @param {Piece[]} pieces @param {number} at */
function before(pieces, at) {
  const piece = pieces[at - 1];
  return piece && "text" in piece ? piece.text.slice(-AROUND).split("\n").slice(-1)[0] : "";
}

/** @param {Piece[]} pieces @param {number} at */
function after(pieces, at) {
  const piece = pieces[at + 1];
  return piece && "text" in piece ? piece.text.slice(0, AROUND).split("\n")[0] : "";
}
