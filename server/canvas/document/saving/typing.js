// @ts-check
/** Typing into the document that is shown: what its editor shows, how it stands with saving, and what there is to decide. */

import { button } from "../../controls.js";
import { h } from "../../dom.js";
import { partOf } from "../../loading.js";
import { linesOf } from "../../state/text.js";
import { overlays } from "../../state/artifacts.js";
import { hasStored, typedKey } from "../../storage.js";
import { createConflict } from "./conflict_view.js";
import { TEXT } from "../../strings.js";

/** @typedef {import("../views.js").View} View */
/** @typedef {import("../markdown/selection.js").Passage} Passage */

const savingPart = partOf(() => import("./saving.js"));

/**
 * @param {App} app
 * @param {{viewOf: (artifactId: string) => View|null, onChange: () => void}} pane  `viewOf` gives the view into which an artifact
 *     can be typed, `onChange` is called when something other than the state has
 */
export function createTyping(app, { viewOf, onChange }) {
  const { store } = app;
  /** @type {import("./saving.js").Saving|null} */
  let saving = null;
  /** @type {Promise<any>|null} */
  let loading = null;
  let artifactId = "";
  const text = h("span", {});
  const retry = button(TEXT.retry, () => saving?.retryAll(), { class: "link-button", hidden: true });
  const status = h("span", { class: "document-saved", role: "status" }, text, retry);
  const conflict = createConflict((decided) => saving?.resolve(artifactId, decided));

  /** What was typed before the page was reloaded. The document may have come before this was loaded. @param {State} state */
  const resume = (state) => state.contextId && !loading && hasStored(typedKey(state.contextId)) && load();
  store.subscribe(resume);
  resume(store.state);

  return {
    status,
    conflict: conflict.element,
    load,
    /** Saves all that was typed. @returns {Promise<boolean>} whether all of it is saved */
    flush: async () => (saving ? saving.flush() : true),
    /** Whether something was typed that is not saved yet. @param {string} id */
    isUnsaved: (id) => typeof saving?.unsavedText(id) === "string",
    /** What was typed into a view of an artifact; of another one than it shows, nothing is taken. @param {string} id @param {import("../views.js").Input} input */
    takeInput: (id, input) => (input.artifactId === id ? saving?.takeInput(id, input) : onChange()),
    draw,
    show,
    /** The artifact as it is shown where it is not typed into. @param {ArtifactView} artifact */
    withUnsaved(artifact) {
      const typed = artifact.open ? null : saving?.unsavedText(artifact.artifactId);
      return typed === null || typed === undefined ? artifact : { ...artifact, text: typed };
    },
    select,
    /** Where a range of an artifact is in the text that is typed into. @param {string} id @param {import("../views.js").SourceRange} range */
    toShown: (id, range) => saving?.mapToShown(id, range) ?? range,
  };

  /** @param {import("../../loading.js").Tell} [tell] */
  async function load(tell) {
    loading ??= savingPart.get(tell).then(({ createSaving }) => {
      saving = createSaving(app, { findView: viewOf, onChange: () => saving && onChange() });
      onChange();
    });
    await loading;
  }

  /** @param {ArtifactView|null} artifact  the current one, null while an old version is shown */
  function draw(artifact) {
    artifactId = artifact?.artifactId ?? "";
    const { text: said, failed } = saving?.status(artifactId) ?? { text: "", failed: false };
    if (text.textContent !== said) {
      text.textContent = text.title = said;
    }
    status.classList.toggle("document-not-saved", failed);
    status.hidden = said === "";
    retry.hidden = !failed;
    conflict.update(artifact?.open ? null : (saving?.pieces(artifactId) ?? null));
  }

  /**
   * Shows an artifact in a view into which it can be typed.
   * @param {View} view
   * @param {State} state
   * @param {ArtifactView} artifact
   * @param {Note[]} notes  that are placed in the text that is shown
   */
  function show(view, state, artifact, notes) {
    if (!saving || artifact.open) {
      view.update(artifact.text ?? "", artifact);
      view.mark({ selection: null, writing: [] });
      view.setReadOnly(true);
      return;
    }
    const { version, text } = saving.open(artifact);
    view.update(text, artifact);
    view.setReadOnly(saving.pieces(artifact.artifactId) !== null);
    if (version === artifact.version) {
      const place = /** @type {import("./saving.js").Saving} */ (saving).mapToShown;
      const writing = overlays(artifact, Object.values(state.edits)).map((one) => place(artifact.artifactId, one));
      const selection = state.selection?.artifactId === artifact.artifactId ? state.selection : null;
      const others = (selection?.others ?? []).map((one) => place(artifact.artifactId, one));
      view.mark({ selection: selection && place(artifact.artifactId, selection), others, writing, notes });
    }
  }

  /**
   * A passage that the user has selected in the editor, as one of the artifact. What was typed is saved first.
   * @param {string} id
   * @param {Passage|null} passage
   * @returns {Promise<PassageSelection|null>}
   */
  async function select(id, passage) {
    if (!passage || !saving || (saving.unsavedText(id) !== null && !(await saving.flush()))) {
      return null;
    }
    const artifact = store.state.artifacts[id];
    const now = viewOf(id)?.selection?.();
    const all = now ? [now, ...(now.others ?? [])] : [];
    if (!artifact || !now || artifact.open || store.state.version !== null || all.some((one) => artifact.text?.slice(one.start, one.end) !== one.text)) {
      return null;
    }
    const written = overlays(artifact, Object.values(store.state.edits)).some((one) => all.some(({ start, end }) => one.start < end && one.end > start));
    return written ? null : { artifactId: id, version: artifact.version, ...now, ...linesOf(artifact.text ?? "", now.start, now.end) };
  }
}
