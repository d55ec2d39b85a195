// @ts-check
/** Marks ranges of the page without changing it: with the CSS Custom Highlight API, else by wrapping their text. */

import { h } from "../dom.js";

/**
 * @param {string} name  of the highlight, and of the class of the elements that wrap
 * @returns {(ranges: Range[]) => void}  marks these ranges instead of those before
 */
export function createHighlighter(name) {
  const registry = /** @type {any} */ (globalThis).CSS?.highlights;
  if (registry) {
    return (ranges) => (ranges.length > 0 ? registry.set(name, new /** @type {any} */ (globalThis).Highlight(...ranges)) : registry.delete(name));
  }
  /** @type {HTMLElement[]} */
  let marks = [];
  return (ranges) => {
    marks.forEach(unwrap);
    marks = ranges.flatMap((range) => wrap(range, name));
  };
}

/** @param {Range} range @param {string} name */
function wrap(range, name) {
  return textNodes(range).map(({ node, start, end }) => wrapText(node, start, end, h("mark", { class: name })));
}

/** Puts a part of a text node into an element; what is before it stays in the node. @param {Text} node @param {number} start @param {number} end @param {HTMLElement} mark */
export function wrapText(node, start, end, mark) {
  const text = node.splitText(start);
  text.splitText(end - start);
  text.replaceWith(mark);
  mark.append(text);
  return mark;
}

/** @param {HTMLElement} mark */
function unwrap(mark) {
  const parent = mark.parentNode;
  mark.replaceWith(...mark.childNodes);
  parent?.normalize();
}

/** @param {Range} range @returns {{node: Text, start: number, end: number}[]} */
function textNodes(range) {
  const found = [];
  const walker = document.createTreeWalker(range.commonAncestorContainer, 4);
  let node = /** @type {any} */ (walker.currentNode instanceof Text ? walker.currentNode : walker.nextNode());
  for (; node; node = walker.nextNode()) {
    const start = node === range.startContainer ? range.startOffset : 0;
    const end = node === range.endContainer ? range.endOffset : node.length;
    if (range.intersectsNode(node) && start < end) {
      found.push({ node, start, end });
    }
  }
  return found;
}
