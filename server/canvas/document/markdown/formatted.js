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
 * A block of one of two texts, without what the page draws, such as formulas; `relinked`: its source may be the same, but a link in it
 * is defined otherwise.
 * @typedef {{source: string, relinked: boolean, render: () => HTMLElement}} ComparedBlock
 */

/**
 * The blocks of two texts, of which each is rendered when it is asked for.
 * @param {string} old
 * @param {string} text
 * @returns {{old: ComparedBlock[], next: ComparedBlock[]}}
 */
export function blocksOf(old, text) {
  const before = updateBlocks(NO_BLOCKS, old).blocks;
  const { blocks, labels } = updateBlocks(before, text);
  return { old: comparedBlocks(before, new Set()), next: comparedBlocks(blocks, labels) };
}

/** @param {import("./markdown_blocks.js").Blocks} blocks @param {ReadonlySet<string>} labels  whose definition has changed @returns {ComparedBlock[]} */
function comparedBlocks({ text, list, starts, definitions }, labels) {
  return list.map(({ length }, at) => {
    const source = text.slice(starts[at], starts[at] + length).trimEnd();
    const relinked = labels.size > 0 && source.includes("[") && [...renderBlock(source, definitions).labels].some((label) => labels.has(label));
    return { source, relinked, render: () => h("div", { class: "document-block", dir: "auto" }, sanitize(renderBlock(source, definitions).html)) };
  });
}
