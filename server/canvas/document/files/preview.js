// @ts-check
/** What is no text: images, files, data; and HTML and SVG as they look. Nothing here runs scripts of an artifact. */

import { button } from "../../controls.js";
import { h } from "../../dom.js";
import { icon } from "../../icons.js";
import { frameDocument } from "../../policy.js";
import { TEXT, say } from "../../strings.js";
import { formatCount, plainName, size } from "../../words.js";
import { linkAddress } from "./addresses.js";

/** A larger image is a download only. In bytes. */
const LARGEST_IMAGE = 20_000_000;

const IMAGE = /^image\/(png|jpe?g|gif|webp|avif|bmp|svg\+xml)$/i;

/** Rows of a table and members of a list; the rest is shown on request. */
const AT_ONCE = 200;

/**
 * @param {Part} part
 * @returns {HTMLElement}
 */
export function previewOf(part) {
  if ("data" in part) {
    return dataView(part.data);
  }
  if ("url" in part) {
    return fileLink(part.filename || part.url, part.mediaType ?? "", part.url);
  }
  if ("raw" in part) {
    return fileView(part);
  }
  return h("pre", { class: "document-data" }, "text" in part ? part.text : JSON.stringify(part));
}

/** A page as it looks: without scripts, forms, or an origin. @param {string} html @param {string} name */
export function htmlPreview(html, name) {
  return h("iframe", { class: "document-frame", sandbox: "", srcdoc: frameDocument(html), title: say(TEXT.previewOf, { name: plainName(name) }), referrerpolicy: "no-referrer" });
}

/** An SVG as an image, in which nothing runs and nothing is loaded. @param {string} svg @param {string} name */
export function svgPreview(svg, name) {
  return imageView(svgBlob(svg), name);
}

/** @param {string} svg */
const svgBlob = (svg) => new Blob([svg], { type: "image/svg+xml" });

/** What a document of the conversation looks like as a picture; null if it is none. @param {ArtifactView} artifact @param {string} file  of its files */
export function pictureOf({ name, text, mediaType, others }, file) {
  if (text !== null) {
    return /\.svg$/i.test(name) || mediaType === "image/svg+xml" ? svgBlob(text) : null;
  }
  const pictures = others.filter((part) => "raw" in part && IMAGE.test(part.mediaType ?? ""));
  const part = /** @type {FilePart|undefined} */ (pictures.find((each) => "filename" in each && each.filename === file) ?? pictures[0]);
  return part && part.raw.length < LARGEST_IMAGE ? new Blob([bytesOf(part.raw)], { type: part.mediaType }) : null;
}

/** @param {FilePart} part */
function fileView({ raw, filename = "file", mediaType = "application/octet-stream" }) {
  const blob = new Blob([bytesOf(raw)], { type: mediaType });
  const download = fileLink(filename, mediaType, blob);
  return IMAGE.test(mediaType) && blob.size <= LARGEST_IMAGE
    ? h("figure", { class: "document-figure" }, imageView(blob, filename), h("figcaption", {}, download))
    : download;
}

/** @param {Blob} blob @param {string} name */
function imageView(blob, name) {
  const address = URL.createObjectURL(blob);
  const free = () => URL.revokeObjectURL(address);
  const onError = () => (free(), image.replaceWith(h("p", { class: "muted", role: "note", "aria-label": plainName(name) }, TEXT.pictureBroken)));
  const image = h("img", { class: "document-image", src: address, alt: plainName(name), onload: free, onerror: onError });
  return image;
}

/** @param {string} name @param {string} mediaType @param {Blob|string} content  a string is an address */
function fileLink(name, mediaType, content) {
  const bytes = typeof content === "string" ? "" : size(content.size);
  const about = h("span", { class: "muted" }, [mediaType, bytes].filter(Boolean).join(", "));
  const label = h("bdi", { class: "document-file-name" }, plainName(name));
  if (typeof content !== "string") {
    const save = () => download(content, name);
    return button([label, about], save, { sign: "download", class: "document-file" });
  }
  return linkAddress(content)
    ? h("a", { class: "document-file", href: content, target: "_blank", rel: "noopener noreferrer" }, icon("open"), label, about)
    : h("p", { class: "document-file" }, label, about);
}

/** @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: plainName(name) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** @param {string} base64 */
function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

// --- data

/**
 * @typedef {object} Watch
 * @property {(element: HTMLElement, path: readonly string[]) => void} [onValue]  a value is shown that has no members
 * @property {Map<string, boolean>} [opened]  what the user has opened or closed, by its path
 */

/** @param {any} data @param {Watch} [watch] @param {readonly string[]} [path]  of the data @returns {HTMLElement} */
export function dataView(data, watch = {}, path = []) {
  return h("div", { class: "document-data" }, isTable(data) ? table(data, watch, path) : tree(data, watch, path));
}

/** An array of flat objects is a table. @param {any} data */
function isTable(data) {
  const isRow = (/** @type {any} */ row) => isObject(row) && Object.values(row).every(isScalar);
  return Array.isArray(data) && data.length > 0 && data.every(isRow);
}

/** @param {any} value */
const isScalar = (value) => typeof value !== "object" || value === null;

/** @param {any} value */
const isObject = (value) => !isScalar(value) && !Array.isArray(value);

/** @param {Record<string, any>[]} rows @param {Watch} watch @param {readonly string[]} path */
function table(rows, { onValue }, path) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (/** @type {any} */ value) => h("td", { dir: "auto", class: typeof value === "number" ? "number" : "" }, value === undefined ? "" : plain(value));
  const body = h("tbody");
  const line = (/** @type {Record<string, any>} */ row, /** @type {number} */ at) => {
    const cells = columns.map((name) => {
      const has = Object.hasOwn(row, name);
      const made = cell(has ? row[name] : undefined);
      has && onValue?.(made, [...path, String(at), name]);
      return made;
    });
    return h("tr", {}, cells);
  };
  const head = h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, h("bdi", {}, name)))));
  appendSome(body, rows, line);
  return h("div", { class: "document-table", tabIndex: 0, role: "region", "aria-label": TEXT.table }, h("table", {}, head, body));
}

/** @param {any} value @param {Watch} watch @param {readonly string[]} path @returns {HTMLElement} */
function tree(value, watch, path) {
  if (isScalar(value)) {
    return scalar("p", value, watch, path);
  }
  const list = h("ul", { class: "document-tree" });
  appendSome(list, Object.entries(value), ([name, member]) => h("li", {}, branch(name, member, watch, [...path, name])));
  return list;
}

/** @param {"p"|"span"} tag @param {any} value @param {Watch} watch @param {readonly string[]} path */
function scalar(tag, value, { onValue }, path) {
  const made = h(tag, { class: `document-value document-value-${value === null ? "null" : typeof value}` }, JSON.stringify(value));
  onValue?.(made, path);
  return made;
}

/** What is nested is made when it is opened. @param {string} name @param {any} value @param {Watch} watch @param {readonly string[]} path */
function branch(name, value, watch, path) {
  const key = h("span", { class: "document-key" }, name);
  if (isScalar(value)) {
    return [key, scalar("span", value, watch, path)];
  }
  const count = Object.keys(value).length;
  const many = formatCount(count, Array.isArray(value) ? "item" : "field");
  const id = JSON.stringify(path);
  const onToggle = () => {
    watch.opened?.set(id, details.open);
    details.children.length === 1 && details.append(dataView(value, watch, path));
  };
  const details = h("details", { ontoggle: onToggle });
  details.append(h("summary", {}, key, h("span", { class: "muted" }, many)));
  details.open = watch.opened?.get(id) ?? (count > 0 && count <= 5);
  return details;
}

/**
 * Appends the elements of the first members, and a button that appends more.
 * @template T
 * @param {HTMLElement} list
 * @param {T[]} members
 * @param {(member: T, at: number) => HTMLElement} element
 */
function appendSome(list, members, element, from = 0) {
  list.append(...members.slice(from, from + AT_ONCE).map((member, at) => element(member, from + at)));
  const rest = members.length - from - AT_ONCE;
  if (rest > 0) {
    const tag = list.tagName === "UL" ? "li" : "tr";
    const words = say(TEXT.showNext, { next: Math.min(rest, AT_ONCE), rest });
    const more = button(words, () => (row.remove(), appendSome(list, members, element, from + AT_ONCE)), { class: "link-button" });
    const row = h(tag, {}, tag === "li" ? more : h("td", { colSpan: 99 }, more));
    list.append(row);
  }
}

/** @param {any} value */
const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
