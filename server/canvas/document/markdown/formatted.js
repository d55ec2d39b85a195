// @ts-check
/** A Markdown text as HTML of its own: for other programs, with its formatting and nothing that only the page knows, and block by block. */

import { h } from "../../dom.js";
import { NO_BLOCKS, updateBlocks } from "./markdown_blocks.js";
import { renderBlock } from "./markdown_render.js";
import { sanitize } from "./sanitize.js";

const KEPT = ["align", "alt", "href", "src", "start", "title"];

/** @param {string} text @returns {string} */
export function formatMarkdown(text) {
  const { list, starts, definitions } = updateBlocks(NO_BLOCKS, text).blocks;
  const made = sanitize(list.map(({ length }, at) => renderBlock(text.slice(starts[at], starts[at] + length), definitions).html).join(""));
  for (const box of made.querySelectorAll(".document-task")) {
    box.replaceWith(box.getAttribute("aria-checked") === "true" ? "☑ " : "☐ ");
  }
  for (const formula of made.querySelectorAll(".document-math, .document-formula")) {
    const sign = formula.className === "document-math" ? "$" : "$$";
    formula.replaceWith(`${sign}${formula.textContent}${sign}`);
  }
  for (const element of made.querySelectorAll("*")) {
    element.getAttributeNames().filter((name) => !KEPT.includes(name)).forEach((name) => element.removeAttribute(name));
  }
  return h("div", {}, made).innerHTML;
}

/**
 * The blocks of a text, of which each is rendered when it is asked for: without what the page draws, such as formulas.
 * @param {string} text
 * @returns {{source: string, render: () => HTMLElement}[]}
 */
export function blocksOf(text) {
  const { list, starts, definitions } = updateBlocks(NO_BLOCKS, text).blocks;
  return list.map(({ length }, at) => {
    const source = text.slice(starts[at], starts[at] + length).trimEnd();
    return { source, render: () => h("div", { class: "document-block", dir: "auto" }, sanitize(renderBlock(source, definitions).html)) };
  });
}
