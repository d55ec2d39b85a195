// Bundles the libraries of the page: `node vendor.mjs FOLDER` (make vendor). The result is committed.
//
// Rule 1: the same package-lock.json gives the same bytes, on any machine.
// Rule 2: what modules share is in chunks, so that the editor's state exists once whatever else is loaded.
// Rule 3: every module has its types beside it, and every package its licence in LICENSES.txt.
// Rule 4: of fonts there is the one format that every browser reads.
// Rule 5: Mermaid makes all of its elements in a document that the page gives it, and HTML from strings by DOMPurify alone.

import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = dirname(fileURLToPath(import.meta.url));

/** The packages of languages, and the name of the function in each that makes one. */
const LANGUAGES = {
  cpp: "cpp",
  css: "css",
  go: "go",
  html: "html",
  java: "java",
  javascript: "javascript",
  json: "json",
  markdown: "markdown",
  python: "python",
  rust: "rust",
  sql: "sql",
  xml: "xml",
  yaml: "yaml",
};

/** Languages that have a tokenizer only: the module and its export. */
const TOKENIZERS = {
  csharp: ["clike", "csharp"],
  diff: ["diff", "diff"],
  dockerfile: ["dockerfile", "dockerFile"],
  kotlin: ["clike", "kotlin"],
  lua: ["lua", "lua"],
  properties: ["properties", "properties"],
  ruby: ["ruby", "ruby"],
  shell: ["shell", "shell"],
  swift: ["swift", "swift"],
  toml: ["toml", "toml"],
};

/** @typedef {{source: string, types: string}} Entry */

/** @param {string} source @returns {Entry} */
const same = (source) => ({ source, types: source });

/** @returns {Record<string, Entry>} */
function entries() {
  const everything = ["state", "view", "commands", "language", "search"].map((name) => `export * from "@codemirror/${name}";`);
  const highlighting = 'export { Tag, classHighlighter, highlightCode, highlightTree, tagHighlighter, tags } from "@lezer/highlight";';
  /** @type {Record<string, Entry>} */
  const made = {
    codemirror: same([...everything, highlighting].join("\n")),
    merge: same('export * from "@codemirror/merge";'),
    dompurify: same('export { default } from "dompurify";'),
    katex: {
      source: 'export { default } from "katex"; export const sheet = new URL("katex.css", import.meta.url).href;',
      types: 'export { default } from "katex";\nexport const sheet: string;',
    },
    "markdown-it": same('export { default } from "markdown-it";'),
  };
  for (const [name, made_by] of Object.entries(LANGUAGES)) {
    made[`languages/${name}`] = same(`export { ${made_by} as language } from "@codemirror/lang-${name}";`);
  }
  for (const [name, [module, tokenizer]] of Object.entries(TOKENIZERS)) {
    made[`languages/${name}`] = {
      source: [
        'import { LanguageSupport, StreamLanguage } from "@codemirror/language";',
        `import { ${tokenizer} } from "@codemirror/legacy-modes/mode/${module}";`,
        `export const language = () => new LanguageSupport(StreamLanguage.define(${tokenizer}));`,
      ].join("\n"),
      types: 'export function language(): import("@codemirror/language").LanguageSupport;',
    };
  }
  return made;
}

/** Gives esbuild the entries without files. @param {Record<string, Entry>} made @returns {import("esbuild").Plugin} */
const inMemory = (made) => ({
  name: "entries",
  setup(bundler) {
    const contents = (/** @type {string} */ name) => made[name]?.source ?? STAGE;
    bundler.onResolve({ filter: /^entry:/ }, ({ path }) => ({ path: path.slice("entry:".length), namespace: "entry" }));
    bundler.onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => ({ contents: contents(path), resolveDir: ROOT }));
  },
});

/** Mermaid, whose modules are all in one folder: it loads those of a kind of diagram when there is one. @type {Record<string, Entry>} */
const DIAGRAMS = {
  "mermaid/mermaid": {
    source: 'export { default } from "mermaid"; export { drawIn } from "entry:stage";',
    types: 'export { default } from "mermaid";\nexport function drawIn(stage: Document, policy: object): void;',
  },
};

/** What Mermaid and its libraries have in place of the page's document, of DOMPurify's hooks that all would share, and of pictures. */
const STAGE = `
import createPurifier from "dompurify";
export let document;
let policy;
const purifier = createPurifier(window);
const sanitize = (dirty, config) => purifier.sanitize(dirty, { ...config, TRUSTED_TYPES_POLICY: policy });
export default new Proxy(purifier, { get: (all, name) => (name === "sanitize" ? sanitize : all[name]) });
export function drawIn(stage, trusted) {
  document = stage;
  policy = trusted;
}
export const toHtml = (dirty) => sanitize(String(dirty), { RETURN_TRUSTED_TYPE: true });
export class Image {
  decode() {
    return Promise.reject(new Error("A diagram loads no pictures."));
  }
}`;

/** A library that the page has already. @param {string} name */
const outside = (name) => ({ path: `../${name}.js`, external: true });

/** Mermaid and what it draws with. */
const DRAWS = /node_modules\/(?:mermaid|d3-[a-z]+|roughjs|cytoscape|@upsetjs\/venn\.js)\//;

/** Rule 5. Of layouts there is dagre: ELK is as large as all of the rest. @type {import("esbuild").Plugin} */
const staged = {
  name: "stage",
  setup(bundler) {
    bundler.onResolve({ filter: /^dompurify$/ }, ({ namespace }) => (namespace === "entry" ? outside("dompurify") : { path: "stage", namespace: "entry" }));
    bundler.onResolve({ filter: /^katex$/ }, () => outside("katex"));
    bundler.onResolve({ filter: /\/elk-\w+\.mjs$/ }, async ({ resolveDir }) => {
      const dagre = (await readdir(resolveDir, { recursive: true })).filter((name) => /(?:^|\/)dagre-\w+\.mjs$/.test(name));
      return { path: join(resolveDir, dagre[0]) };
    });
    bundler.onLoad({ filter: DRAWS }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text
        .replaceAll(/\b(style\w*)\.innerHTML = /g, "$1.textContent = ")
        .replaceAll(/\.innerHTML = ([^;\n]+);/g, ".innerHTML = toHtml($1);")
        .replaceAll(/(\w+) instanceof SVGGraphicsElement/g, '"getBBox" in $1');
      const names = ["document", "Image", "toHtml"].filter((name) => new RegExp(`\\b${name}\\b`).test(contents));
      return { contents: names.length > 0 ? `import { ${names.join(", ")} } from "entry:stage";\n${contents}` : contents };
    });
  },
};

/** A style sheet, and the fonts that it names, from beside it. @param {string} folder */
async function katexSheet(folder) {
  const from = join(ROOT, "node_modules/katex/dist");
  const sheet = await readFile(join(from, "katex.min.css"), "utf8");
  const one = sheet.replaceAll(/,url\([^)]*\.(?:woff|ttf)\) format\("[^"]*"\)/g, "");
  await mkdir(join(folder, "fonts"), { recursive: true });
  for (const [, name] of one.matchAll(/url\(fonts\/([^)]+)\)/g)) await copyFile(join(from, "fonts", name), join(folder, "fonts", name));
  await writeFile(join(folder, "katex.css"), one);
}

/** The name and version of each package that is in the bundles, and its licence. @param {string[]} files */
async function licences(files) {
  const packages = new Set(files.map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter(Boolean));
  const texts = [...packages].sort().map(async (name) => {
    const folder = join(ROOT, "node_modules", String(name));
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).sort().find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no licence.`);
    const text = await readFile(join(folder, file), "utf8");
    return `${name} ${version} (${license ?? "its licence"})\n\n${text.replaceAll("\r", "").trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}

/** @type {import("esbuild").BuildOptions} */
const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  // Where node_modules is a link, the names and bytes are the same.
  preserveSymlinks: true,
  splitting: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
};

/** What of the packages is bundled. @param {string} folder @param {Record<string, Entry>} made @param {import("esbuild").BuildOptions} options */
async function bundle(folder, made, { plugins = [], ...options }) {
  const entryPoints = Object.fromEntries(Object.keys(made).map((name) => [name, `entry:${name}`]));
  const { metafile } = await build({ ...OPTIONS, entryPoints, outdir: folder, plugins: [inMemory(made), ...plugins], ...options });
  for (const [name, { types }] of Object.entries(made)) await writeFile(join(folder, `${name}.d.ts`), `${types}\n`);
  return Object.keys(metafile?.inputs ?? {});
}

/** @param {string} folder */
async function vendor(folder) {
  await rm(folder, { recursive: true, force: true });
  const libraries = await bundle(folder, entries(), { chunkNames: "chunks/[name]-[hash]" });
  const diagrams = await bundle(folder, DIAGRAMS, { chunkNames: "mermaid/[name]-[hash]", plugins: [staged] });
  await katexSheet(folder);
  await writeFile(join(folder, "LICENSES.txt"), await licences([...libraries, ...diagrams]));
}

await vendor(process.argv[2]);
