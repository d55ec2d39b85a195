// @ts-check
/** Formulas in a text that is read. They are drawn by KaTeX, which is loaded with its fonts when there is one; until then, and if they are wrong, they are TeX. */

import { h } from "../../dom.js";
import { partOf } from "../../loading.js";
import { SOURCE } from "./visible_text.js";

/** What no formula may do: links, pictures and classes (`trust`), sizes that cover the page, and macros without end. */
const OPTIONS = { output: "html", trust: false, strict: false, throwOnError: true, maxSize: 40, maxExpand: 500 };

/** So many drawn formulas are kept: a block is rendered again with each of its changes. */
const KEPT = 1000;

const katexPart = partOf(loadKatex, { early: false });
/** Who waits for it. @type {Set<() => void>} */
const waiting = new Set();
/** Drawn formulas by their kind and TeX; an error in their place. @type {Map<string, Element|string>} */
const drawn = new Map();

/** With its style sheet, so that nothing is seen in the wrong place. */
async function loadKatex() {
  const { default: katex, sheet } = await import("../../vendor/katex.js");
  await new Promise((onload, onerror) => document.head.append(h("link", { rel: "stylesheet", href: sheet, onload, onerror })));
  return katex;
}

/** Waits for KaTeX if there is a formula. */
export const formulasLoaded = () => (waiting.size > 0 ? katexPart.get(() => {}) : Promise.resolve());

/**
 * Draws the formulas of what was rendered.
 * @param {ParentNode} made
 * @param {() => void} loaded  called when they can be drawn
 */
export function drawFormulas(made, loaded) {
  const formulas = made.querySelectorAll(".document-math, .document-formula");
  const katex = katexPart.now();
  if (formulas.length > 0 && !katex) {
    waiting.has(loaded) || katexPart.get(() => {}).then(loaded);
    waiting.add(loaded);
    return;
  }
  for (const formula of formulas) {
    draw(katex, formula, formula.textContent ?? "");
  }
}

/** @param {any} katex @param {Element} formula @param {string} tex */
function draw(katex, formula, tex) {
  const key = `${formula.className} ${tex}`;
  const made = drawn.get(key) ?? picture(katex, tex, formula.className === "document-formula");
  drawn.size < KEPT || drawn.clear();
  drawn.set(key, made);
  if (typeof made === "string") {
    formula.setAttribute("title", made);
    return;
  }
  formula.replaceChildren(...made.cloneNode(true).childNodes);
  formula.setAttribute(SOURCE, tex);
  formula.setAttribute("role", "math");
  formula.setAttribute("aria-label", tex);
}

/** @param {any} katex @param {string} tex @param {boolean} displayMode @returns {Element|string} */
function picture(katex, tex, displayMode) {
  const made = document.createElement("span");
  try {
    katex.render(tex, made, { ...OPTIONS, displayMode });
    return made;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
