// @ts-check
/** Files that are dropped on a part of the page. */

import { h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @param {HTMLElement} element  has a place that is positioned
 * @param {string} words  what dropping does here
 * @param {(files: File[]) => void} take
 */
export function mountDrop(element, words, take) {
  const sign = h("div", { class: "drop", hidden: true }, icon("attach", 24), words);
  element.append(sign);
  let inside = 0;
  const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") ?? false;
  const count = (/** @type {number} */ step) => (/** @type {DragEvent} */ event) => {
    if (hasFiles(event)) {
      inside += step;
      sign.hidden = inside <= 0;
    }
  };
  element.addEventListener("dragenter", count(1));
  element.addEventListener("dragleave", count(-1));
  element.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  element.addEventListener("drop", (event) => {
    inside = 0;
    sign.hidden = true;
    if (hasFiles(event)) {
      event.preventDefault();
      take([.../** @type {DataTransfer} */ (event.dataTransfer).files]);
    }
  });
}
