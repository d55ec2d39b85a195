// @ts-check
/** How an artifact can be shown. Pure. */

import { languageOf } from "../editor/language.js";

/** @typedef {"read"|"source"|"preview"|"grid"|"tree"|"parts"} Mode */

/**
 * @typedef {object} Kind
 * @property {"markdown"|"html"|"svg"|"diagram"|"table"|"json"|"text"|"code"|"parts"} name
 * @property {string} language
 * @property {readonly {mode: Mode, label: string}[]} modes  the first one is shown unless the user chooses another
 */

/** @type {Record<Kind["name"], Kind["modes"]>} */
const MODES = {
  markdown: [
    { mode: "read", label: "Read" },
    { mode: "source", label: "Edit" },
  ],
  html: [
    { mode: "preview", label: "Preview" },
    { mode: "source", label: "Source" },
  ],
  svg: [
    { mode: "preview", label: "Preview" },
    { mode: "source", label: "Source" },
  ],
  diagram: [
    { mode: "preview", label: "Preview" },
    { mode: "source", label: "Edit" },
  ],
  table: [
    { mode: "grid", label: "Table" },
    { mode: "source", label: "Edit" },
  ],
  json: [
    { mode: "tree", label: "Tree" },
    { mode: "source", label: "Edit" },
  ],
  text: [{ mode: "source", label: "Edit" }],
  code: [{ mode: "source", label: "Edit" }],
  parts: [{ mode: "parts", label: "Content" }],
};

/** The formats in which a server may offer Markdown. @type {Record<string, string>} */
export const DOWNLOAD_AS = {
  docx: "Download as Word",
  odt: "Download as OpenDocument",
  epub: "Download as EPUB",
  latex: "Download as LaTeX",
};

/**
 * @param {{name: string, mediaType: string, text: string|null}} artifact
 * @returns {Kind}
 */
export function kindOf({ name, mediaType, text }) {
  if (text === null) {
    return { name: "parts", language: "", modes: MODES.parts };
  }
  const language = languageOf(name, mediaType);
  const isDiagram = /\bmermaid\b/.test(mediaType) || /\.(mmd|mermaid)$/i.test(name);
  const isSvg = /\bsvg\b/.test(mediaType) || /\.svg$/i.test(name);
  const kind = isDiagram ? "diagram" : isSvg ? "svg" : nameOf(language, name, mediaType);
  return { name: kind, language: kind === "markdown" ? "markdown" : language, modes: MODES[kind] };
}

/**
 * A text that says nothing of its kind is read as Markdown: that is what agents write.
 * @param {string} language
 * @param {string} name
 * @param {string} mediaType
 * @returns {Kind["name"]}
 */
function nameOf(language, name, mediaType) {
  if (language === "markdown" || language === "html") {
    return language;
  }
  if (language === "json") {
    return "json";
  }
  if (/\.(csv|tsv)$/i.test(name) || /^text\/(csv|tab-separated-values)\b/i.test(mediaType)) {
    return "table";
  }
  if (language !== "") {
    return "code";
  }
  return /\.\w+$/.test(name) || (mediaType !== "" && mediaType !== "text/plain") ? "text" : "markdown";
}

/** A name for the file that it is saved as. @param {{name: string}} artifact @param {Kind} kind */
export function fileName({ name }, kind) {
  const clean = name.replace(/[\\/:*?"<>|\u0000-\u001f]/g, "-") || "document";
  const endings = { markdown: ".md", html: ".html", svg: ".svg", diagram: ".mmd", table: ".csv", json: ".json" };
  const ending = /** @type {Record<string, string>} */ (endings)[kind.name] ?? ".txt";
  return /\.\w+$/.test(clean) ? clean : clean + ending;
}

/** Whether a table is separated by tabs. @param {{name: string, mediaType: string}} artifact */
export const isTabbed = ({ name, mediaType }) => /\.tsv$/i.test(name) || /tab-separated/i.test(mediaType);

const FRONT_MATTER = /^\ufeff?---[ \t]*\r?\n([^]*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/;

/**
 * The language that the front matter of a text names, for `lang`: empty if none is known, so that its words are not taken for those of
 * the page.
 * @param {string} text
 */
export function langOf(text) {
  const [, fields = ""] = FRONT_MATTER.exec(text.slice(0, 4000)) ?? [];
  return /^lang:[ \t]*["']?([a-z]{2,8}(?:-[a-z0-9]{1,8})*)["']?[ \t]*(?:#.*)?\r?$/im.exec(fields)?.[1] ?? "";
}
