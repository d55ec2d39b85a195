// @ts-check
/** A text of the agent, shown as Markdown. Until the libraries are there, and if they cannot be loaded, it is plain text. */

import { fill, h } from "../dom.js";
import { partOf } from "../loading.js";
import { TEXT } from "../strings.js";

/** @typedef {(text: string) => DocumentFragment} Render */

/** More of a reply is not shown: it would take the page longer than anybody waits. In characters. */
const LONGEST = 200_000;

/** A text that is written is rendered for at most this part of the time. */
const SHARE = 0.1;

/** @type {Render|null} */
let render = null;

const markdownPart = partOf(() => Promise.all([import("../vendor/markdown-it.js"), import("../document/markdown/sanitize.js")]));

/** Loads what renders Markdown. A reply can be read without it, so nobody is told that it is missing. @returns {Promise<Render>} */
export async function loadMarkdown() {
  const [{ default: markdownIt }, { sanitize }] = await markdownPart.get(() => {});
  const parser = markdownIt({ html: false, linkify: true });
  return (render ??= (text) => sanitize(parser.render(text)));
}

/**
 * An element that shows a text, and each next one in its place.
 * @returns {{element: HTMLElement, show: (text: string) => void}}
 */
export function createMarkdownText() {
  const element = h("div", { class: "prose" });
  let text = "";
  /** @type {Node|string} */
  let cut = "";
  let due = 0;
  let timer = 0;

  function draw() {
    clearTimeout(timer);
    timer = 0;
    if (!render) {
      fill(element, h("div", { class: "plain", dir: "auto" }, text), cut);
      loadMarkdown().then(draw);
      return;
    }
    const start = performance.now();
    const made = render(text);
    for (const block of made.children) {
      block.setAttribute("dir", "auto");
    }
    fill(element, made, cut);
    due = start + (performance.now() - start) / SHARE;
  }

  return {
    element,
    show(next) {
      text = next.slice(0, LONGEST);
      cut = next.length > LONGEST ? h("p", { class: "muted" }, TEXT.replyCut) : "";
      const wait = due - performance.now();
      if (wait <= 0) {
        draw();
      } else {
        timer ||= setTimeout(draw, wait);
      }
    },
  };
}
