// @ts-check
/** The ways to show an artifact, behind one interface, so that the pane knows none of them. Libraries are loaded on demand. */

import { button } from "../controls.js";
import { h, setText } from "../dom.js";
import { partOf, singly } from "../loading.js";
import { TEXT, say } from "../strings.js";
import { plainName } from "../words.js";
import { keepInPlace } from "./anchoring.js";
import { colour } from "./editor/colours.js";
import { diagramPicture, openDiagramMenu, showDiagrams } from "./diagrams/diagrams.js";
import { allDrawn, drawDiagram } from "./diagrams/drawing.js";
import { MOST_NEW, createFade } from "./fading.js";
import { createHighlighter } from "./highlight.js";
import { drawFormulas, formulasLoaded } from "./markdown/formulas.js";
import { createNotes } from "./notes.js";
import { createLinks } from "./markdown/links.js";
import { completePart } from "./markdown/partial.js";
import { SOURCE } from "./markdown/visible_text.js";
import { createOverlay } from "../presence/overlay.js";
import { isTabbed, langOf } from "./files/kinds.js";
import { htmlPreview, previewOf, svgPreview } from "./files/preview.js";
import { createSettling } from "./editor/settling.js";

/** @typedef {import("./markdown/selection.js").Passage} Passage */
/** @typedef {import("./files/kinds.js").Kind} Kind */
/** @typedef {import("./files/kinds.js").Mode} Mode */
/** @typedef {{start: number, end: number}} SourceRange */
/**
 * What the user has typed, and into which artifact: the one that the view showed last.
 * @typedef {{artifactId: string, text: string, changes: any, undone: boolean}} Input
 */

/**
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {HTMLElement} scroller
 * @property {(text: string, artifact: ArtifactView) => void} update
 * @property {(marks: {selection: SourceRange|null, others?: SourceRange[], writing: (SourceRange & {text?: string|null})[], notes?: Note[]}) => void} mark
 * @property {(range: SourceRange) => number|null} heightOf  where the beginning of a passage is on the screen, seen or not
 * @property {(range: SourceRange, how?: "begin"|"found") => void} reveal  scrolls to a passage that is not seen; takes the focus
 *     if the user goes there: to where a section begins, or to what a search has found, which is marked until the next press
 * @property {(marks: import("../presence/roster.js").PersonMark[]) => void} [showPeople]  shows where others are
 * @property {(range: SourceRange) => DOMRect|null} rectOf  where a passage is on the screen; null if it is not seen
 * @property {() => void} deselect
 * @property {() => void} selectAll  of what is shown
 * @property {(readOnly: boolean) => void} setReadOnly
 * @property {() => void} scrollToEnd
 * @property {() => void} destroy
 * @property {(changes: any, text: string) => void} [apply]  makes a change that comes from elsewhere, where it can be typed into
 * @property {() => Passage|null} [selection]  where it can be typed into
 * @property {() => Promise<unknown>} [complete]  shows all of it, drawn
 * @property {() => void} [forget]  what was typed so far can no longer be undone in the view
 *
 * @typedef {object} ViewOptions
 * @property {ArtifactView} artifact
 * @property {string} text
 * @property {Kind} kind
 * @property {boolean} readOnly
 * @property {(passage: Passage|null, adds?: boolean) => void} onSelect  `adds`: to what is selected, with Ctrl or Cmd
 * @property {(input: Input) => void} onInput
 * @property {(range: SourceRange) => void} [onMove]  the user has moved the cursor, where there is one
 * @property {import("./markdown/links.js").Documents} [documents]  of the same conversation
 * @property {(why: string) => void} [onBroken]  the text is not what its kind says
 * @property {(shown: string, change: {start: number, end: number, text: string}) => Promise<unknown>} [onChange]  the user has changed
 *     a place of the text that is shown
 * @property {boolean} [isFramed]  the page is in a frame itself: programs do not run there
 * @property {(error: string) => void} [onFix]  the user wants an error of a program to be fixed
 * @property {(id: string) => void} [onNote]  the mark of a comment or a suggestion is pressed
 * @property {(box: number, text: string) => void} [onTick]  the box of a task is pressed, which is there in the text that is shown
 */

/** While it grows, a preview is drawn at most so often: each time it is another page. In milliseconds. */
const GROWING_MS = 500;

/** How far below the top of the view a section is to which the user goes. In pixels. */
const MARGIN = 24;

/** So many frames later, what is seen after a jump is laid out. */
const LAYOUTS = 4;

const markdownPart = partOf(() => Promise.all([import("./markdown/markdown.js"), import("./markdown/selection.js")]));
const editorPart = partOf(() => import("./editor/editor.js"));
const gridPart = partOf(() => import("./data/grid.js"), { early: false });
const treePart = partOf(() => import("./data/tree.js"), { early: false });
const programPart = partOf(() => import("./program/program.js"), { early: false });

/**
 * @param {Mode} mode
 * @param {ViewOptions} options
 * @param {import("../loading.js").Tell} tell  of what could not be loaded
 * @returns {Promise<View>}
 */
export async function createView(mode, options, tell) {
  const view = await viewIn(mode, options, tell);
  view.element.lang = langOf(options.text);
  return {
    ...view,
    update(text, artifact) {
      view.element.lang = langOf(text);
      view.update(text, artifact);
    },
  };
}

/** @param {Mode} mode @param {ViewOptions} options @param {import("../loading.js").Tell} tell @returns {Promise<View>} */
function viewIn(mode, options, tell) {
  switch (mode) {
    case "read":
      return readView(options, tell);
    case "source":
      return sourceView(options, tell);
    case "preview":
      return Promise.resolve(previewOfKind(options));
    case "grid":
      return gridView(options, tell);
    case "tree":
      return treeView(options, tell);
    case "parts":
      return Promise.resolve(partsView(options));
  }
}

/** @param {ViewOptions} options @param {import("../loading.js").Tell} tell @returns {Promise<View>} */
async function readView({ artifact, text, onSelect, onTick, onNote = () => {}, documents = { all: () => ({}), open() {} } }, tell) {
  const [{ createMarkdownView }, { passageOf, visibleRanges }] = await markdownPart.get(tell);
  const selectionMark = createHighlighter("document-passage");
  const writingMark = createHighlighter("document-writing");
  const foundMark = createHighlighter("document-found");
  /** @type {SourceRange|null} */
  let found = null;
  /** @type {{selection: SourceRange|null, others?: SourceRange[], writing: SourceRange[], notes?: Note[]}} */
  let marks = { selection: null, writing: [] };
  const links = createLinks(documents, () => (markdown.renderAll(), markdown.element));
  const refresh = () => markdown.refresh();
  const dress = (/** @type {DocumentFragment} */ made, /** @type {Element|null} */ old) => {
    links.dress(made);
    colour(made, refresh);
    drawFormulas(made, refresh);
    showDiagrams(made, old, refresh);
  };
  const fade = createFade();
  let isGrowing = artifact.open;
  const onShow = (/** @type {SourceRange} */ { start, end }) => isGrowing && end - start <= MOST_NEW && fade.add(visibleRanges(markdown, start, end));
  const markdown = createMarkdownView({ onRender: remark, onShow, dress });
  const notes = createNotes(markdown, visibleRanges);
  let shownWith = namesOf(documents.all());
  markdown.element.setAttribute("aria-label", plainName(artifact.name));
  const scroller = h("div", { class: "document-scroller", tabIndex: 0 }, markdown.element);
  markdown.element.addEventListener("click", (event) => event.detail > 0 && isSelecting(markdown.element) && event.preventDefault());
  markdown.element.toggleAttribute("data-read-only", !onTick);
  markdown.element.addEventListener("click", ({ target, clientX, clientY }) => {
    if (!tick(target) && !isSelecting(markdown.element) && !links.follow(target)) {
      const note = notes.at(target, clientX, clientY);
      note && onNote(note);
    }
  });
  markdown.element.addEventListener("click", ({ target }) => openMenuOf(target) || selectDrawn(target));
  markdown.element.addEventListener("keydown", (event) => /^[ Enter]+$/.test(event.key) && openMenuOf(event.target) && event.preventDefault());
  markdown.element.addEventListener("keydown", (event) => event.key === "Enter" && links.follow(event.target) && event.preventDefault());
  markdown.element.addEventListener("keydown", (event) => event.key === " " && tick(event.target) && event.preventDefault());
  for (const press of ["pointerdown", "keydown"]) {
    scroller.addEventListener(press, () => found && showFound(null));
  }
  const people = createOverlay(scroller, (start, end) => visibleRanges(markdown, start, end));
  const resizes = new ResizeObserver(people.draw);
  resizes.observe(markdown.element);
  const stop = watchSelection(markdown.element, (range, adds) => onSelect(range && passageOf(markdown, range), adds));
  addEventListener("beforeprint", markdown.renderAll);
  const shownOf = (/** @type {string} */ next, /** @type {ArtifactView} */ { open }) => (open ? completePart(next) : next);
  markdown.update(shownOf(text, artifact));

  /** @param {EventTarget|null} target */
  function tick(target) {
    const box = target instanceof Element && target.matches(".document-task") ? target : null;
    const found = box && markdown.blockOf(box);
    const nth = found && [...found.item.element.querySelectorAll(".document-task")].indexOf(box);
    const place = found?.item.rendered?.tasks[nth ?? -1];
    found && place !== undefined && onTick?.(found.start + place, markdown.text());
    return box !== null;
  }

  /** @param {EventTarget|null} target */
  const openMenuOf = (target) => openDiagramMenu(target, fileStem(artifact.name), () => {
    const range = document.createRange();
    range.selectNode(/** @type {Node} */ (target));
    onSelect(passageOf(markdown, range));
  });

  /** What was rendered again has lost its marks. */
  function remark() {
    const { selection, others = [], writing } = marks;
    notes.draw(marks.notes ?? []);
    selectionMark((selection ? [selection, ...others] : []).flatMap(({ start, end }) => visibleRanges(markdown, start, end)));
    writingMark(writing.flatMap(({ start, end }) => visibleRanges(markdown, start, end)));
    foundMark(found ? visibleRanges(markdown, found.start, found.end) : []);
    people.draw();
  }

  /** @param {SourceRange|null} range */
  function showFound(range) {
    found = range;
    foundMark(range ? visibleRanges(markdown, range.start, range.end) : []);
  }

  /**
   * A block whose text is not rendered yet has at least its own place, and one that the browser has not laid out yet that of
   * its chunk, unless it is not in the page yet.
   * @param {SourceRange} range
   */
  function heightIn({ start, end }) {
    const [found] = visibleRanges(markdown, start, Math.max(end, start + 1));
    const block = markdown.blocksIn(start, Math.max(end, start + 1))[0]?.item.element;
    const placed = [found, block, block?.parentElement].find((each) => each?.getClientRects().length);
    return placed ? placed.getBoundingClientRect().top : null;
  }

  /**
   * Scrolls until a place is so far below the top. Far away heights are estimates, until the browser has laid out what is seen then.
   * @param {SourceRange} range @param {number} below @param {number} again  so many times
   */
  function scrollTo(range, below, again) {
    const height = heightIn(range);
    if (height !== null) {
      scroller.scrollTop += height - scroller.getBoundingClientRect().top - below;
      again > 0 && requestAnimationFrame(() => scrollTo(range, below, again - 1));
    }
  }

  return {
    element: scroller,
    scroller,
    update(next, one) {
      const seen = shownOf(next, one);
      isGrowing = one.open;
      seen === markdown.text() || (found = null);
      seen === markdown.text() || keepInPlace(scroller, markdown.element, () => markdown.update(seen));
      const names = namesOf(documents.all());
      if (names !== shownWith) {
        shownWith = names;
        markdown.refresh();
      }
    },
    mark(next) {
      const none = [marks, next].every((each) => !each.selection && each.writing.length === 0 && !each.notes?.length);
      marks = next;
      none || remark();
    },
    showPeople: people.show,
    rectOf: ({ start, end }) => within(boundsOf(visibleRanges(markdown, start, end).map((range) => range.getBoundingClientRect())), scroller),
    heightOf: (range) => heightIn(range),
    reveal(range, how) {
      const seen = within(boundsOf(visibleRanges(markdown, range.start, range.end).map((each) => each.getBoundingClientRect())), scroller);
      if (how) {
        // What is rendered later would move it.
        markdown.renderAll();
        scroller.focus({ preventScroll: true });
        showFound(how === "found" ? range : null);
      }
      if (how === "begin" || !seen) {
        scrollTo(range, how === "begin" ? MARGIN : scroller.clientHeight / 3, how ? LAYOUTS : 0);
      }
    },
    deselect: () => markdown.element.contains(document.getSelection()?.anchorNode ?? null) && document.getSelection()?.removeAllRanges(),
    selectAll() {
      markdown.renderAll();
      document.getSelection()?.selectAllChildren(markdown.element);
    },
    async complete() {
      markdown.renderAll();
      await Promise.all([allDrawn(), formulasLoaded()]);
      await document.fonts.ready;
    },
    setReadOnly() {},
    scrollToEnd: () => (scroller.scrollTop = scroller.scrollHeight),
    destroy() {
      removeEventListener("beforeprint", markdown.renderAll);
      marks = { selection: null, writing: [] };
      found = null;
      remark();
      stop();
      resizes.disconnect();
      links.end();
      fade.end();
      markdown.destroy();
    },
  };
}

/** @param {ViewOptions} options @param {import("../loading.js").Tell} tell @returns {Promise<View>} */
async function sourceView({ artifact, text, kind, readOnly, onSelect, onInput, onMove, onNote = () => {} }, tell) {
  const { createEditor } = await editorPart.get(tell);
  let { artifactId } = artifact;
  const prose = kind.name === "markdown" || kind.name === "text";
  const label = say(TEXT.sourceOf, { name: plainName(artifact.name) });
  const typed = (/** @type {Omit<Input, "artifactId">} */ input) => onInput({ ...input, artifactId });
  const editor = createEditor({ text, label, language: kind.language, prose, readOnly, onSelect, onInput: typed, onMove });
  editor.element.addEventListener("click", (/** @type {MouseEvent} */ { target }) => {
    const note = target instanceof Element && target.closest("[data-note-id]")?.getAttribute("data-note-id");
    note && editor.selection() === null && onNote(note);
  });
  const rectOf = (/** @type {SourceRange} */ range) => within(boundsOf(editor.coordinates(range)), editor.scroller);
  return {
    ...editor,
    update(next, shown) {
      ({ artifactId } = shown);
      editor.update(next);
    },
    rectOf,
    heightOf: ({ start }) => editor.heightOf(start),
    reveal: (range, how) => (how ? editor.goTo(range) : void (rectOf(range) ?? editor.scrollTo(range))),
  };
}

/**
 * A diagram that is a document. While it grows, what can be drawn of it is seen, and otherwise the last picture.
 * @param {ViewOptions} options
 * @returns {View}
 */
function diagramView({ artifact, text }) {
  const note = h("p", { class: "muted", role: "status" });
  const label = say(TEXT.previewOf, { name: plainName(artifact.name) });
  const element = h("div", { class: "document-scroller document-preview", tabIndex: 0, role: "region", "aria-label": label }, note);
  const openMenuOf = (/** @type {Event} */ { target }) => openDiagramMenu(target, fileStem(artifact.name), null);
  element.addEventListener("click", openMenuOf);
  element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => /^[ Enter]+$/.test(event.key) && openMenuOf(event) && event.preventDefault());
  let [wanted, isOpen, ended] = [text, artifact.open, false];
  const draw = singly(async () => {
    for (let shown; shown !== wanted && !ended; ) {
      shown = wanted;
      show(shown, await drawDiagram(shown));
      isOpen && (await new Promise((resolve) => setTimeout(resolve, GROWING_MS)));
    }
  });
  draw();

  /** @param {string} source @param {import("./diagrams/drawing.js").Drawing} drawing */
  function show(source, drawing) {
    const error = "error" in drawing && !isOpen && source === wanted ? say(TEXT.diagramWrong, drawing) : "";
    setText(note, error);
    "error" in drawing || element.replaceChildren(note, diagramPicture(drawing, source));
  }

  return {
    ...still(element, (next, { open }) => {
      const [isSame, isOver] = [next === wanted, isOpen && !open];
      [wanted, isOpen] = [next, open];
      // What could not be drawn is said at the end.
      isOver ? draw().then(draw) : isSame || draw();
    }),
    destroy: () => (ended = true),
  };
}

/** @param {ViewOptions} options @returns {View} */
function previewView({ artifact, text, kind }) {
  const make = (/** @type {string} */ content) => (kind.name === "svg" ? svgPreview(content, artifact.name) : htmlPreview(content, artifact.name));
  const element = h("div", { class: "document-scroller document-preview", tabIndex: kind.name === "svg" ? 0 : -1 }, make(text));
  let shown = text;
  let wanted = text;
  let timer = 0;
  const draw = () => {
    clearTimeout(timer);
    timer = 0;
    if (wanted !== shown) {
      shown = wanted;
      element.replaceChildren(make(shown));
    }
  };
  /** @param {string} next @param {ArtifactView} artifact */
  function update(next, { open }) {
    wanted = next;
    if (open) {
      timer ||= window.setTimeout(draw, GROWING_MS);
    } else {
      draw();
    }
  }
  return { ...still(element, update), destroy: () => clearTimeout(timer) };
}

/** @param {ViewOptions} options @returns {View} */
function previewOfKind(options) {
  const { kind: { name }, isFramed } = options;
  return name === "diagram" ? diagramView(options) : name === "html" && !isFramed ? programView(options) : previewView(options);
}

/** A page as it looks, and as it runs once the user says so. @param {ViewOptions} options @returns {View} */
function programView(options) {
  const { artifact, onFix } = options;
  let { text } = options;
  const preview = previewView(options);
  const run = button(TEXT.run, start, { sign: "play" });
  const stop = button(TEXT.stop, end, { sign: "stop", hidden: true });
  const note = h("span", { class: "muted", role: "status" }, TEXT.aboutRun);
  const element = h("div", { class: "document-run" }, h("div", { class: "document-run-bar" }, run, stop, note), preview.element);
  /** @type {{element: HTMLElement, destroy: () => void}|null} */
  let program = null;
  let isLeft = false;

  async function start() {
    const { createProgram } = await programPart.get();
    if (!isLeft) {
      program?.destroy();
      const next = createProgram({ text, name: artifact.name, onFix });
      (program?.element ?? preview.element).replaceWith(next.element);
      program = next;
      draw(TEXT.aboutRun);
    }
  }

  function end() {
    program?.destroy();
    program?.element.replaceWith(preview.element);
    program = null;
    draw(TEXT.aboutRun);
    run.focus();
  }

  /** @param {string} about */
  function draw(about) {
    run.lastChild?.replaceWith(program ? TEXT.runAgain : TEXT.run);
    stop.hidden = program === null;
    setText(note, about);
  }

  return {
    ...preview,
    element,
    update(next, one) {
      run.disabled = one.open;
      if (next !== text) {
        text = next;
        program && draw(TEXT.changedSinceRun);
      }
      preview.update(next, one);
    },
    destroy() {
      isLeft = true;
      program?.destroy();
      preview.destroy();
    },
  };
}

/** @param {ViewOptions} options @param {import("../loading.js").Tell} tell @returns {Promise<View>} */
async function gridView({ artifact, text, onChange, onBroken = () => {} }, tell) {
  const { createGrid } = await gridPart.get(tell);
  const grid = createGrid({ text, name: artifact.name, isTabbed: isTabbed(artifact), onChange, onBroken });
  return { ...still(grid.element, grid.update), scroller: grid.scroller, destroy: grid.destroy };
}

/** @param {ViewOptions} options @param {import("../loading.js").Tell} tell @returns {Promise<View>} */
async function treeView({ text, onChange, onBroken = () => {} }, tell) {
  const { createTree } = await treePart.get(tell);
  const tree = createTree({ text, onChange, onBroken });
  return still(tree.element, tree.update);
}

/** @param {ViewOptions} options @returns {View} */
function partsView({ artifact }) {
  const element = h("div", { class: "document-scroller document-parts", tabIndex: 0 }, artifact.others.map(previewOf));
  let shown = artifact.others;
  return still(element, (_, { others }) => {
    if (others.length !== shown.length || others.some((part, at) => part !== shown[at])) {
      shown = others;
      element.replaceChildren(...others.map(previewOf));
    }
  });
}

/** A view without passages. @param {HTMLElement} element @param {View["update"]} update @returns {View} */
function still(element, update) {
  const scrollToEnd = () => (element.scrollTop = element.scrollHeight);
  const selectAll = () => document.getSelection()?.selectAllChildren(element);
  return { element, scroller: element, update, mark() {}, rectOf: () => null, heightOf: () => null, reveal() {}, deselect() {}, selectAll, setReadOnly() {}, scrollToEnd, destroy() {} };
}

/** What of the other documents can change how this one is shown. @param {Record<string, ArtifactView>} all */
function namesOf(all) {
  return Object.values(all).map(({ artifactId, name, text, version, open }) => JSON.stringify([artifactId, name, text === null || (/svg/.test(name) && !open) ? version : 0])).join();
}

/** Whether a click ends a selection, and is none on a link in it. @param {HTMLElement} element */
function isSelecting(element) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode);
}

/** What was drawn is selected as a whole: its characters stand in no order that a selection could follow. @param {EventTarget|null} target */
function selectDrawn(target) {
  const drawn = target instanceof Element ? target.closest(`[${SOURCE}]`) : null;
  drawn && document.getSelection()?.selectAllChildren(drawn);
}

/**
 * Tells what is selected in an element, once it is at rest; null when the user takes a selection back. What is selected
 * elsewhere, in a field for example, changes nothing, and neither does a selection that is lost with the text under it.
 * @param {HTMLElement} element
 * @param {(range: Range|null, adds: boolean) => void} tell
 * @returns {() => void}  ends it
 */
function watchSelection(element, tell) {
  /** Whether the pointer was pressed with Ctrl or Cmd: what is selected is added, and a click alone adds nothing. */
  let adds = false;
  const onPress = (/** @type {PointerEvent} */ event) => (adds = event.ctrlKey || event.metaKey);
  const onKey = (/** @type {KeyboardEvent} */ { key }) => key.startsWith("Arrow") && (adds = false);
  const settling = createSettling(element, (byUser) => {
    const selection = document.getSelection();
    if (adds && selection?.isCollapsed) {
      return;
    }
    if (selection?.anchorNode && selection.rangeCount > 0 && element.contains(selection.anchorNode) && (byUser || !selection.isCollapsed)) {
      tell(selection.isCollapsed ? null : selection.getRangeAt(0), adds);
    }
  });
  document.addEventListener("selectionchange", settling.selectionChanged);
  element.addEventListener("pointerdown", onPress);
  element.addEventListener("keydown", onKey);
  return () => {
    document.removeEventListener("selectionchange", settling.selectionChanged);
    settling.end();
  };
}

/** @param {({left: number, right: number, top: number, bottom: number}|null)[]} rects @returns {DOMRect|null} */
function boundsOf(rects) {
  const seen = rects.filter((rect) => rect !== null);
  if (seen.length === 0) {
    return null;
  }
  const left = Math.min(...seen.map((rect) => rect.left));
  const top = Math.min(...seen.map((rect) => rect.top));
  const right = Math.max(...seen.map((rect) => rect.right));
  return new DOMRect(left, top, right - left, Math.max(...seen.map((rect) => rect.bottom)) - top);
}

/** The part of a rectangle that a scroller shows; null if that is nothing. @param {DOMRect|null} rect @param {HTMLElement} scroller */
function within(rect, scroller) {
  const frame = scroller.getBoundingClientRect();
  const top = rect && Math.max(rect.top, frame.top);
  const bottom = rect && Math.min(rect.bottom, frame.bottom);
  return rect && top !== null && bottom !== null && top < bottom ? new DOMRect(rect.left, top, rect.width, bottom - top) : null;
}

/** @param {string} name */
const fileStem = (name) => plainName(name).replace(/\.\w+$/, "") || "diagram";
