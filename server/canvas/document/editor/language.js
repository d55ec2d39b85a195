// @ts-check
/** In which language a text is written, by its media type or its name. The languages are loaded when one is needed. */

import { partOf } from "../../loading.js";

/** @type {Record<string, string[]>} the names of languages, file endings and media subtypes of each loader */
const NAMES = {
  markdown: ["md", "markdown", "x-markdown"],
  html: ["html", "htm", "xhtml", "vue", "svelte"],
  css: ["css", "scss", "less"],
  json: ["json", "ipynb", "webmanifest", "geojson", "ld+json"],
  javascript: ["js", "mjs", "cjs", "javascript", "x-javascript", "ecmascript", "node"],
  jsx: ["jsx"],
  typescript: ["ts", "mts", "cts", "typescript", "x-typescript"],
  tsx: ["tsx"],
  python: ["py", "pyi", "python", "python3", "x-python", "x-python-script"],
  yaml: ["yaml", "yml", "x-yaml"],
  sql: ["sql", "x-sql", "postgresql", "sqlite"],
  xml: ["xml", "svg", "svg+xml", "xsl", "rss", "atom+xml"],
  rust: ["rs", "rust", "x-rust"],
  go: ["go", "golang", "x-go"],
  cpp: ["c", "h", "cc", "cpp", "cxx", "hpp", "c++", "x-csrc", "x-c++src", "x-c"],
  java: ["java", "x-java", "x-java-source"],
  kotlin: ["kt", "kts", "kotlin", "x-kotlin"],
  csharp: ["cs", "csharp", "x-csharp"],
  swift: ["swift", "x-swift"],
  lua: ["lua", "x-lua"],
  shell: ["sh", "bash", "zsh", "shell", "x-sh", "x-shellscript", "console"],
  toml: ["toml", "x-toml"],
  properties: ["ini", "cfg", "properties", "env", "x-properties"],
  ruby: ["rb", "ruby", "x-ruby"],
  dockerfile: ["dockerfile", "docker", "containerfile", "x-dockerfile"],
  diff: ["diff", "patch", "x-diff", "x-patch"],
};

/** @type {Map<string, string>} */
const LANGUAGES = new Map(Object.entries(NAMES).flatMap(([language, names]) => names.map((name) => [name, language])));

/**
 * The language of an artifact; "" for plain text. What the name ends in says more than a media type such as `text/plain`.
 * @param {string} name
 * @param {string} mediaType
 */
export function languageOf(name, mediaType) {
  const file = name.toLowerCase().split("/").pop() ?? "";
  const ending = file.includes(".") ? file.slice(file.lastIndexOf(".") + 1) : file;
  const subtype = mediaType.toLowerCase().split(";")[0].trim().split("/")[1] ?? "";
  return LANGUAGES.get(subtype) ?? LANGUAGES.get(ending) ?? "";
}

/** The language that a fence of Markdown names. @param {string} name */
export function languageNamed(name) {
  return LANGUAGES.get(name.toLowerCase()) ?? "";
}

/** Dialects, and what their language is loaded with. @type {Record<string, [string, object]>} */
const DIALECTS = {
  jsx: ["javascript", { jsx: true }],
  typescript: ["javascript", { typescript: true }],
  tsx: ["javascript", { jsx: true, typescript: true }],
};

/** @type {Map<string, import("../../loading.js").Part<any>>} */
const parts = new Map();

/**
 * What CodeMirror needs for a language; nothing for plain text. Colours are no news: nobody is told that they are missing.
 * @param {string} language
 * @returns {Promise<any>}
 */
export async function loadLanguage(language) {
  if (language === "") {
    return [];
  }
  const [name, config] = DIALECTS[language] ?? [language, undefined];
  const part = parts.get(name) ?? partOf(() => import(`../vendor/languages/${name}.js`), { early: false });
  parts.set(name, part);
  return (await part.get(() => {})).language(config);
}
