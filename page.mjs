// Bundles the page: `node page.mjs FOLDER` (make page). The result, server/canvas/built, is committed and served.
//
// Rule 1: the same sources give the same bytes, on any machine.
// Rule 2: the start is one module, main.js, and each view that is imported later is one. What a view shares with the start or
//         with another view is in main.js, or in a chunk if it needs a library: a module exists once. The documents in a frame
//         of another page are a page of their own, in embed/: it loads nothing of the other one but libraries. The view in an MCP host is one file.
// Rule 3: a page paints from its HTML alone, which contains the style sheets.
// Rule 4: SOURCES has the digest of what was bundled: without Node a test then tells whether it is up to date.

import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const ROOT = dirname(fileURLToPath(import.meta.url));
const CANVAS = join(ROOT, "server/canvas");
/**
 * A page: `folder` is that of its bundles, with a slash at its end unless it is empty.
 * @typedef {{start: string, folder: string, html: string}} Entry
 */
/** @type {readonly Entry[]} */
const PAGES = [
  { start: "main.js", folder: "", html: "index.html" },
  { start: "embed/embed.js", folder: "embed/", html: "embed/embed.html" },
];
/** Programs that run beside the page; each is a bundle of its own. */
const WORKERS = ["a2a/shared_worker.js"];
/** The frame of HTML programs: one inline script, because its origin can load nothing. */
const PROGRAM = "document/program/shell.js";
/** The view of a document in an MCP host: one page with all that it needs, because a host may let it load nothing. */
const HOST = { start: "host/host.js", html: "host/host.html" };
const COPIED = ["icon.svg"];
/** Style sheets that a view loads itself. */
const LATER = ["style/developer.css", "style/pane.css", "style/review.css", "style/views.css"];
const SHEETS = /(?:[ ]*<link rel="stylesheet" href="\{assets\}\/([^"]+)">\n)+/;

/** @typedef {import("esbuild").Plugin} Plugin */
/** @typedef {import("esbuild").BuildOptions} Options */

/** @type {Options} */
const OPTIONS = {
  absWorkingDir: CANVAS,
  outbase: CANVAS,
  outdir: CANVAS,
  bundle: true,
  write: false,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  chunkNames: "chunks/[name]-[hash]",
  metafile: true,
  logLevel: "warning",
};

/** The path of an import below server/canvas. @param {import("esbuild").OnResolveArgs} args */
const target = ({ path, resolveDir }) => relative(CANVAS, resolve(resolveDir, path));

/** @param {string} name */
const isLibrary = (name) => name.startsWith("vendor/");

/** A file that is not part of the bundle; `linked` makes its address. @param {string} name */
const outside = (name) => ({ path: `outside:${name}`, external: true });

/** @param {(name: string) => import("esbuild").OnResolveResult|undefined} resolved @returns {Plugin} */
const imports = (resolved) => ({
  name: "imports",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\.?\// }, (args) => resolved(target(args)));
    // Of an address that is computed esbuild would bundle everything that it may be.
    onLoad({ filter: /\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll("import(`../vendor/", "import(`outside:vendor/"),
    }));
  },
});

/** The modules of a start, and those that are imported later by anyone. @param {string} entryPoint */
async function modules(entryPoint) {
  const { metafile } = await build({
    ...OPTIONS,
    entryPoints: [entryPoint],
    splitting: true,
    plugins: [imports((name) => (isLibrary(name) ? outside(name) : undefined))],
  });
  const { inputs } = metafile;
  /** @param {string} kind @param {string} name */
  const imported = (kind, name) => inputs[name].imports.filter((each) => each.kind === kind && !each.external).map((each) => each.path);
  /** @param {string} entry */
  const needed = (entry) => {
    const found = new Set([entry]);
    for (const name of found) imported("import-statement", name).forEach((each) => found.add(each));
    return found;
  };
  /** @param {string} entry */
  const needsLibrary = (entry) =>
    [...needed(entry)].some((name) => inputs[name].imports.some((each) => each.kind === "import-statement" && each.external));
  const start = needed(entryPoint);
  const views = new Set(Object.keys(inputs).flatMap((name) => imported("dynamic-import", name)).filter((name) => !start.has(name)));
  const parts = [...views].map(needed);
  const shared = Object.keys(inputs).filter((name) => parts.filter((part) => part.has(name)).length > 1);
  shared.filter((name) => !views.has(name) && !needsLibrary(name)).forEach((name) => start.add(name));
  return { start, views: [...views].sort() };
}

/** The names that modules export. @param {string[]} names @throws {Error} two export the same one */
async function checkNames(names) {
  const { metafile } = await build({ ...OPTIONS, entryPoints: names, bundle: false });
  /** @type {Map<string, string>} */
  const known = new Map();
  for (const { entryPoint = "", exports } of Object.values(metafile.outputs)) {
    for (const name of exports) {
      const other = known.get(name);
      if (other) throw new Error(`${other} and ${entryPoint} both export ${name}, and views import both of them: rename one.`);
      known.set(name, entryPoint);
    }
  }
}

/** @param {Entry} page @param {Set<string>} start @param {string[]} views */
async function buildViews(page, start, views) {
  /** What they import of the start. @type {Set<string>} */
  const used = new Set();
  const { outputFiles } = await build({
    ...OPTIONS,
    entryPoints: views,
    outdir: join(CANVAS, page.folder),
    splitting: true,
    plugins: [
      imports((name) => {
        start.has(name) && used.add(name);
        return start.has(name) ? outside(bundleName(page)) : isLibrary(name) ? outside(name) : undefined;
      }),
    ],
  });
  return { outputFiles, used: [...used].sort() };
}

/** @param {Entry} page */
const bundleName = ({ start, folder }) => folder + basename(start);

/** The start, which exports all that views import of it (rule 2). @param {Entry} page @param {Set<string>} start @param {string[]} used */
async function buildStart(page, start, used) {
  await checkNames(used);
  const source = [`import "./${page.start}";`, ...used.map((name) => `export * from "./${name}";`)];
  const { outputFiles = [] } = await build({
    ...OPTIONS,
    stdin: { contents: source.join("\n"), resolveDir: CANVAS, sourcefile: "start" },
    outdir: undefined,
    outfile: join(CANVAS, bundleName(page)),
    plugins: [imports((name) => (start.has(name) ? undefined : outside(isLibrary(name) ? name : page.folder + name)))],
  });
  return outputFiles;
}

/** Addresses of files outside a bundle, as seen from it. @param {string} name @param {string} text */
function linked(name, text) {
  const up = dirname(name) === "." ? "./" : "../".repeat(name.split("/").length - 1);
  return text.replaceAll(/(["'`])outside:/g, `$1${up}`);
}

/** @param {string} name */
async function sheet(name) {
  const { code } = await transform(await readFile(join(CANVAS, name), "utf8"), { loader: "css", minify: true, charset: "utf8" });
  return code.trim();
}

/** A page with its style sheets in it; the server puts the nonce of each answer there. @param {string} name */
async function withSheets(name) {
  const page = await readFile(join(CANVAS, name), "utf8");
  const [links] = SHEETS.exec(page) ?? [""];
  const sheets = [...links.matchAll(/\{assets\}\/([^"]+)"/g)].map(([, name]) => sheet(name));
  return page.replace(links, `  <style nonce="{nonce}">${(await Promise.all(sheets)).join("")}</style>\n`).replaceAll(/\n\s*/g, "\n");
}

/** The frame of HTML programs. */
async function program() {
  const { outputFiles } = await build({ ...OPTIONS, entryPoints: [PROGRAM], format: "iife" });
  return `<!doctype html><meta charset="utf-8"><title>Program</title><script>${outputFiles[0].text.trim()}</script>\n`;
}

/** The view in an MCP host. */
async function hostView() {
  const { outputFiles } = await build({ ...OPTIONS, entryPoints: [HOST.start], format: "iife" });
  const page = (await withSheets(HOST.html)).replace(' nonce="{nonce}"', "");
  return page.replace("{script}", () => outputFiles[0].text.trim());
}

/** The names and contents of all sources (rule 4); tests/server/canvas/test_built.py computes the same. */
async function digest() {
  const found = (await readdir(CANVAS, { recursive: true })).map((name) => name.replaceAll("\\", "/"));
  const names = found.filter((name) => /\.(html|css|js|svg)$/.test(name) && !/^(built|vendor)\//.test(name));
  const hash = createHash("sha256").update(await readFile(join(ROOT, "page.mjs")));
  for (const name of names.sort()) hash.update(`\n${name}\n`).update(await readFile(join(CANVAS, name)));
  return hash.digest("hex");
}

/** @param {string} folder */
async function bundle(folder) {
  const { outputFiles: workers } = await build({ ...OPTIONS, entryPoints: WORKERS });
  /** @type {Map<string, string>} */
  const files = new Map([["program.html", await program()], ["host.html", await hostView()], ["SOURCES", `${await digest()}\n`]]);
  const built = [...workers];
  for (const page of PAGES) {
    const { start, views } = await modules(page.start);
    const { outputFiles, used } = await buildViews(page, start, views);
    built.push(...outputFiles, ...(await buildStart(page, start, used)));
    files.set(basename(page.html), await withSheets(page.html));
  }
  for (const { path, text } of built) {
    const name = relative(CANVAS, path);
    files.set(name, linked(name, text));
  }
  for (const name of LATER) files.set(name, await sheet(name));
  await rm(folder, { recursive: true, force: true });
  for (const [name, text] of files) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  for (const name of COPIED) await copyFile(join(CANVAS, name), join(folder, name));
}

await bundle(process.argv[2]);
