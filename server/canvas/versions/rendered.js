// @ts-check
/**
 * Two versions of a Markdown text as one rendered text: what is new is in `<ins>`, what is gone in `<del>` where it was. What is
 * unchanged and far from a change is folded, and rendered when it is opened.
 */

import { button } from "../controls.js";
import { h } from "../dom.js";
import { wrapText } from "../document/highlight.js";
import { piecesOf } from "../document/markdown/visible_text.js";
import { whenIdle } from "../loading.js";
import { TEXT, say } from "../strings.js";
import { formatCount } from "../words.js";
import { changedWords, foldRows, placesOf, rowsOf } from "./rows.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./rows.js").Change} Change */
/** @typedef {import("../document/markdown/formatted.js").ComparedBlock} Block */
/** A piece of the visible text. @typedef {{node: Element|Text, text: string, at: number}} Piece */

/** A block of which less stays is shown as two: mixed words would not be read. */
const KEPT = 0.3;
/** So many characters of source are rendered at once, the others when the browser is idle; a row is as much work as `ROW` more of them. */
const AT_ONCE = 20_000;
const ROW = 200;

/** What `added` and `removed` make; a text has no such classes. */
const MARKS = ".note-rewritten, .note-suggestion";
const AS_WRITTEN = "pre, .document-math, .document-formula";
const BLOCKS = "p, li, td, th, h1, h2, h3, h4, h5, h6, pre, div, summary";

/**
 * @param {readonly Block[]} old
 * @param {readonly Block[]} next
 * @param {import("./rows.js").Diff} diff
 * @returns {{dom: HTMLElement, destroy: () => void}}
 */
export function createRendered(old, next, diff) {
  const rows = rowsOf(old.map(({ source }) => source), next.map(({ source }) => source), diff);
  const isChanged = (/** @type {Row} */ { old: one, next: other }) => one === null || other === null || old[one].source !== next[other].source || next[other].relinked;
  const dom = h("div", { class: "document-markdown prose prose-document comparison-rendered", tabIndex: 0 });
  const isSame = !rows.some(isChanged);
  const waiting = isSame ? [] : foldRows(rows, isChanged).flatMap(({ rows: some, folded }) => (folded ? { work: ROW, make: () => fold(some) } : some.map((row) => ({ work: workOf(row), make: () => draw(row) }))));
  isSame && dom.append(h("p", { class: "muted" }, TEXT.sameText));
  const told = h("p", { class: "muted" });
  let [made, unseen, idle] = [0, 0, 0];
  more();
  return { dom, destroy: () => ("cancelIdleCallback" in globalThis ? cancelIdleCallback(idle) : clearTimeout(idle)) };

  function more() {
    for (let work = 0; made < waiting.length && (work === 0 || work + waiting[made].work <= AT_ONCE); made++) {
      work += waiting[made].work;
      dom.append(...waiting[made].make());
    }
    idle = made < waiting.length ? whenIdle(more) : 0;
  }

  /** @param {Row} row */
  function workOf({ old: one, next: other }) {
    return ROW + (one === null ? 0 : old[one].source.length) + (other === null ? 0 : next[other].source.length);
  }

  /** @param {Row[]} some @returns {Node[]} */
  function fold(some) {
    const opened = button(say(TEXT.unchanged, { blocks: formatCount(some.length, "paragraph") }), () => {
      const shown = some.flatMap(draw);
      opened.replaceWith(...shown);
      shown[0].tabIndex = -1;
      shown[0].focus({ preventScroll: true });
    }, { class: "comparison-fold", "aria-expanded": "false" });
    return [opened];
  }

  /** @param {Row} row @returns {HTMLElement[]} */
  function draw(row) {
    const is = row.next === null ? null : next[row.next].render();
    if (is && !isChanged(row)) {
      return [is];
    }
    const was = row.old === null ? null : old[row.old].render();
    const shown = was && is ? compared(was, is) : is?.hasChildNodes() ? [added(is)] : was?.hasChildNodes() ? [removed(was)] : [];
    shown.some((each) => each.matches(MARKS) || each.querySelector(MARKS)) || tellUnseen();
    return shown;
  }

  function tellUnseen() {
    told.textContent = say(TEXT.onlyInSource, { blocks: formatCount(++unseen, "paragraph") });
    unseen === 1 && dom.prepend(told);
  }

  /** @param {HTMLElement} was @param {HTMLElement} is @returns {HTMLElement[]} */
  function compared(was, is) {
    [was, is].forEach(joinLines);
    const [before, after] = [piecesIn(was), piecesIn(is)];
    if (before.text === after.text) {
      markForm(was, is);
      return [is];
    }
    const changes = changedWords(before.text, after.text, diff);
    const gone = changes.reduce((sum, { fromA, toA }) => sum + toA - fromA, 0);
    if (before.text.length - gone < KEPT * Math.max(before.text.length, after.text.length)) {
      return [removed(was), added(is)];
    }
    const places = placesOf(after.pieces, changes);
    // From the last on, so that places before stay.
    for (let at = changes.length - 1; at >= 0; at--) {
      const { before: previous, first, end } = places[at];
      markWords(after.pieces.slice(first, end), after.pieces[previous], changes[at], before.text.slice(changes[at].fromA, changes[at].toA));
    }
    markLinks(was, is);
    return [is];
  }
}

/** @param {...(Node|string)} content */
const removed = (...content) => h("del", { class: "note-suggestion" }, ...content);
/** @param {...Node} content */
const added = (...content) => h("ins", { class: "note-rewritten" }, ...content);

/** A line end within a paragraph is read as a blank. @param {Element} root */
function joinLines(root) {
  for (const { node, text } of piecesOf(root)) {
    if (node instanceof Text && text.includes("\n") && !node.parentElement?.closest(AS_WRITTEN)) {
      node.data = text.replaceAll("\n", " ");
    }
  }
}

/** The visible text, in which each paragraph, item and cell is a line. @param {Element} root @returns {{text: string, pieces: Piece[]}} */
function piecesIn(root) {
  let text = "";
  let last = /** @type {Element|null|undefined} */ (null);
  /** @type {Piece[]} */
  const pieces = [];
  for (const { node, text: words } of piecesOf(root)) {
    const around = node.parentElement?.closest(BLOCKS);
    text += last && last !== around ? "\n" : "";
    pieces.push({ node, text: words, at: text.length });
    text += words;
    last = around;
  }
  return { text, pieces };
}

/** @param {Piece[]} pieces  that the change is in @param {Piece} before @param {Change} change @param {string} gone */
function markWords(pieces, before, { fromB, toB }, gone) {
  const touched = pieces.filter(({ text, at }) => text.slice(Math.max(0, fromB - at), toB - at).trim() !== "");
  const marks = touched.map(({ node, text, at }) => {
    const mark = added();
    node instanceof Text ? wrapText(node, Math.max(0, fromB - at), Math.min(text.length, toB - at), mark) : (node.replaceWith(mark), mark.append(node));
    return mark;
  });
  if (gone.trim() === "") {
    return;
  }
  const { node, at } = before;
  if (marks.length > 0) {
    marks[0].before(removed(gone));
  } else if (node instanceof Text) {
    node.splitText(Math.min(Math.max(0, fromB - at), node.length)).before(removed(gone));
  } else {
    node.after(removed(gone));
  }
}

/** Marks what looks otherwise and says the same: a box that was ticked, another link, bold words. @param {Element} was @param {Element} is */
function markForm(was, is) {
  const [olds, news] = [[...was.childNodes], [...is.childNodes]];
  if (olds.length !== news.length) {
    is.replaceChildren(removed(...olds), added(...news));
    return;
  }
  news.forEach((one, at) => {
    const before = olds[at];
    if (one.isEqualNode(before)) {
      return;
    }
    if (one instanceof Element && before instanceof Element && one.cloneNode(false).isEqualNode(before.cloneNode(false))) {
      markForm(before, one);
    } else {
      replace(before, one);
    }
  });
}

/** Marks links with the same words that lead elsewhere. @param {Element} was @param {Element} is */
function markLinks(was, is) {
  const [olds, news] = [[...was.querySelectorAll("a")], [...is.querySelectorAll("a")]];
  olds.length === news.length &&
    news.forEach((one, at) => {
      const isOther = one.textContent === olds[at].textContent && !one.cloneNode(false).isEqualNode(olds[at].cloneNode(false));
      isOther && !one.closest(MARKS) && replace(olds[at], one);
    });
}

/** @param {ChildNode} was @param {ChildNode} is */
function replace(was, is) {
  const mark = added();
  is.replaceWith(removed(was), mark);
  mark.append(is);
}
