// @ts-check
/** The document pane: the artifacts of a conversation as tabs, and the one that is shown, while it is written and after. */

import { copyAndTell } from "../clipboard.js";
import { button, createTabs, iconButton } from "../controls.js";
import { fill, h, setText } from "../dom.js";
import { icon } from "../icons.js";
import { createKeyed } from "../keyed.js";
import { ask } from "../layout.js";
import { partOf } from "../loading.js";
import { createPassageBar } from "../passage/bar.js";
import { createOutcome } from "../passage/outcome.js";
import { createPeople } from "../presence/people.js";
import { createReview } from "../review/review.js";
import { shownText } from "../state/artifacts.js";
import { recordOf } from "../state/records.js";
import { mayEdit, shownArtifact, shownContent } from "../state/reducer.js";
import { changesOf, linesOf, mapRange } from "../state/text.js";
import { createVersions } from "../versions/versions.js";
import { TEXT, say } from "../strings.js";
import { plainName } from "../words.js";
import { createFiles } from "./files/files.js";
import { createAutoScroll } from "./auto_scroll.js";
import { kindOf } from "./files/kinds.js";
import { createGrowing } from "./growing.js";
import { createOutline } from "./outline_menu.js";
import { toArtifact, toShown } from "./written_places.js";
import { createTyping } from "./saving/typing.js";
import { createView } from "./views.js";

/** So long a version is waited for that the server has announced. In milliseconds. */
const ARRIVAL_MS = 10_000;

/** @typedef {import("./files/kinds.js").Mode} Mode */
/** @typedef {import("./views.js").View} View */

const markdownPart = partOf(() => import("./markdown/markdown.js"));

/**
 * The view that is shown. It is of one artifact, in one mode, as long as it is there (keyed.js).
 * @typedef {object} Body
 * @property {HTMLElement} element
 * @property {() => void} destroy
 * @property {View} view
 * @property {ReturnType<typeof createAutoScroll>} follower
 * @property {string} typed  the artifact that is typed into, or ""
 */

/**
 * @param {App} app
 * @returns {{element: HTMLElement, growing: HTMLElement, step: (op: "undo"|"redo") => Promise<void>, save: () => Promise<boolean>, review: (step: import("../review/review.js").ReviewStep) => Promise<void>, headings: () => Promise<import("./outline_menu.js").Heading[]>, goTo: (artifactId: string, find: (text: string) => import("./views.js").SourceRange|null) => void}}
 *     `growing` is for the conversation (growing.js), `step` undoes and redoes in the artifact shown, `save` saves what was typed, `review` goes through the suggestions,
 *     `headings` are those of the artifact shown, `goTo` opens an artifact at a place of its text
 */
export function createDocumentPane(app) {
  const { store } = app;
  const typing = createTyping(app, { viewOf: (id) => (keyed.current()?.typed === id ? (keyed.current()?.view ?? null) : null), onChange: redraw });
  const versions = createVersions(app, {
    isUnsaved: (id) => typing.isUnsaved(id),
    save: async () => {
      const saved = await typing.flush();
      // From here on the versions have all that was typed.
      saved && keyed.current()?.view.forget?.();
      return saved;
    },
    isRendered: () => {
      const artifact = shownArtifact(store.state);
      return artifact !== undefined && modeOf(artifact, kindOf(artifact)) === "read";
    },
  });
  const tabs = createTabs({ label: TEXT.documents, look: "document-tab", choose: (id) => app.openArtifact(id) });
  const name = h("h2", { class: "document-name truncate", dir: "auto" });
  const about = h("p", { class: "document-about truncate" });
  const line = h("div", { class: "document-line" }, about);
  const modes = h("div", { class: "document-modes", role: "group", "aria-label": TEXT.view });
  const people = createPeople(app);
  const copyButton = iconButton("copy", TEXT.copy, copy, { class: "document-copy" });
  const outline = createOutline({ headings, view: () => keyed.current()?.view ?? null });
  const printButton = iconButton("print", TEXT.print, printDocument, { class: "document-copy" });
  const head = h("header", { class: "document-head" }, h("div", { class: "document-title" }, name, line), people.element, modes, versions.controls, outline.button, copyButton, printButton);
  // An editor has only the lines that are seen.
  const paper = h("pre", { class: "document-paper", "aria-hidden": "true" });
  addEventListener("beforeprint", () => setText(paper, (panel.querySelector(".document-editor") && shownContent(store.state)?.text) || ""));
  addEventListener("afterprint", () => setText(paper, ""));
  const notice = h("p", { class: "document-notice" });
  const panel = h("div", { id: "document-panel", class: "document-panel" });
  const waiting = h("div", { class: "document-waiting", role: "status" });
  /** @type {ReturnType<typeof createKeyed<Body>>} */
  const keyed = createKeyed(panel, () => (tellLoading(null), waiting));
  const toEnd = button(TEXT.jumpEnd, jumpToEnd, { class: "button document-to-end", sign: "down", hidden: true });
  const status = h("p", { class: "visually-hidden", role: "status" });
  const empty = h("div", { class: "document-empty" }, icon("document", 32), h("p", {}, TEXT.noDocumentYet));
  const review = createReview(app, { view: () => keyed.current()?.view ?? null, toView });
  const places = {
    panel,
    rectOf: (/** @type {PassageSelection} */ selection) => keyed.current()?.view.rectOf(toShown(selection, written) ?? { start: 0, end: 0 }) ?? null,
    scrollBy: (/** @type {number} */ pixels) => keyed.current()?.view.scroller.scrollBy({ top: pixels }),
    deselect: () => keyed.current()?.view.deselect(),
  };
  const bar = createPassageBar(app, {
    ...places,
    annotate: (fields, text) => review.operate("annotate", fields, text),
    mayReplace: () => !keyed.current()?.typed && mayTypeShown(),
    replace: ({ artifactId, start, end }, text) => changeText(artifactId, store.state.artifacts[artifactId]?.text ?? "", { start, end, text }),
  });
  const outcome = createOutcome(app, { panel, rectOf: (range) => keyed.current()?.view.rectOf(toView(range) ?? { start: 0, end: 0 }) ?? null });
  app.flush = () => typing.flush();
  line.append(typing.status);
  panel.addEventListener("focusout", () => typing.flush());
  const row = h("div", { class: "document-row" }, panel, review.element);
  const element = h("div", { class: "document-pane" }, tabs.element, head, versions.panel, notice, typing.conflict, versions.comparison, paper, row, toEnd, empty, status, bar, outcome);
  head.append(review.button, createFiles(app, element, (more) => [
    ...(outline.button.hidden ? [] : [{ text: TEXT.outline, sign: "list", run: () => outline.open(more) }]),
    { text: TEXT.copy, sign: "copy", run: copy },
    { text: TEXT.print, sign: "print", run: printDocument },
  ]));
  element.addEventListener("keydown", selectAll);

  /** @type {Record<string, Mode>} */
  const chosenModes = recordOf();
  /** Why a version is shown as its source. @type {Record<string, {version: number, text: string}>} */
  const brokenVersions = recordOf();
  /** @type {ReturnType<typeof shownText>["ranges"]} */
  let written = [];
  /** The text of the artifact as it is shown, without what is written over it. */
  let shownOf = "";
  /** What is to be seen once it is shown. @type {{contextId: string|null, artifactId: string, how: "begin"|"found", placeIn: (artifact: ArtifactView) => import("./views.js").SourceRange|null}|null} */
  let goal = null;
  let said = "";

  const documents = { all: () => store.state.artifacts, open: (/** @type {string} */ id) => app.openArtifact(id) };

  store.subscribe(render);
  render(store.state);
  return { element, growing: createGrowing(app), step: versions.step, save: typing.flush, review: review.step, headings, goTo };

  function redraw() {
    render(store.state);
    versions.draw();
  }

  /** @param {State} state */
  function render(state) {
    const artifact = shownContent(state);
    if (!artifact && shownArtifact(state)) {
      return; // the old version is being read
    }
    showFrame(state, artifact);
    typing.draw(state.version === null ? artifact : null);
    if (!artifact) {
      keyed.clear();
      toEnd.hidden = true;
      return;
    }
    const kind = kindOf(artifact);
    const mode = modeOf(artifact, kind);
    showModes(artifact, kind, mode);
    const { contextId, version } = state;
    const key = JSON.stringify([contextId, artifact.artifactId, kind.name, kind.language, mode, version !== null || !mayType(state, artifact)]);
    const body = keyed.show(key, () => open(artifact, kind, mode), onPlaced);
    if (body) {
      showBody(body, state, artifact);
    } else {
      toEnd.hidden = true;
    }
  }

  /** While a table or a tree is written, it is none yet. @param {ArtifactView} artifact @param {import("./files/kinds.js").Kind} kind @returns {Mode} */
  function modeOf({ artifactId, open, cut }, kind) {
    const chosen = kind.modes.find((one) => one.mode === chosenModes[artifactId])?.mode ?? kind.modes[0].mode;
    return (chosen === "grid" || chosen === "tree") && (open || cut) ? "source" : chosen;
  }

  /** @param {State} state @param {ArtifactView|null} artifact */
  function showFrame(state, artifact) {
    const all = Object.values(state.artifacts);
    tabs.update(
      all.map((one) => ({ id: one.artifactId, name: plainName(one.name), panel: panel.id, busy: isWritten(state, one), ...unreadOf(one.artifactId) })),
      artifact?.artifactId ?? "",
    );
    tabs.element.hidden = all.length < 2;
    empty.hidden = artifact !== null;
    head.hidden = row.hidden = panel.hidden = artifact === null;
    versions.controls.hidden = state.server?.canvas === false;
    const why = artifact && brokenVersions[artifact.artifactId];
    const broken = why && why.version === artifact.version && chosenModes[artifact.artifactId] === "source" ? why.text : "";
    notice.hidden = state.version === null && !artifact?.cut && !broken;
    if (artifact) {
      const busy = state.version === null && isWritten(state, artifact);
      setText(name, plainName(artifact.name));
      setText(about, busy ? (artifact.open ? TEXT.writing : TEXT.rewritingPassage) : versions.controls.hidden ? "" : say(TEXT.versionNumber, { version: artifact.version }));
      setText(notice, artifact.cut ? TEXT.documentCut : state.version === null && broken ? broken : say(TEXT.oldVersionShown, { version: artifact.version }));
      copyButton.hidden = artifact.text === null || artifact.cut;
      outline.button.hidden = kindOf(artifact).name !== "markdown";
      // The conversation says what is being written.
      busy || announce(say(TEXT.documentVersion, { name: plainName(artifact.name), version: artifact.version }));
    }
  }

  /** @param {string} id */
  function unreadOf(id) {
    const count = review.unread(id);
    return count ? { count: String(count), note: say(TEXT.unreadCount, { count }) } : {};
  }

  /** @param {ArtifactView} artifact @param {import("./files/kinds.js").Kind} kind @param {Mode} chosen */
  function showModes(artifact, kind, chosen) {
    const key = `${artifact.artifactId} ${kind.name} ${chosen}`;
    if (modes.dataset.key === key) {
      return;
    }
    modes.dataset.key = key;
    modes.hidden = kind.modes.length < 2;
    const focused = modes.contains(document.activeElement);
    fill(
      modes,
      kind.modes.map(({ mode, label }) => {
        const choose = () => ((chosenModes[artifact.artifactId] = mode), render(store.state));
        return button(label, choose, { class: "document-mode", "aria-pressed": String(mode === chosen) });
      }),
    );
    focused && /** @type {HTMLElement|null} */ (modes.querySelector("[aria-pressed=true]"))?.focus();
  }

  /** @param {ArtifactView} artifact @param {import("./files/kinds.js").Kind} kind @param {Mode} mode @returns {Promise<Body>} */
  async function open(artifact, kind, mode) {
    const { artifactId, text } = artifact;
    const typed = mode === "source" && store.state.version === null && mayType(store.state, artifact) ? artifactId : "";
    typing.flush();
    typed && (await typing.load(tellLoading));
    const options = {
      artifact,
      text: text ?? "",
      kind,
      readOnly: true,
      onSelect: (/** @type {import("./markdown/selection.js").Passage|null} */ passage, adds = false) => (typed ? selectTyped(artifactId, passage) : select(artifactId, passage, adds)),
      onInput: (/** @type {import("./views.js").Input} */ input) => typing.takeInput(artifactId, input),
      onMove: (/** @type {{start: number, end: number}} */ range) => movedTo(artifactId, range),
    };
    const ticks = mayTypeShown();
    const onTick = ticks ? (/** @type {number} */ box, /** @type {string} */ text) => tick(artifactId, box, text) : undefined;
    const onFix = ticks ? (/** @type {string} */ error) => fix(artifactId, error) : undefined;
    const onChange = ticks ? (/** @type {string} */ shown, /** @type {any} */ change) => changeText(artifactId, shown, change) : undefined;
    const onBroken = (/** @type {string} */ why) => showSource(artifactId, why);
    const view = await createView(mode, { ...options, onTick, onFix, onChange, onBroken, documents, onNote: (id) => review.choose(id) }, tellLoading);
    const follower = createAutoScroll(view.scroller, { scrollToEnd: view.scrollToEnd, onChange: showToEnd });
    return { element: view.element, destroy: () => (view.destroy(), follower.destroy()), view, follower, typed };
  }

  /** @param {Body} body */
  function onPlaced({ view, follower, typed }) {
    follower.set(shownContent(store.state)?.open || follower.isAtEnd());
    render(store.state);
    reachGoal();
    if (typed && modes.contains(document.activeElement)) {
      // Who has just chosen “Edit” wants to type.
      /** @type {HTMLElement|null} */ (view.element.querySelector(".cm-content"))?.focus({ preventScroll: true });
    }
  }

  /** @type {import("../loading.js").Tell} */
  function tellLoading(remedy) {
    const retry = remedy && button(remedy.label, remedy.run);
    fill(waiting, remedy ? [TEXT.viewNotLoaded, retry] : TEXT.loading);
  }

  /** The headings of the document that is shown, and how to go there. @returns {Promise<import("./outline_menu.js").Heading[]>} */
  async function headings() {
    const artifact = shownContent(store.state);
    if (!artifact || kindOf(artifact).name !== "markdown") {
      return [];
    }
    const { outlineOf } = await markdownPart.get();
    const { text } = textShown(store.state, artifact);
    return outlineOf(text).map((each) => ({ ...each, run: () => reachHeading(each, artifact, text) }));
  }

  /** @param {import("./views.js").SourceRange} range @param {ArtifactView} of @param {string} text  in which it was found */
  function reachHeading(range, { artifactId }, text) {
    aimAt(artifactId, "begin", (artifact) => mapRange(range, changesOf(text, textShown(store.state, artifact).text)));
  }

  /** Opens an artifact of the open conversation at a place of its text, which may not be read yet. @param {string} artifactId @param {(text: string) => import("./views.js").SourceRange|null} find */
  function goTo(artifactId, find) {
    app.openArtifact(artifactId);
    ask(element, "show-document");
    aimAt(artifactId, "found", ({ text }) => {
      const place = store.state.version === null ? find(text ?? "") : null;
      return place && toView(place);
    });
  }

  /** @param {string} artifactId @param {"begin"|"found"} how @param {(artifact: ArtifactView) => import("./views.js").SourceRange|null} placeIn */
  function aimAt(artifactId, how, placeIn) {
    goal = { contextId: store.state.contextId, artifactId, how, placeIn };
    // Subscribers of the store are called in the next frame.
    render(store.state);
    reachGoal();
  }

  /** As soon as the document is there. A view that has no places is left for the source. */
  function reachGoal() {
    const artifact = shownContent(store.state);
    const isNext = goal?.artifactId === (store.state.artifactId ?? artifact?.artifactId) && goal?.contextId === store.state.contextId;
    if (!goal || !artifact || !keyed.current() || (isNext && artifact.artifactId !== goal.artifactId)) {
      return;
    }
    const kind = kindOf(artifact);
    const isSource = kind.modes.some(({ mode }) => mode === "source");
    if (isNext && isSource && !["read", "source"].includes(modeOf(artifact, kind))) {
      chosenModes[artifact.artifactId] = "source";
      return render(store.state);
    }
    const { how, placeIn } = goal;
    goal = null;
    const place = isNext ? placeIn(artifact) : null;
    place && reach(place, how);
  }

  /** @param {import("./views.js").SourceRange} range @param {"begin"|"found"} how */
  function reach(range, how) {
    const body = keyed.current();
    body?.follower.set(false);
    body?.view.reveal(range, how);
  }

  /** Everything of the document, and nothing of the page around it. @param {KeyboardEvent} event */
  function selectAll(event) {
    const { ctrlKey, metaKey, shiftKey, altKey, target } = event;
    const inText = target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
    const lower = event.key.toLowerCase();
    if (lower === "a" && (ctrlKey || metaKey) && !shiftKey && !altKey && !inText) {
      event.preventDefault();
      keyed.current()?.view.selectAll();
    }
  }

  /** @param {Body} body @param {State} state @param {ArtifactView} artifact */
  function showBody({ view, follower, typed }, state, artifact) {
    if (typed) {
      written = [];
      shownOf = artifact.text ?? "";
      typing.show(view, state, artifact, review.marks(state, artifact));
    } else {
      const { text, ranges, of } = textShown(state, artifact);
      written = ranges;
      shownOf = of;
      view.update(text, artifact);
      const chosen = state.selection?.artifactId === artifact.artifactId ? state.selection : null;
      const selection = chosen && toShown(chosen, ranges);
      const others = (chosen?.others ?? []).flatMap((one) => toShown(one, ranges) ?? []);
      view.mark({ selection, others, writing: ranges, notes: review.marks(state, artifact) });
    }
    view.showPeople?.(state.version === null ? placed(people.marks(artifact.artifactId), typed) : []);
    follower.textChanged(artifact.open);
    showToEnd();
  }

  /** Where others are, in the text that is shown; of an agent, what it has written so far. @param {import("../presence/roster.js").PersonMark[]} marks @param {string} typed */
  function placed(marks, typed) {
    return typed ? marks : marks.flatMap((mark) => {
      const being = mark.agent && written.find(({ of }) => of.start < mark.end && of.end > mark.start);
      const range = being || toShown(mark, written);
      return range ? [{ ...mark, start: range.start, end: range.end }] : [];
    });
  }

  /** Others see where the user is. @param {string} artifactId @param {{start: number, end: number}|null} range */
  function movedTo(artifactId, range) {
    const version = store.state.artifacts[artifactId]?.version;
    people.moved(range && version !== undefined && store.state.version === null ? { artifactId, version, ...range } : null);
  }

  /** Where a range of the artifact is in the text that is shown; null if that is not known. @param {import("./views.js").SourceRange} range */
  function toView({ start, end }) {
    const { artifactId = "", text = "" } = shownArtifact(store.state) ?? {};
    if (keyed.current()?.typed === artifactId) {
      return typing.toShown(artifactId, { start, end });
    }
    const range = shownOf === text ? { start, end } : mapRange({ start, end }, changesOf(text ?? "", shownOf));
    return range && toShown(range, written);
  }

  function showToEnd() {
    const body = keyed.current();
    toEnd.hidden = !body || !shownArtifact(store.state)?.open || body.follower.following();
  }

  function jumpToEnd() {
    keyed.current()?.follower.set(true);
    keyed.current()?.view.scrollToEnd();
    showToEnd();
  }

  /** @param {string} artifactId @param {import("./markdown/selection.js").Passage|null} passage @param {boolean} adds */
  function select(artifactId, passage, adds) {
    const artifact = store.state.artifacts[artifactId];
    const text = artifact?.text ?? "";
    const there = passage && store.state.version === null && toArtifact(passage, written);
    // What came since it was drawn may have moved it.
    const range = there && mapRange(there, changesOf(shownOf, text));
    movedTo(artifactId, range || null);
    if (!artifact || !range) {
      store.state.selection && store.dispatch({ type: "selected", selection: null });
      return;
    }
    const { start, end } = range;
    const before = adds && store.state.selection?.artifactId === artifactId ? store.state.selection : null;
    const also = before ? [before, ...(before.others ?? [])] : passage.others;
    const others = also?.filter((one) => one.end <= start || one.start >= end).map((one) => ({ start: one.start, end: one.end, text: one.text }));
    const selection = { artifactId, version: artifact.version, start, end, text: text.slice(start, end), ...linesOf(text, start, end), ...(others?.length && { others }) };
    store.dispatch({ type: "selected", selection });
  }

  /** Ticks the box of a task, or takes its tick away. @param {string} artifactId @param {number} box @param {string} shown */
  function tick(artifactId, box, shown) {
    return changePlace(artifactId, shown, { start: box, end: box + 3 }, (sign) => (sign === "[ ]" ? "[x]" : /^\[[xX]\]$/.test(sign) ? "[ ]" : null));
  }

  function mayTypeShown() {
    const artifact = shownArtifact(store.state);
    return store.state.version === null && artifact !== undefined && mayType(store.state, artifact);
  }

  /**
   * A change of a place in a text that is shown.
   * @param {string} artifactId
   * @param {string} shown
   * @param {{start: number, end: number, text: string}} change
   * @returns {Promise<boolean>} whether it is saved
   */
  async function changeText(artifactId, shown, change) {
    const before = shown.slice(change.start, change.end);
    const isSaved = await changePlace(artifactId, shown, change, (now) => (now === before ? change.text : null));
    isSaved === null && app.notify("error", TEXT.placeChanged);
    return Boolean(isSaved);
  }

  /**
   * Saves a change of a place in a text that is shown: the document may have a newer one.
   * @param {string} artifactId
   * @param {string} shown
   * @param {{start: number, end: number}} range
   * @param {(now: string) => string|null} replacementOf  what replaces the text that is there now; null if it cannot be replaced
   * @returns {Promise<boolean|null>} whether it is saved; null if the place cannot be replaced any longer
   */
  async function changePlace(artifactId, shown, range, replacementOf) {
    const { contextId } = store.state;
    await typing.flush();
    if (!app.isOpen(contextId)) {
      return false;
    }
    const { text, version, open } = store.state.artifacts[artifactId] ?? { text: null };
    const place = text !== null && !open ? mapRange(range, changesOf(shown, text)) : null;
    const replacement = text !== null && place ? replacementOf(text.slice(place.start, place.end)) : null;
    if (text === null || !place || replacement === null) {
      return null;
    }
    const next = text.slice(0, place.start) + replacement + text.slice(place.end);
    const { ok, said, version: made = 0 } = await app.operate("put", artifactId, { text: next, baseVersion: version, merge: true });
    if (ok) {
      await arrival(artifactId, made);
    } else if (app.isOpen(contextId)) {
      app.notify("error", said);
    }
    return Boolean(ok);
  }

  /** Resolves when a version is there. What is missed while disconnected comes later. @param {string} artifactId @param {number} version */
  function arrival(artifactId, version) {
    return new Promise((/** @type {(value?: any) => void} */ resolve) => {
      const timer = setTimeout(done, ARRIVAL_MS);
      const end = store.subscribe((state) => (state.artifacts[artifactId]?.version ?? version) >= version && done());
      (store.state.artifacts[artifactId]?.version ?? version) >= version && done();

      function done() {
        clearTimeout(timer);
        end?.();
        resolve();
      }
    });
  }

  /** A text that is not what its kind says is shown as it is. @param {string} artifactId @param {string} why */
  function showSource(artifactId, why) {
    const { version } = shownContent(store.state) ?? { version: 0 };
    brokenVersions[artifactId] = { version, text: say(TEXT.shownAsSource, { why }) };
    chosenModes[artifactId] = "source";
    // It may be drawn just now.
    queueMicrotask(redraw);
  }

  /** Asks the agent to mend what a program has said. @param {string} artifactId @param {string} error */
  async function fix(artifactId, error) {
    const { contextId } = store.state;
    if ((await typing.flush()) && app.isOpen(contextId)) {
      const { name } = store.state.artifacts[artifactId];
      await app.ask(say(TEXT.fixError, { name: plainName(name), error: error.replaceAll("```", '"""') }));
    }
  }

  /** @param {string} artifactId @param {import("./markdown/selection.js").Passage|null} passage */
  async function selectTyped(artifactId, passage) {
    const selection = await typing.select(artifactId, passage);
    if (selection || store.state.selection) {
      store.dispatch({ type: "selected", selection });
    }
  }

  /** The artifact with unsaved typing and running rewrites; its text `of` is without the rewrites. @param {State} state @param {ArtifactView} artifact */
  function textShown(state, artifact) {
    const current = state.version === null;
    const shown = current ? typing.withUnsaved(artifact) : artifact;
    return { ...shownText(shown, current && shown === artifact ? Object.values(state.edits) : []), of: shown.text ?? "" };
  }

  async function copy() {
    const artifact = shownContent(store.state);
    if (artifact) {
      const { text } = textShown(store.state, artifact);
      const html = kindOf(artifact).name === "markdown" ? (await markdownPart.get()).formatMarkdown(text) : "";
      copyAndTell(app, text, say(TEXT.documentCopied, { name: plainName(artifact.name) }), TEXT.downloadInstead, html);
    }
  }

  async function printDocument() {
    await keyed.current()?.view.complete?.();
    print();
  }

  /** Screen readers hear of what is finished, never of each piece. @param {string} sentence */
  function announce(sentence) {
    if (said !== sentence) {
      said = sentence;
      status.textContent = sentence;
    }
  }
}

/** Whether the user may type into it: not into a part of it, which would be saved as all of it. @param {State} state @param {ArtifactView} artifact */
const mayType = (state, artifact) => mayEdit(state) && !artifact.cut;

/** @param {State} state @param {ArtifactView} artifact */
function isWritten(state, artifact) {
  return artifact.open || Object.values(state.edits).some((edit) => edit.artifactId === artifact.artifactId);
}
