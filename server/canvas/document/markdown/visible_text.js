// @ts-check
/**
 * The visible text of a block, and places in it. What was drawn, such as a formula, has other characters than its source, or none:
 * it stands for the source in `data-source`, as a whole.
 */

/** The attribute of what was drawn. */
export const SOURCE = "data-source";

/** @param {Element} root */
export function visibleText(root) {
  return root.querySelector(`[${SOURCE}]`) ? [...piecesOf(root)].map(({ text }) => text).join("") : (root.textContent ?? "");
}

/**
 * How many characters stand before a place in an element.
 * @param {Element} root
 * @param {Node} node
 * @param {number} offset
 * @param {boolean} after  the place is the end of something: within what was drawn, it is the end of that
 */
export function textOffset(root, node, offset, after) {
  const drawn = drawnAround(root, node);
  const range = root.ownerDocument.createRange();
  range.setStart(root, 0);
  drawn ? range.setEndBefore(drawn) : range.setEnd(node, offset);
  let length = range.toString().length + (drawn && after ? sourceOf(drawn).length : 0);
  for (const each of root.querySelectorAll(`[${SOURCE}]`)) {
    length += each !== drawn && range.intersectsNode(each) ? sourceOf(each).length - (each.textContent ?? "").length : 0;
  }
  return length;
}

/** The DOM range of a stretch of the text; what was drawn is in it as a whole. @param {Element} root @param {number} start @param {number} end */
export function domRange(root, start, end) {
  const range = root.ownerDocument.createRange();
  let at = 0;
  let begun = false;
  for (const { node, text } of piecesOf(root)) {
    if (!begun && start < at + text.length) {
      node instanceof Element ? range.setStartBefore(node) : range.setStart(node, start - at);
      begun = true;
    }
    if (end <= at + text.length) {
      node instanceof Element ? range.setEndAfter(node) : range.setEnd(node, end - at);
      break;
    }
    at += text.length;
  }
  return range;
}

/** @param {Element} drawn */
const sourceOf = (drawn) => drawn.getAttribute(SOURCE) ?? "";

/** @param {Element} root @param {Node} node */
function drawnAround(root, node) {
  const found = (node instanceof Element ? node : node.parentElement)?.closest(`[${SOURCE}]`);
  return found && root.contains(found) ? found : null;
}

/** The text nodes and what was drawn, in order. @param {Node} root @returns {Generator<{node: Element|Text, text: string}>} */
export function* piecesOf(root) {
  for (const node of root.childNodes) {
    if (node instanceof Text) {
      yield { node, text: node.data };
    } else if (node instanceof Element && node.hasAttribute(SOURCE)) {
      yield { node, text: sourceOf(node) };
    } else {
      yield* piecesOf(node);
    }
  }
}
