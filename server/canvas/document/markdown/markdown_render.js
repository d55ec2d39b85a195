// @ts-check
/** A block of Markdown as HTML, with the places in the source that its visible text comes from. Pure. */

import { firstIndex } from "../../binary_search.js";
import { imageAddress, localAddress } from "../files/addresses.js";
import { noteLabel } from "./markdown_extras.js";
import { normalize, parseBlocks, parseInline, sourceOffset } from "./markdown_parser.js";

/**
 * Visible text and the source that says it: character by character if both are equally long, else only as a whole.
 * @typedef {{at: number, length: number, start: number, end: number}} Run
 *
 * What is marked up: a selection may lie within `innerStart` and `innerEnd`, or hold all of it.
 * @typedef {{start: number, innerStart: number, innerEnd: number, end: number}} Markup
 *
 * @typedef {object} RenderedBlock
 * @property {number} length  of the source
 * @property {string} html
 * @property {string} text  all of its visible text, as `textContent` has it
 * @property {readonly Run[]} runs  in the order of the text; offsets of the source count from the block's start
 * @property {readonly Markup[]} markup
 * @property {readonly {start: number, end: number}[]} leaves  the source of each paragraph and heading
 * @property {readonly number[]} tasks  where the box of each task is, as `[ ]`
 * @property {ReadonlySet<string>} labels  the labels of links that it depends on
 */

/** @typedef {import("./markdown_parser.js").Token} Token */
/** @typedef {import("./markdown_parser.js").Piece} Piece */

/**
 * @param {string} source  of one top-level block
 * @param {ReadonlyMap<string, {href: string, title: string}>} definitions
 * @returns {RenderedBlock}
 */
export function renderBlock(source, definitions) {
  const writer = createWriter(source, definitions);
  for (const token of parseBlocks(normalize(source))) {
    writer.block(token);
  }
  return writer.finish();
}

/** @param {string} text */
function escapeHtml(text) {
  return text.replace(/[&<>"\r]/g, (char) => ESCAPES[char]);
}

/** @type {Record<string, string>} */
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;" };

/** @param {string} source @param {ReadonlyMap<string, any>} definitions */
function createWriter(source, definitions) {
  /** @type {string[]} */
  const html = [];
  /** @type {string[]} */
  const texts = [];
  /** @type {Run[]} */
  const runs = [];
  /** @type {Markup[]} */
  const markup = [];
  /** @type {{start: number, end: number}[]} */
  const leaves = [];
  /** @type {number[]} */
  const tasks = [];
  /** @type {Set<string>} */
  const labels = new Set();
  const references = recordLabels(definitions, labels);
  const original = originalOffsets(source);
  const hasCrlf = source.includes("\r\n");
  let length = 0;
  /** @type {Token[]} */
  const open = [];

  return { block, finish };

  function finish() {
    return { length: source.length, html: html.join(""), text: texts.join(""), runs, markup, leaves, tasks, labels };
  }

  /** @param {Token} token */
  function block(token) {
    if (token.nesting === 1) {
      open.push(token);
    } else if (token.nesting === -1) {
      close(open.pop(), token);
      return;
    }
    if (token.type === "inline") {
      const cell = open[open.length - 1].tag === "td" || open[open.length - 1].tag === "th";
      cell || leaves.push(range(token.meta.pieces, 0, token.content.length));
      inline(token);
    } else if (token.type === "fence" || token.type === "code_block") {
      code(token);
    } else if (token.type === "math_block") {
      formula(token);
    } else if (token.type === "hr") {
      html.push("<hr>");
    } else if (token.type === "note_open") {
      html.push(`<div class="document-note" data-note="${escapeHtml(token.info)}">`);
    } else if (token.nesting === 1 && !token.hidden) {
      html.push(opening(token));
    }
  }

  /** @param {Token} opened @param {Token} token */
  function close(opened, token) {
    if (!token.hidden) {
      html.push(`</${token.tag}>`);
    }
    if (opened?.meta?.start !== undefined) {
      mark(opened.meta.start, opened.meta.start, opened.meta.end, opened.meta.end);
    }
  }

  /** @param {Token} token */
  function code(token) {
    const { pieces, start, end } = token.meta;
    const language = token.info?.trim().split(/\s+/)[0] ?? "";
    const shown = token.content.replace(/\n$/, "");
    const named = language === "" ? "" : ` data-language="${escapeHtml(language)}"`;
    html.push(`<pre><code${named}${/^mermaid$/i.test(language) && isClosed(token) ? " data-complete" : ""}>`);
    textOf(shown, pieces, 0);
    html.push("</code></pre>");
    mark(start, sourceOffset(pieces, 0), sourceOffset(pieces, shown.length, true), end);
  }

  /** Whether the last line of a fence is there, which closes it. @param {Token} token */
  function isClosed({ markup, meta: { end } }) {
    const last = source.slice(0, original(end)).split(/\r\n?|\n/).at(-1) ?? "";
    return last.replace(/^[ \t>]+/, "").startsWith(markup) && last.trimEnd().endsWith(markup);
  }

  /** @param {Token} token */
  function formula({ content, meta: { pieces, start, end } }) {
    html.push('<div class="document-formula">');
    textOf(content, pieces, 0);
    html.push("</div>");
    mark(start, sourceOffset(pieces, 0), sourceOffset(pieces, content.length, true), end);
  }

  /** @param {Token} token */
  function inline(token) {
    const { pieces } = token.meta;
    const children = parseInline(token.content, references);
    /** @type {Token[]} */
    const opened = [];
    let from = task(token, children[0]);
    for (const child of children) {
      const { start, end } = child.meta;
      if (child.nesting === 1) {
        opened.push(child);
        html.push(`<${child.tag}${attributesOf(child, "href", "title")}>`);
      } else if (child.nesting === -1) {
        html.push(`</${child.tag}>`);
        const { meta } = opened.pop() ?? child;
        inlineMark(pieces, meta.start, meta.end, start, end);
      } else if (child.type === "text" && end - start === child.content.length) {
        textOf(child.content.slice(from), pieces, start + from);
      } else if (child.type === "code_inline") {
        inlineCode(child, pieces);
      } else if (child.type === "math_inline") {
        inlineFormula(child, pieces);
      } else if (child.type === "softbreak") {
        whole("\n", pieces, start, end);
      } else if (child.type === "hardbreak") {
        html.push("<br>");
      } else if (child.type === "note_reference") {
        noteReference(child, pieces);
      } else if (child.type === "image") {
        image(child, pieces);
      } else {
        whole(child.content, pieces, start, end);
      }
      from = 0;
    }
  }

  /** The box of a task in a list; how many characters it stands for. @param {Token} token @param {Token} [first] */
  function task(token, first) {
    const item = open[open.length - 2];
    const box = item?.type === "list_item_open" && first?.type === "text" && /^\[([ xX])\][ \t]/.exec(first.content);
    if (!box || item.hasTask || token.map[0] !== item.map[0]) {
      return 0;
    }
    item.hasTask = true;
    const done = box[1] !== " ";
    tasks.push(original(sourceOffset(token.meta.pieces, 0)));
    html.push(`<span class="document-task" role="checkbox" aria-checked="${done}" aria-label="${done ? "Done" : "To do"}" tabindex="0"></span>`);
    return box[0].length;
  }

  /** @param {Token} child @param {Piece[]} pieces */
  function inlineCode(child, pieces) {
    const { start, end } = child.meta;
    const ticks = child.markup.length;
    const inner = (end - start - 2 * ticks - child.content.length) / 2;
    const from = start + ticks + inner;
    html.push("<code>");
    textOf(child.content, pieces, from);
    html.push("</code>");
    inlineMark(pieces, start, from, from + child.content.length, end);
  }

  /** @param {Token} child @param {Piece[]} pieces */
  function inlineFormula({ content, markup, meta: { start, inner, end } }, pieces) {
    html.push(`<span class="${markup === "$" ? "document-math" : "document-formula"}">`);
    textOf(content, pieces, inner);
    html.push("</span>");
    inlineMark(pieces, start, inner, inner + content.length, end);
  }

  /** @param {Token} child @param {Piece[]} pieces */
  function noteReference(child, pieces) {
    const { start, end } = child.meta;
    html.push(`<sup><a href="#${escapeHtml(noteLabel(child.content))}">`);
    textOf(child.content, pieces, start + 2);
    html.push("</a></sup>");
    inlineMark(pieces, start, start + 2, end - 1, end);
  }

  /** @param {Token} child @param {Piece[]} pieces */
  function image(child, pieces) {
    const address = child.attrGet("src");
    const alt = plainText(child.children);
    const title = attributesOf(child, "title");
    if (imageAddress(address) || localAddress(address)) {
      html.push(`<img src="${escapeHtml(address)}" alt="${escapeHtml(alt)}"${title}>`);
      runs.push({ at: length, length: 0, ...range(pieces, child.meta.start, child.meta.end) });
      return;
    }
    html.push(`<a class="document-image-link" href="${escapeHtml(address)}"${title}>`);
    whole(alt === "" ? address : alt, pieces, child.meta.start, child.meta.end);
    html.push("</a>");
  }

  /** Text that the source says character by character. @param {string} content @param {Piece[]} pieces @param {number} from */
  function textOf(content, pieces, from) {
    let at = from;
    const end = from + content.length;
    for (const piece of pieces) {
      const start = Math.max(at, piece.at);
      const stop = Math.min(end, piece.at + piece.length);
      if (start >= stop) {
        continue;
      }
      if (at < start) {
        whole(content.slice(at - from, start - from), pieces, at, at);
      }
      const inPiece = content.slice(start - from, stop - from);
      if (piece.length === piece.sourceLength) {
        exact(inPiece, piece.source + start - piece.at);
      } else {
        write(inPiece, original(piece.source), original(piece.source + piece.sourceLength));
      }
      at = stop;
    }
    if (at < end) {
      whole(content.slice(at - from), pieces, at, at);
    }
  }

  /** @param {string} content @param {number} start  in the normalized source */
  function exact(content, start) {
    let from = 0;
    for (let at = 1; at <= content.length && hasCrlf; at++) {
      // A line end is one character of the content, and two of the source.
      if (original(start + at) - original(start + at - 1) > 1) {
        write(content.slice(from, at - 1), original(start + from), original(start + at - 1));
        write(content.slice(at - 1, at), original(start + at - 1), original(start + at));
        from = at;
      }
    }
    write(content.slice(from), original(start + from), original(start + content.length));
  }

  /** Text that the source says only as a whole. @param {string} content @param {Piece[]} pieces @param {number} from @param {number} to */
  function whole(content, pieces, from, to) {
    const { start, end } = range(pieces, from, to);
    write(content, start, end);
  }

  /** @param {string} content @param {number} start @param {number} end */
  function write(content, start, end) {
    if (content === "") {
      return;
    }
    html.push(escapeHtml(content));
    texts.push(content);
    const last = runs[runs.length - 1];
    const continues = last && last.length > 0 && last.end === start && last.end - last.start === last.length;
    if (continues && last.at + last.length === length && end - start === content.length) {
      runs[runs.length - 1] = { ...last, length: last.length + content.length, end };
    } else {
      runs.push({ at: length, length: content.length, start, end });
    }
    length += content.length;
  }

  /** @param {Piece[]} pieces @param {number} from @param {number} to */
  function range(pieces, from, to) {
    const start = original(sourceOffset(pieces, from));
    return { start, end: Math.max(start, original(sourceOffset(pieces, to, true))) };
  }

  /** @param {Piece[]} pieces @param {number} from @param {number} innerFrom @param {number} innerTo @param {number} to */
  function inlineMark(pieces, from, innerFrom, innerTo, to) {
    const after = (/** @type {number} */ at) => sourceOffset(pieces, at, true);
    mark(sourceOffset(pieces, from), after(innerFrom), sourceOffset(pieces, innerTo), after(to));
  }

  /** Places in the normalized source. @param {number} start @param {number} innerStart @param {number} innerEnd @param {number} end */
  function mark(start, innerStart, innerEnd, end) {
    markup.push({ start: original(start), innerStart: original(innerStart), innerEnd: original(innerEnd), end: original(end) });
  }
}

/** @param {Token} token */
function opening(token) {
  const alignment = /text-align:(\w+)/.exec(token.attrGet("style") ?? "");
  return `<${token.tag}${attributesOf(token, "start", "open")}${alignment ? ` align="${alignment[1]}"` : ""}>`;
}

/** Those of the named attributes that a token has. @param {Token} token @param {...string} names */
function attributesOf(token, ...names) {
  /** @type {[string, string|number][]} */
  const attributes = token.attrs ?? [];
  return attributes
    .filter(([name]) => names.includes(name))
    .map(([name, value]) => (value === "" ? ` ${name}` : ` ${name}="${escapeHtml(String(value))}"`))
    .join("");
}

/** @param {Token[]} tokens @returns {string} */
function plainText(tokens) {
  return tokens
    .map((token) => (token.children ? plainText(token.children) : token.type.endsWith("break") ? " " : token.content))
    .join("");
}

/**
 * The definitions as markdown-it asks for them; notes the labels.
 * @param {ReadonlyMap<string, any>} definitions
 * @param {Set<string>} labels
 */
function recordLabels(definitions, labels) {
  return new Proxy(/** @type {any} */ ({}), {
    get(_, label) {
      labels.add(String(label));
      return definitions.get(String(label));
    },
  });
}

/**
 * From offsets of the normalized source to those of the source.
 * @param {string} source
 * @returns {(offset: number) => number}
 */
function originalOffsets(source) {
  if (!source.includes("\r\n")) {
    return (offset) => offset;
  }
  const ends = [...source.matchAll(/\r\n/g)].map(({ index }, count) => index - count);
  return (offset) => offset + firstIndex(ends.length, (index) => ends[index] >= offset);
}
