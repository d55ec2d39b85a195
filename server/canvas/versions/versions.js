// @ts-check
/**
 * The versions of the artifact that is shown: undo and redo, a slider through all of them, who made each when and for which
 * request, any two compared, one restored, a link to one.
 */

import { formatPlace } from "../address.js";
import { sentence } from "../errors.js";
import { copyAndTell } from "../clipboard.js";
import { button, iconButton } from "../controls.js";
import { fill, h, setText } from "../dom.js";
import { languageOf } from "../document/editor/language.js";
import { kindOf, langOf } from "../document/files/kinds.js";
import { createKeyed } from "../keyed.js";
import { partOf } from "../loading.js";
import { isProse } from "../passage/actions.js";
import { mayEdit, shownArtifact } from "../state/reducer.js";
import { createComparison } from "./compare.js";
import { authorOf, changeWords, counterpartOf, hourOf, requestOf, stepsOf, timeOf } from "./history.js";
import { TEXT, say } from "../strings.js";

/** @typedef {import("./history.js").Version} Version */

const markdownPart = partOf(() => import("../document/markdown/markdown.js"));

/**
 * @param {App} app
 * @param {object} typed
 * @param {(artifactId: string) => boolean} typed.isUnsaved  whether something was typed that is not saved yet
 * @param {() => Promise<boolean>} typed.save  saves it; whether all of it is saved now
 * @param {() => boolean} typed.isRendered  whether the document is shown as it looks
 * @returns {{controls: HTMLElement, panel: HTMLElement, comparison: HTMLElement, step: (op: "undo"|"redo") => Promise<void>, draw: () => void}}
 *     `controls` for the head of the document, `panel` below it, `comparison` in the place of the document: it is hidden
 *     unless two versions are compared
 */
export function createVersions(app, { isUnsaved, save, isRendered }) {
  const { store } = app;
  /** @type {{versions: Version[], comparing: number|null, rendered: boolean, inline: boolean, of: string}} */
  let view = { versions: [], comparing: null, rendered: false, inline: false, of: "" };
  let reading = 0;
  let telling = 0;

  const undo = iconButton("undo", TEXT.undo, () => step("undo"));
  const redo = iconButton("redo", TEXT.redo, () => step("redo"));
  const toggle = iconButton("history", TEXT.versions, () => open(panel.hidden));
  toggle.setAttribute("aria-expanded", "false");
  const controls = h("div", { class: "version-controls" }, undo, redo, toggle);

  const slider = h("input", { class: "version-slider", type: "range", min: 1, step: 1, "aria-label": TEXT.version, oninput: () => show(Number(slider.value)) });
  const facts = h("span");
  const changes = h("span");
  const actions = h("div", { class: "version-actions" });
  const list = h("ol", { class: "version-list", "aria-label": TEXT.versions });
  const panel = h(
    "section",
    { class: "versions", "aria-label": TEXT.versions, hidden: true, onkeydown: escape },
    h("div", { class: "version-head" }, slider, iconButton("close", TEXT.closeVersions, () => open(false))),
    h("p", { class: "version-facts truncate", dir: "auto" }, facts, changes),
    actions,
    list,
  );
  const comparison = h("div", { class: "comparison", role: "region", "aria-label": TEXT.comparison, hidden: true });
  const keyed = createKeyed(comparison, () => heading(TEXT.loading));

  store.subscribe((state, previous) => {
    const [artifact, before] = [shownArtifact(state), shownArtifact(previous)];
    const another = artifact?.artifactId !== before?.artifactId || state.contextId !== previous.contextId;
    if (state.contextId !== previous.contextId) {
      showPanel(false);
    }
    if (another) {
      view = { ...view, versions: [], comparing: null };
      showComparison();
    }
    if (artifact && !artifact.open && (another || artifact.version !== before?.version || before?.open)) {
      read();
    }
    if (another || state.shared !== previous.shared || state.version !== previous.version || artifact?.open !== before?.open) {
      draw();
    }
  });

  draw();
  // The document may have come before this was loaded.
  if (shownArtifact(store.state)?.open === false) {
    read();
  }

  async function read() {
    const { artifactId } = shownArtifact(store.state) ?? { artifactId: "" };
    const number = ++reading;
    const versions = await app.versions(artifactId).catch(() => []);
    if (number === reading) {
      change({ versions, of: artifactId });
    }
  }

  function draw() {
    const { versions } = view;
    const artifact = shownArtifact(store.state);
    const steps = stepsOf(versions);
    const busy = artifact?.open ?? true;
    controls.hidden = versions.length === 0;
    undo.disabled = busy || !mayEdit(store.state) || !(steps.undo || isUnsaved(artifact?.artifactId ?? ""));
    redo.disabled = busy || !mayEdit(store.state) || !steps.redo;
    const shown = shownNumber();
    slider.max = String(Math.max(1, versions.length));
    slider.value = String(shown);
    slider.disabled = versions.length < 2;
    const version = versions[shown - 1];
    slider.setAttribute("aria-valuetext", version ? describe(version) : "");
    setText(facts, version ? describe(version) : "");
    setText(changes, "");
    version && !panel.hidden && tellChanges(version);
    fill(actions, version ? actionsOf(version) : []);
    fill(list, rowsOf(versions.toReversed()));
  }

  /** What the shown version has changed, once both texts are read. @param {Version} version */
  async function tellChanges({ number, parent, pruned }) {
    const asked = ++telling;
    const artifact = shownArtifact(store.state);
    if (!artifact || !parent || pruned || view.versions[parent - 1]?.pruned || artifact.text === null) {
      return;
    }
    const texts = await Promise.all([app.version(artifact.artifactId, parent), app.version(artifact.artifactId, number)]).catch(() => null);
    const [before, text] = (texts ?? []).map((each) => each.text ?? "");
    const { outlineOf } = await markdownPart.get();
    if (texts && asked === telling) {
      const told = changeWords(before, text, languageOf(artifact.name, artifact.mediaType) === "markdown" ? outlineOf(text) : []);
      setText(changes, told && ` · ${told}`);
    }
  }

  /** The newest first; each hour has a heading, if there are several. @param {Version[]} versions */
  function rowsOf(versions) {
    const hours = versions.map(({ timestamp }) => hourOf(timestamp, new Date()));
    const isSeveral = new Set(hours).size > 1;
    return versions.flatMap((version, at) => [isSeveral && hours[at] !== hours[at - 1] && h("li", { class: "version-hour" }, hours[at]), row(version)]);
  }

  /** @param {Version} version */
  function describe(version) {
    const { number, timestamp, current, incomplete } = version;
    const notes = [current && TEXT.current, incomplete && TEXT.incomplete, version.pruned && TEXT.contentRemoved].filter(Boolean);
    const facts = [authorOf(version), timeOf(timestamp, new Date()), ...notes, requestOf(version)].filter(Boolean);
    return say(TEXT.versionFacts, { number, count: view.versions.length, facts: facts.join(" · ") });
  }

  /** @param {Version} version */
  function actionsOf(version) {
    const { comparing, inline } = view;
    const rendered = isComparedRendered();
    const others = view.versions.filter(({ number, pruned }) => number !== version.number && !pruned);
    const comparable = others.length > 0 && !version.pruned && shownArtifact(store.state)?.text !== null;
    return [
      comparing === null
        ? button(TEXT.compare, () => compare(counterpartOf(view.versions, version.number)), { sign: "compare", disabled: !comparable })
        : [
            chooser(others, comparing),
            rendered !== null && looks(rendered),
            !rendered && button(inline ? TEXT.sideBySide : TEXT.inline, () => change({ inline: !inline })),
            button(TEXT.endComparison, () => compare(null)),
          ],
      version.current || !mayEdit(store.state) ? [] : button(TEXT.restore, restore, { sign: "retry", disabled: version.pruned || shownArtifact(store.state)?.open || false }),
      button(TEXT.copyLink, copyLink, { sign: "link" }),
    ];
  }

  /** Whether versions are compared as they look; null if they have no look but their source. */
  function isComparedRendered() {
    const artifact = shownArtifact(store.state);
    return artifact && kindOf(artifact).name === "markdown" ? view.rendered : null;
  }

  /** @param {boolean} rendered */
  function looks(rendered) {
    const look = (/** @type {string} */ label, /** @type {boolean} */ one) => button(label, () => choose(one), { class: "document-mode", "aria-pressed": String(one === rendered) });
    const choose = (/** @type {boolean} */ one) => {
      change({ rendered: one });
      /** @type {HTMLElement|null} */ (actions.querySelector("[aria-pressed=true]"))?.focus();
    };
    return h("div", { class: "document-modes", role: "group", "aria-label": TEXT.view }, look(TEXT.rendered, true), look(TEXT.source, false));
  }

  /** @param {Version[]} others @param {number} chosen */
  function chooser(others, chosen) {
    const options = others.map((version) =>
      h("option", { value: String(version.number), selected: version.number === chosen }, say(TEXT.withVersion, { number: version.number })),
    );
    const choose = (/** @type {any} */ event) => compare(Number(event.target.value));
    return h("select", { class: "field version-chooser", "aria-label": TEXT.compareWith, onchange: choose }, options);
  }

  /** @param {Version} version */
  function row(version) {
    const shown = version.number === shownNumber();
    const cells = [
      h("span", { class: "version-number" }, version.number),
      h("bdi", { class: "truncate" }, requestOf(version)),
      h("span", { class: "version-author" }, authorOf(version), version.current && ` · ${TEXT.current}`),
      h("time", { class: "version-time", datetime: version.timestamp ?? "" }, timeOf(version.timestamp, new Date())),
    ];
    return h("li", {}, button(cells, () => show(version.number), { class: "version-row", "aria-current": shown ? "true" : null }));
  }

  function shownNumber() {
    return store.state.version ?? shownArtifact(store.state)?.version ?? 1;
  }

  /** @param {number} number */
  function show(number) {
    const artifact = shownArtifact(store.state);
    const version = view.versions[number - 1];
    if (artifact && version && !version.pruned) {
      app.openArtifact(artifact.artifactId, version.current ? null : number);
      if (view.comparing !== null) {
        compare(counterpartOf(view.versions, number));
      }
    }
  }

  /** A comparison begins as the document is shown. @param {number|null} comparing */
  const compare = (comparing) => change({ comparing, rendered: view.comparing === null ? isRendered() : view.rendered });

  /** @param {Partial<typeof view>} fields */
  function change(fields) {
    view = { ...view, ...fields };
    draw();
    showComparison();
  }

  function showComparison() {
    const { comparing, of } = view;
    const artifact = shownArtifact(store.state);
    comparison.hidden = comparing === null || !artifact;
    if (comparing === null || !artifact) {
      keyed.clear();
      return;
    }
    const [first, second] = [comparing, shownNumber()].sort((a, b) => a - b);
    const options = { language: languageOf(artifact.name, artifact.mediaType), rendered: isComparedRendered() ?? false, inline: view.inline || innerWidth < 720, prose: isProse(artifact) };
    const key = JSON.stringify([store.state.contextId, of, first, second, options]);
    keyed.show(key, () => openComparison(of, first, second, options), () => {});
  }

  /** @param {string} of @param {number} first @param {number} second @param {{language: string, rendered: boolean, inline: boolean, prose: boolean}} options */
  async function openComparison(of, first, second, options) {
    try {
      const [old, later] = await Promise.all([app.version(of, first), app.version(of, second)]);
      const made = await createComparison({ old: old.text ?? "", text: later.text ?? "", ...options });
      made.dom.lang = langOf(later.text ?? "");
      return { element: h("div", {}, heading(say(TEXT.fromTo, { first, second })), made.dom), destroy: () => made.destroy() };
    } catch (error) {
      const again = button(TEXT.retry, () => (keyed.clear(), showComparison()));
      return { element: h("div", {}, heading(sentence(error)), again), destroy() {} };
    }
  }

  async function restore() {
    const artifact = shownArtifact(store.state);
    if (artifact) {
      const result = await app.operate("restore", artifact.artifactId, { version: shownNumber() });
      app.notify(result.ok ? "info" : "error", result.said);
      if (result.ok) {
        app.openArtifact(artifact.artifactId);
      }
    }
  }

  /** A link to the version, whatever becomes the current one. */
  async function copyLink() {
    const artifact = shownArtifact(store.state);
    const { contextId } = store.state;
    const link = location.href.replace(/#.*/, "") + formatPlace({ contextId, artifactId: artifact?.artifactId ?? null, version: shownNumber() });
    copyAndTell(app, link, TEXT.versionLinkCopied, say(TEXT.linkIs, { link }));
  }

  /**
   * Takes back, or does again, all that one request did to the artifact. What was typed is saved first: so it is what is taken
   * back, and redo brings it again.
   * @param {"undo"|"redo"} op
   */
  async function step(op) {
    const artifact = shownArtifact(store.state);
    if (!artifact || (op === "undo" ? undo : redo).disabled) {
      return;
    }
    const typed = isUnsaved(artifact.artifactId);
    if (!(await save())) {
      app.notify("error", TEXT.notSavedNotUndone);
      return;
    }
    typed && (await read());
    if (!(op === "undo" ? undo : redo).disabled) {
      const result = await app.operate(op, artifact.artifactId, { group: true });
      if (!result.ok) {
        app.notify("error", result.said);
      }
    }
  }

  /** @param {boolean} opened */
  function open(opened) {
    showPanel(opened);
    const { version } = store.state;
    if (!opened) {
      compare(null);
      if (version !== null) {
        app.openArtifact(shownArtifact(store.state)?.artifactId ?? null);
      }
      toggle.focus();
    } else {
      slider.focus();
    }
  }

  /** @param {boolean} shown */
  function showPanel(shown) {
    panel.hidden = !shown;
    shown && draw();
    toggle.setAttribute("aria-expanded", String(shown));
  }

  /** @param {KeyboardEvent} event */
  function escape(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      open(false);
    }
  }

  return { controls, panel, comparison, step, draw };
}

/** @param {string} text @returns {HTMLElement} */
const heading = (text) => h("p", { class: "comparison-head" }, text);
