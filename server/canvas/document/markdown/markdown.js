// @ts-check
/**
 * The rendered view of a Markdown text. A change renders only the blocks that it touches; blocks far from what is seen are
 * rendered when they come near, or when there is nothing else to do.
 */

import { firstIndex } from "../../binary_search.js";
import { h } from "../../dom.js";
import { whenIdle } from "../../loading.js";
import { stepsTo } from "../../state/text.js";
import { NO_BLOCKS, updateBlocks } from "./markdown_blocks.js";
import { renderBlock } from "./markdown_render.js";
import { morphChildren } from "./morph.js";
import { sanitize } from "./sanitize.js";
import { visibleText } from "./visible_text.js";

export { blocksOf, formatMarkdown } from "./formatted.js";
export { outlineOf } from "./outline.js";

/** @typedef {import("./markdown_render.js").RenderedBlock} RenderedBlock */

/**
 * A block as it is shown.
 * @typedef {object} Item
 * @property {HTMLElement} element
 * @property {RenderedBlock|null} rendered  null until it comes near
 *
 * Blocks that are laid out together, or not at all while they are far away.
 * @typedef {{element: HTMLElement, items: Item[]}} Chunk
 *
 * @typedef {object} MarkdownView
 * @property {HTMLElement} element
 * @property {(text: string) => void} update
 * @property {() => string} text  what is shown
 * @property {(node: Node) => {item: Item, start: number}|null} blockOf  the block that holds a node, and where it starts
 * @property {(start: number, end: number) => {item: Item, start: number}[]} blocksIn  the blocks of a range
 * @property {() => void} renderAll  shows all of the text now
 * @property {() => void} refresh  shows again what names something outside of the text, or has colours
 * @property {() => void} destroy
 */

/** A chunk of so many blocks is full. */
const FULL = 48;

/** How far from what is seen blocks are rendered, so that scrolling finds them ready. */
const NEAR = "1200px";

/** So many characters are parsed in one go; a longer text is shown over several frames. */
const STEP = 100_000;

/** A text that grows by little waits for so many times the time that showing it took: a block of 100 KB is slow to parse. */
const REST = 2;
const LITTLE = 2_000;

/** Milliseconds that a frame must have to spare for the blocks of a chunk. */
const SPARE = 8;

/** Chunks that were never laid out are about this high, in pixels for each character and each block. */
const HEIGHT = { character: 0.3, block: 34 };

/**
 * @param {object} [options]
 * @param {() => void} [options.onRender]  called when blocks were rendered without an update
 * @param {(range: {start: number, end: number}) => void} [options.onShow]  called when a range of the text is new
 * @param {(made: DocumentFragment, old: Element|null) => void} [options.dress]  gives what was sanitized its links, pictures, colours, formulas and diagrams; its visible text stays
 * @returns {MarkdownView}
 */
export function createMarkdownView({ onRender = () => {}, onShow = () => {}, dress = () => {} } = {}) {
  const element = h("div", { class: "document-markdown prose prose-document" });
  let blocks = NO_BLOCKS;
  /** @type {Chunk[]} */
  let chunks = [];
  /** @type {Item[]} */
  let items = [];
  /** @type {WeakMap<Element, Item>} */
  const itemOf = new WeakMap();
  /** @type {WeakMap<Element, Chunk>} */
  const chunkOf = new WeakMap();
  /** @type {Set<Chunk>} */
  const near = new Set();
  const observer = "IntersectionObserver" in globalThis ? new IntersectionObserver(comeNear, { rootMargin: NEAR }) : null;
  let idle = 0;
  let wanted = "";
  let restsUntil = 0;

  return {
    element,
    update,
    text: () => blocks.text,
    blockOf,
    blocksIn,
    renderAll() {
      show(wanted);
      chunks.forEach(render);
    },
    refresh() {
      for (const item of items.filter(({ element }) => element.querySelector("[data-to], [data-language], .document-diagram, .document-math, .document-formula"))) {
        item.rendered && morphChildren(item.element, toFragment(item.rendered.html, item.element));
      }
      onRender();
    },
    destroy: () => {
      observer?.disconnect();
      cancelIdle(idle);
    },
  };

  /** @param {string} html @param {Element|null} old  what is shown in its place, if it is one block */
  function toFragment(html, old) {
    const fragment = sanitize(html);
    dress(fragment, old);
    return fragment;
  }

  /** @param {string} text */
  function update(text) {
    wanted = text;
    const begun = performance.now();
    const grows = text.startsWith(blocks.text);
    if (!grows || begun >= restsUntil) {
      const little = text.length - blocks.text.length < LITTLE;
      show(grows ? text.slice(0, blocks.text.length + STEP) : text);
      restsUntil = little ? performance.now() + REST * (performance.now() - begun) : 0;
    }
    if (blocks.text !== wanted) {
      schedule(() => wanted === text && update(text));
    }
  }

  /** Changes that stand apart are shown one by one, so that nothing happens to what stands between. @param {string} text */
  function show(text) {
    const fresh = stepsTo(blocks.text, text).map(showChange);
    near.forEach(render);
    fresh.forEach(onShow);
    renderWhenIdle();
  }

  /** @param {string} text @returns {{start: number, end: number}}  what of it is new */
  function showChange(text) {
    const change = updateBlocks(blocks, text);
    blocks = change.blocks;
    const paired = Math.min(change.removed, change.added);
    for (let index = change.from; index < change.from + paired; index++) {
      if (items[index].rendered) {
        renderItem(items[index], index);
      }
    }
    remove(change.from + paired, change.removed - paired);
    insert(change.from + paired, change.added - paired);
    if (change.labels.size > 0) {
      items.forEach((item, index) => refersTo(item, change.labels) && renderItem(item, index));
    }
    estimateHeights(change.from, change.added);
    return change.fresh;
  }

  /** @param {Item} item @param {ReadonlySet<string>} labels */
  function refersTo(item, labels) {
    return item.rendered !== null && [...item.rendered.labels].some((label) => labels.has(label));
  }

  /** @param {number} from @param {number} count */
  function remove(from, count) {
    for (const item of items.splice(from, count)) {
      const chunk = chunkAround(item);
      chunk.items.splice(chunk.items.indexOf(item), 1);
      item.element.remove();
      if (chunk.items.length === 0) {
        chunks.splice(chunks.indexOf(chunk), 1);
        near.delete(chunk);
        observer?.unobserve(chunk.element);
        chunk.element.remove();
      }
    }
  }

  /** @param {Item} item */
  function chunkAround(item) {
    return /** @type {Chunk} */ (chunkOf.get(/** @type {Element} */ (item.element.parentElement)));
  }

  /** @param {number} from @param {number} count */
  function insert(from, count) {
    for (let index = from; index < from + count; index++) {
      /** @type {Item} */
      const item = { element: h("div", { class: "document-block", dir: "auto" }), rendered: null };
      itemOf.set(item.element, item);
      const chunk = chunkAfter(items[index - 1], count <= FULL);
      const at = index === 0 ? 0 : chunk.items.indexOf(items[index - 1]) + 1;
      chunk.element.insertBefore(item.element, chunk.items[at]?.element ?? null);
      chunk.items.splice(at, 0, item);
      items.splice(index, 0, item);
    }
  }

  /**
   * The chunk for a block behind another one: the same one unless it is full there.
   * @param {Item|undefined} previous
   * @param {boolean} few
   */
  function chunkAfter(previous, few) {
    const chunk = previous ? chunkAround(previous) : chunks[0];
    if (chunk && (chunk.items.length < FULL || chunk.items[chunk.items.length - 1] !== previous)) {
      return chunk;
    }
    return newChunk(chunk, few);
  }

  /**
   * A few blocks beside what is near are near, too; of many, the observer says so.
   * @param {Chunk|undefined} previous
   * @param {boolean} few
   */
  function newChunk(previous, few) {
    /** @type {Chunk} */
    const chunk = { element: h("div", { class: "document-chunk" }), items: [] };
    chunkOf.set(chunk.element, chunk);
    chunks.splice(previous ? chunks.indexOf(previous) + 1 : 0, 0, chunk);
    element.insertBefore(chunk.element, previous ? previous.element.nextSibling : element.firstChild);
    observer?.observe(chunk.element);
    if (!observer || !previous || (few && near.has(previous))) {
      near.add(chunk);
    }
    return chunk;
  }

  /** @param {number} from @param {number} count */
  function estimateHeights(from, count) {
    for (const chunk of new Set(items.slice(from, from + count).map(chunkAround))) {
      const first = items.indexOf(chunk.items[0]);
      const end = first + chunk.items.length;
      const characters = (blocks.starts[end] ?? blocks.text.length) - blocks.starts[first];
      const height = Math.round(characters * HEIGHT.character + (end - first) * HEIGHT.block);
      chunk.element.style.setProperty("contain-intrinsic-block-size", `auto ${height}px`);
    }
  }

  /** @param {IntersectionObserverEntry[]} entries */
  function comeNear(entries) {
    for (const { target, isIntersecting } of entries) {
      const chunk = /** @type {Chunk} */ (chunkOf.get(target));
      isIntersecting ? near.add(chunk) : near.delete(chunk);
    }
    near.forEach(render);
    onRender();
  }

  /** Renders what of a chunk is not rendered yet, and has all of it sanitized at once. @param {Chunk} chunk */
  function render(chunk) {
    const waiting = chunk.items.filter((item) => !item.rendered);
    if (waiting.length === 0) {
      return;
    }
    const first = items.indexOf(chunk.items[0]);
    const rendered = waiting.map((item) => renderedAt(first + chunk.items.indexOf(item)));
    const holders = toFragment(rendered.map(({ html }) => `<div>${html}</div>`).join(""), null).children;
    [...holders].forEach((holder, at) => {
      waiting[at].element.replaceChildren(...holder.childNodes);
      settle(waiting[at], rendered[at]);
    });
  }

  /** @param {Item} item @param {number} index */
  function renderItem(item, index) {
    const rendered = renderedAt(index);
    if (item.rendered?.html !== rendered.html) {
      morphChildren(item.element, toFragment(rendered.html, item.element));
    }
    settle(item, rendered);
  }

  /** @param {number} index */
  function renderedAt(index) {
    const start = blocks.starts[index];
    return renderBlock(blocks.text.slice(start, start + blocks.list[index].length), blocks.definitions);
  }

  /** Text that the sanitizer has altered has no place but that of the whole block. @param {Item} item @param {RenderedBlock} rendered */
  function settle(item, rendered) {
    const text = visibleText(item.element);
    item.rendered = text === rendered.text ? rendered : withoutPlaces(rendered, text);
  }

  function renderWhenIdle() {
    cancelIdle(idle);
    idle = whenIdle(renderOne);
  }

  /** @param {{timeRemaining: () => number}} [deadline] */
  function renderOne(deadline) {
    const waiting = chunks.find((chunk) => chunk.items.some((item) => !item.rendered));
    if (!waiting) {
      return;
    }
    if (!deadline || deadline.timeRemaining() > SPARE) {
      render(waiting);
      onRender();
    }
    idle = whenIdle(renderOne);
  }

  /** @param {Node} node */
  function blockOf(node) {
    const holder = (node instanceof Element ? node : node.parentElement)?.closest(".document-block");
    const item = holder && itemOf.get(holder);
    return item ? { item, start: blocks.starts[items.indexOf(item)] } : null;
  }

  /** @param {number} start @param {number} end */
  function blocksIn(start, end) {
    const found = [];
    const behind = firstIndex(items.length, (index) => blocks.starts[index] > Math.max(start, end));
    for (let index = behind - 1; index >= 0; index--) {
      const from = blocks.starts[index];
      if (from < end || (from === start && start === end)) {
        found.unshift({ item: items[index], start: from });
      }
      if (from <= start) {
        break;
      }
    }
    return found;
  }
}

/** @param {RenderedBlock} rendered @param {string} text @returns {RenderedBlock} */
function withoutPlaces(rendered, text) {
  const [start, end] = [0, rendered.length];
  return { ...rendered, text, runs: [{ at: 0, length: text.length, start, end }], markup: [], leaves: [{ start, end }] };
}

/** @param {() => void} run */
const schedule = (run) => ("requestAnimationFrame" in globalThis ? requestAnimationFrame(run) : setTimeout(run));

/** @param {any} handle */
const cancelIdle = (handle) => ("cancelIdleCallback" in globalThis ? cancelIdleCallback(handle) : clearTimeout(handle));
