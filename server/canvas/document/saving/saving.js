// @ts-check
/**
 * Saves what the user types into the documents of the open conversation, as `put` with `merge`: after a pause, when they leave
 * the document or the page, and before a passage is sent. unsaved.js decides; this sends, waits, and keeps.
 */

import { randomId } from "../../a2a/ids.js";
import { CANVAS } from "../../state/task.js";
import { readStored, typedKey, writeStored } from "../../storage.js";
import { TEXT, say } from "../../strings.js";
import { plainName } from "../../words.js";
import * as unsaved from "./unsaved.js";

/** @typedef {import("./unsaved.js").Unsaved} Unsaved */
/** @typedef {{apply?: (changes: any, text: string) => void}} Shown  where a document is shown to be typed into */
/** @typedef {ReturnType<typeof createSaving>} Saving */

/**
 * A document into which the user may type.
 * @typedef {object} Entry
 * @property {string} artifactId
 * @property {Unsaved} state
 * @property {ArtifactView} artifact  as it was taken over last
 * @property {boolean} changed  it has been typed into since it was opened
 * @property {string} error  why it could not be saved
 * @property {number} timer
 * @property {number} keeping
 * @property {Promise<void>|null} putting  a put is on its way, or its version is
 * @property {() => void} come  called when no version is waited for any more
 */

/** @type {Partial<Record<import("./unsaved.js").Phase, string>>} */
const SAID = { saved: TEXT.saved, refused: TEXT.notSaved, conflict: TEXT.notSaved };
const PAUSE_MS = 800;
const KEEP_MS = 200;
const AGAIN_MS = 5_000;
/** How long to wait for a version that the server has announced. */
const UNSEEN_MS = 4_000;

/**
 * @param {App} app
 * @param {{findView: (artifactId: string) => Shown|null, onChange: () => void}} pane  `onChange` is called when anything here has
 */
export function createSaving(app, pane) {
  const { store } = app;
  /** @type {Map<string, Entry>} */
  const entries = new Map();
  let contextId = store.state.contextId;
  store.subscribe(take);
  addEventListener("pagehide", () => leave({ keepalive: true }));
  addEventListener("pageshow", retryAll);
  addEventListener("online", retryAll);
  document.addEventListener("visibilitychange", onHidden);
  take(store.state);

  return {
    /** The document, to be typed into from now on. @param {ArtifactView} artifact @returns {Unsaved} */
    open(artifact) {
      return (entries.get(artifact.artifactId) ?? add(artifact, unsaved.open(artifact.version, artifact.text ?? ""))).state;
    },
    /** What is shown of a document instead of the server's text; null if it is that. @param {string} artifactId */
    unsavedText(artifactId) {
      const state = entries.get(artifactId)?.state;
      return state && !unsaved.isSaved(state) && !state.refused ? state.text : null;
    },
    /** Where a range of the server's text is in what is shown. @template {{start: number, end: number}} R @param {string} artifactId @param {R} range @returns {R} */
    mapToShown(artifactId, range) {
      const state = entries.get(artifactId)?.state;
      return (state && unsaved.mapToShown(state, state.version, range)) ?? range;
    },
    /** @param {string} artifactId @param {{text: string, changes: any, undone: boolean}} input */
    takeInput(artifactId, { text, changes, undone }) {
      const entry = entries.get(artifactId);
      if (entry) {
        entry.changed = true;
        entry.error = "";
        step(entry, { state: unsaved.type(entry.state, changes, text, undone), changes: null });
        later(entry, PAUSE_MS);
      }
    },
    /** The state of saving a document, in a word. @param {string} artifactId @returns {{text: string, failed: boolean}} */
    status(artifactId) {
      const entry = entries.get(artifactId);
      if (!entry?.changed) {
        return { text: "", failed: false };
      }
      if (entry.error) {
        return { text: say(TEXT.notSavedBecause, { error: entry.error }), failed: true };
      }
      if (entry.artifact.open && !unsaved.isSaved(entry.state)) {
        return { text: TEXT.changesKept, failed: false };
      }
      return { text: SAID[unsaved.phaseOf(entry.state)] ?? TEXT.saving, failed: false };
    },
    /** What the user has to decide. @param {string} artifactId */
    pieces: (artifactId) => {
      const entry = entries.get(artifactId);
      return entry ? unsaved.pieces(entry.state) : null;
    },
    /** @param {string} artifactId @param {string} text */
    resolve(artifactId, text) {
      const entry = entries.get(artifactId);
      if (entry) {
        step(entry, unsaved.resolve(entry.state, text));
        later(entry, 0);
      }
    },
    flush,
    retryAll,
  };

  /** @param {ArtifactView} artifact @param {Unsaved} state */
  function add(artifact, state) {
    /** @type {Entry} */
    const entry = {
      artifactId: artifact.artifactId,
      state,
      artifact,
      changed: false,
      error: "",
      timer: 0,
      keeping: 0,
      putting: null,
      come() {},
    };
    entries.set(entry.artifactId, entry);
    return entry;
  }

  /** @param {State} state */
  function take(state) {
    if (state.contextId !== contextId) {
      leave({ keepalive: false });
      entries.clear();
      contextId = state.contextId;
    }
    for (const artifact of Object.values(state.artifacts)) {
      const entry = entries.get(artifact.artifactId) ?? restore(artifact);
      if (entry && artifact !== entry.artifact && !artifact.open && artifact.text !== null) {
        const waited = entry.artifact.open;
        entry.artifact = artifact;
        step(entry, unsaved.takeVersion(entry.state, artifact.version, artifact.text));
        waited && unsaved.isReady(entry.state) && later(entry, 0);
      } else if (entry) {
        entry.artifact = artifact;
      }
    }
  }

  /** What was typed before the page was reloaded. @param {ArtifactView} artifact */
  function restore(artifact) {
    const stored = artifact.open ? null : readStored(typedKey(contextId, artifact.artifactId));
    if (!stored) {
      return null;
    }
    const entry = add({ ...artifact }, unsaved.fromStored(stored));
    entry.changed = true;
    app.notify("info", say(TEXT.changesBack, { name: plainName(artifact.name) }));
    later(entry, 0);
    return entry;
  }

  /** @param {Entry} entry @param {import("./unsaved.js").Step} next */
  function step(entry, { state, changes }) {
    entry.state = state;
    if (changes) {
      pane.findView(entry.artifactId)?.apply?.(changes, state.text);
    }
    unsaved.isAhead(state) || entry.come();
    keepSoon(entry);
    pane.onChange();
  }

  /** @param {Entry} entry */
  function keepSoon(entry) {
    if (unsaved.isSaved(entry.state)) {
      keep(entry);
    } else if (!entry.keeping) {
      entry.keeping = window.setTimeout(() => keep(entry), KEEP_MS);
    }
  }

  /** @param {Entry} entry */
  function keep(entry) {
    clearTimeout(entry.keeping);
    entry.keeping = 0;
    writeStored(typedKey(contextId, entry.artifactId), unsaved.isSaved(entry.state) ? null : unsaved.toStored(entry.state));
  }

  /** @param {Entry} entry @param {number} delay */
  function later(entry, delay) {
    clearTimeout(entry.timer);
    entry.timer = window.setTimeout(() => save(entry), delay);
  }

  /** Sends a put, unless one is on its way, and another one afterwards if more was typed. @param {Entry} entry */
  function save(entry) {
    clearTimeout(entry.timer);
    entry.putting ??= put(entry).finally(() => {
      entry.putting = null;
      if (isOpen(entry) && unsaved.isReady(entry.state) && !entry.error) {
        later(entry, PAUSE_MS);
      }
      pane.onChange();
    });
    return entry.putting;
  }

  /** Sends what was typed, and waits for the version that comes of it. @param {Entry} entry */
  async function put(entry) {
    if (!entry.artifact.open) {
      step(entry, unsaved.reduce(entry.state));
      entry.state = unsaved.isReady(entry.state) ? unsaved.send(entry.state, randomId()) : entry.state;
    }
    const { sent, version } = entry.state;
    if (!sent || sent.made) {
      return;
    }
    entry.error = "";
    keep(entry);
    pane.onChange();
    if (sent.steps) {
      await goTo(entry, version, sent.steps);
    } else {
      const fields = { text: sent.text, baseVersion: version, merge: true };
      const result = await app.operate("put", entry.artifactId, fields, undefined, sent.id);
      isOpen(entry) && takeAnswer(entry, result);
    }
    await waitForVersion(entry);
  }

  /** Goes to a version that the document had. @param {Entry} entry @param {number} baseVersion @param {import("./unsaved.js").Steps} steps */
  async function goTo(entry, baseVersion, { op, count, version }) {
    for (let nth = 0; nth < count && baseVersion; nth++) {
      const { ok, version: reached = 0 } = await app.operate(op, entry.artifactId, { baseVersion });
      baseVersion = ok ? reached : 0;
      if (!isOpen(entry)) {
        return;
      }
    }
    // Otherwise others were faster, or the server did not answer: it is put.
    step(entry, baseVersion === version ? unsaved.acknowledge(entry.state, version) : unsaved.failed(entry.state));
  }

  /** @param {Entry} entry @param {import("../../app.js").Result} result */
  function takeAnswer(entry, { ok, said, version = 0, conflicts, busy, answered }) {
    if (ok) {
      // Of a put that was sent before, only the end is told.
      step(entry, unsaved.acknowledge(entry.state, version || entry.state.version, version === 0));
    } else if (!answered) {
      entry.error = said || TEXT.putNoAnswer;
      later(entry, AGAIN_MS);
    } else if (conflicts.length > 0) {
      step(entry, unsaved.refuse(entry.state, version, conflicts));
    } else {
      entry.error = busy ? "" : said;
      step(entry, unsaved.failed(entry.state));
    }
  }

  /** Waits for the version that the server has announced. If it does not arrive, it was missed while disconnected. @param {Entry} entry */
  async function waitForVersion(entry) {
    if (unsaved.isAhead(entry.state)) {
      const timer = setTimeout(() => entry.come(), UNSEEN_MS);
      await new Promise((/** @type {(value?: any) => void} */ resolve) => (entry.come = resolve));
      clearTimeout(timer);
    }
    if (isOpen(entry) && unsaved.isAhead(entry.state)) {
      step(entry, unsaved.assumeArrived(entry.state));
    }
  }

  /** Whether it is of the conversation that is open. @param {Entry} entry */
  function isOpen(entry) {
    return entries.get(entry.artifactId) === entry;
  }

  /**
   * Saves all that was typed, now.
   * @returns {Promise<boolean>} whether all of it is saved
   */
  async function flush() {
    const all = await Promise.all([...entries.values()].map(flushEntry));
    return all.every(Boolean);
  }

  /** @param {Entry} entry */
  async function flushEntry(entry) {
    for (let round = 0; round < 3 && !unsaved.isSaved(entry.state); round++) {
      await save(entry);
      if (entry.error || entry.state.refused || entry.artifact.open) {
        break;
      }
    }
    return unsaved.isSaved(entry.state);
  }

  function retryAll() {
    for (const entry of entries.values()) {
      entry.error = "";
      unsaved.isSaved(entry.state) || save(entry);
    }
  }

  /** Phones do not always say that a page is left. */
  function onHidden() {
    if (document.visibilityState === "hidden") {
      entries.forEach(keep);
      flush();
    }
  }

  /**
   * The page or the conversation is left: what is not saved is sent without waiting, and is kept. A put that is on its way ends
   * with the page or the conversation, so it is sent again (rule 6).
   * @param {{keepalive: boolean}} options
   */
  function leave({ keepalive }) {
    for (const entry of entries.values()) {
      clearTimeout(entry.timer);
      if (unsaved.isReady(entry.state) && !entry.artifact.open) {
        entry.state = unsaved.send(entry.state, randomId(), false);
      }
      const { sent, version } = entry.state;
      if (sent && !sent.made && !sent.steps) {
        const fields = { op: "put", artifactId: entry.artifactId, text: sent.text, baseVersion: version, merge: true };
        const parts = [{ text: "put" }];
        app.client.leave({ messageId: sent.id, contextId: contextId ?? "", role: "ROLE_USER", parts, metadata: { [CANVAS]: fields } }, { keepalive });
      }
      keep(entry);
    }
  }
}
