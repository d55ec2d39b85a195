// @ts-check
/** The colours of code in a text that is read. They come when their language is loaded; until then, code is plain. */

import { h } from "../../dom.js";
import { partOf } from "../../loading.js";
import { languageNamed, loadLanguage } from "./language.js";

/** Longer code has no colours: it is parsed with each change. In characters. */
const LONGEST = 20_000;

const codemirrorPart = partOf(() => import("../../vendor/codemirror.js"));
/** @type {Map<string, any>} */
const parsers = new Map();
/** Who waits for a language. @type {Map<string, Set<() => void>>} */
const waiting = new Map();

/**
 * Colours the code of what was rendered.
 * @param {ParentNode} made
 * @param {() => void} loaded  called when there are more colours
 */
export function colour(made, loaded) {
  for (const code of made.querySelectorAll("code[data-language]")) {
    const language = languageNamed(code.getAttribute("data-language") ?? "");
    const text = code.textContent ?? "";
    if (language === "" || text.length > LONGEST) {
      continue;
    }
    parsers.has(language) ? paint(code, text, parsers.get(language)) : load(language, loaded);
  }
}

/** @param {string} language @param {() => void} loaded */
async function load(language, loaded) {
  const others = waiting.get(language);
  if (others) {
    others.add(loaded);
    return;
  }
  const all = new Set([loaded]);
  waiting.set(language, all);
  await codemirrorPart.get(() => {});
  const support = await loadLanguage(language);
  parsers.set(language, support.language.parser);
  waiting.delete(language);
  all.forEach((each) => each());
}

/** @param {Element} code @param {string} text @param {any} parser */
function paint(code, text, parser) {
  const { classHighlighter, highlightCode } = /** @type {any} */ (codemirrorPart.now());
  /** @type {(Node|string)[]} */
  const pieces = [];
  const put = (/** @type {string} */ piece, /** @type {string} */ classes) => pieces.push(classes ? h("span", { class: classes }, piece) : piece);
  highlightCode(text, parser.parse(text), classHighlighter, put, () => pieces.push("\n"));
  code.replaceChildren(...pieces);
}
