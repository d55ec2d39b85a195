// @ts-check
/** The cursors and selections of others over a rendered text. They lie over it and scroll with it: nothing moves for them. */

import { h } from "../dom.js";

/** @typedef {import("./roster.js").PersonMark} PersonMark */

/**
 * @param {HTMLElement} scroller
 * @param {(start: number, end: number) => Range[]} rangesOf  where a range of the source is seen
 */
export function createOverlay(scroller, rangesOf) {
  const layer = h("div", { class: "people-layer", "aria-hidden": "true" });
  /** @type {PersonMark[]} */
  let marks = [];
  scroller.append(layer);

  function draw() {
    if (marks.length > 0 || layer.firstChild) {
      const { left, top } = layer.getBoundingClientRect();
      layer.replaceChildren(...marks.flatMap((mark) => markOf(mark, left, top)));
    }
  }

  /** @param {PersonMark} mark @param {number} left @param {number} top */
  function markOf({ name, look, start, end }, left, top) {
    const rects = rangesOf(start, Math.max(end, start + 1)).flatMap((range) => [...range.getClientRects()]);
    const [first, last] = [rects[0], rects[rects.length - 1]];
    if (!first) {
      return [];
    }
    const at = start === end ? { x: first.left, y: first.top, height: first.height } : { x: last.right, y: last.top, height: last.height };
    const caret = box(`people-caret ${look}`, at.x - left, at.y - top, null, at.height);
    caret.title = name;
    return [...(start === end ? [] : rects.map((rect) => box(`people-range ${look}`, rect.left - left, rect.top - top, rect.width, rect.height))), caret];
  }

  return {
    draw,
    /** @param {PersonMark[]} next */
    show(next) {
      marks = next;
      draw();
    },
  };
}

/** @param {string} look @param {number} x @param {number} y @param {number|null} width @param {number} height @returns {HTMLElement} */
function box(look, x, y, width, height) {
  const element = h("div", { class: look });
  element.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  element.style.height = `${Math.round(height)}px`;
  if (width !== null) {
    element.style.width = `${Math.round(width)}px`;
  }
  return element;
}
