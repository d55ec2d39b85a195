// @ts-check
/**
 * The entries of the log as a list: one line each, which opens to its JSON. New ones are appended while it is shown, those that
 * the log has dropped go, and what stands there already is not made again. The arrow keys move in it.
 */

import { button } from "../controls.js";
import { fill, h } from "../dom.js";
import { previewOf } from "../document/files/preview.js";
import { bodyOf, duration, isShown, lineOf } from "./events.js";
import { asCurl, asPython } from "./programs.js";
import { LOCALES } from "../words.js";
import { TEXT, say } from "../strings.js";

/** @typedef {import("../a2a/log.js").LogEntry} LogEntry */
/** @typedef {{kind: keyof typeof import("./events.js").KINDS, words: string}} Filter */

const AT_END = 24;

/**
 * @param {import("../a2a/log.js").Log} log
 * @param {(text: string, what: string) => void} copy
 */
export function createEventList(log, copy) {
  /** @type {Filter} */
  let filter = { kind: "all", words: "" };
  /** @type {{number: number, element: HTMLElement}[]} */
  let rows = [];
  let last = 0;
  let frame = 0;
  const list = h("ol", { class: "developer-list", onkeydown: onKeydown });
  const empty = h("p", { class: "developer-empty" });
  const count = h("span", { class: "muted", role: "status" });
  const element = h("div", { class: "developer-events" }, list, empty);

  function draw() {
    frame = 0;
    const entries = log.entries();
    const follows = element.scrollTop + element.clientHeight >= element.scrollHeight - AT_END;
    const first = entries[0]?.number ?? Infinity;
    const gone = rows.findIndex((row) => row.number >= first);
    rows.splice(0, gone < 0 ? rows.length : gone).forEach((row) => row.element.remove());
    const added = entries.filter((entry) => entry.number > last && isShown(entry, filter.kind, filter.words));
    const made = added.map((entry) => ({ number: entry.number, element: rowOf(entry, copy) }));
    list.append(...made.map((row) => row.element));
    rows.push(...made);
    last = entries.at(-1)?.number ?? last;
    empty.hidden = rows.length > 0;
    empty.textContent = entries.length ? TEXT.nothingMatches : TEXT.nothingSent;
    count.textContent = rows.length === entries.length ? `${rows.length}` : say(TEXT.someOf, { shown: rows.length, all: entries.length });
    if (follows && made.length) {
      element.scrollTop = element.scrollHeight;
    }
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    const summaries = [...list.querySelectorAll(":scope > li > details > summary")];
    const at = summaries.indexOf(event.target);
    /** @type {Record<string, number>} */
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: summaries.length - 1 };
    if (at >= 0 && event.key in next) {
      event.preventDefault();
      /** @type {HTMLElement|undefined} */ (summaries[Math.max(0, next[event.key])])?.focus();
    }
  }

  return {
    element,
    count,
    /** @param {Partial<Filter>} wished */
    show(wished) {
      filter = { ...filter, ...wished };
      rows = [];
      last = 0;
      fill(list);
      draw();
    },
    start() {
      log.watch(() => (frame ||= requestAnimationFrame(draw)));
      draw();
    },
    stop: () => log.watch(() => {}),
  };
}

/** @param {LogEntry} entry @param {(text: string, what: string) => void} copy @returns {HTMLElement} */
function rowOf(entry, copy) {
  const { type, block, place, summary } = lineOf(entry);
  const cell = (/** @type {string} */ name, /** @type {string} */ text, /** @type {string} */ title = "") =>
    h("span", { class: `truncate developer-${name}`, title: title || null }, text);
  const time = entry.kind === "request" ? new Date(entry.at).toLocaleTimeString(LOCALES) : `+${duration(entry.since)}`;
  const details = h(
    "details",
    { "data-kind": entry.kind, ontoggle: () => details.open && details.children.length === 1 && details.append(contentOf(entry, copy)) },
    h(
      "summary",
      { class: "developer-line" },
      cell("time", time, entry.kind === "request" ? TEXT.whenWasSent : TEXT.sinceRequest),
      cell("method", entry.name),
      cell("type", type),
      cell("block", block, block && TEXT.blockIndex),
      cell("place", place, place && TEXT.epochAndGeneration),
      cell("summary", summary),
    ),
  );
  return h("li", {}, details);
}

/** @param {LogEntry} entry @param {(text: string, what: string) => void} copy */
function contentOf(entry, copy) {
  const { request } = entry;
  const body = bodyOf(entry);
  const copies = (/** @type {string} */ text, /** @type {() => string} */ made) => button(text, () => copy(made(), text.replace("Copy ", "")));
  const sent = h(
    "p",
    { class: "developer-request" },
    h("b", {}, request.method),
    ` ${request.url}`,
    Object.entries(request.headers).map(([name, value]) => [h("br"), `${name}: ${value}`]),
  );
  return h(
    "div",
    { class: "developer-content" },
    h(
      "div",
      { class: "developer-actions" },
      copies(TEXT.copyAsCurl, () => asCurl(request)),
      copies(TEXT.copyAsPython, () => asPython(request)),
      body !== null && copies(TEXT.copyJson, () => JSON.stringify(body, null, 2)),
    ),
    entry.kind === "request" && sent,
    body !== null && (typeof body === "string" ? h("pre", { class: "developer-text" }, body) : previewOf({ data: body })),
  );
}
