// @ts-check
/**
 * Has a passage rewritten: what was typed is saved first. In the end its old text stands at the passage, where the user keeps
 * the new one, tries again or undoes it (outcome.js); a failure is reported, and can be tried again.
 */

import { changesOf, linesOf } from "../state/text.js";
import { TEXT } from "../strings.js";

/** @param {App} app */
export function createRewriting(app) {
  const { store } = app;
  return { rewrite, undo, again };

  /** @param {PassageSelection} selection @param {string} instruction @returns {Promise<void>} */
  async function rewrite(selection, instruction) {
    const { contextId } = store.state;
    const { artifactId } = selection;
    const retry = { label: TEXT.retry, run: () => rewrite(selection, instruction) };
    const isOpen = () => app.isOpen(contextId);
    const fail = (/** @type {string} */ text) => app.notify("error", text, retry, contextId ?? undefined);
    const isSaved = await app.flush();
    if (!isOpen()) {
      return;
    }
    if (!isSaved) {
      fail(TEXT.passageNotSent);
      return;
    }
    const before = store.state.artifacts[artifactId];
    const { ok, said, version, declined } = await app.edit(selection, instruction);
    if (!isOpen()) {
      return; // another conversation has no such passage
    }
    if (ok && version !== undefined && version !== selection.version) {
      await arrived(artifactId, version);
      const { version: current, text } = store.state.artifacts[artifactId] ?? {};
      const of = { artifactId, version };
      const place = before?.version === selection.version && current === version && before.text && text ? placeAfter(before.text, text, selection) : null;
      place
        ? store.dispatch({ type: "rewritten", outcome: { ...of, ...place, old: selection.text, instruction, said } })
        : app.notify("info", said, { label: TEXT.undo, run: () => undo(of) }, undefined, of);
    } else if (ok || declined) {
      app.notify("info", said); // nothing was changed, so there is nothing to take back
    } else if (said) {
      fail(said);
    }
  }

  /** Waits until a version is here: it has a stream of its own. @param {string} artifactId @param {number} version @returns {Promise<void>} */
  function arrived(artifactId, version) {
    const isHere = (/** @type {State} */ { artifacts }) => (artifacts[artifactId]?.version ?? 0) >= version && !artifacts[artifactId]?.open;
    return new Promise((resolve) => {
      const end = () => (clearTimeout(timer), stop(), resolve());
      const stop = store.subscribe((state) => isHere(state) && end());
      const timer = setTimeout(end, LATE_MS);
      isHere(store.state) && end();
    });
  }

  /** Takes a change back, unless another version is current by now. @param {{artifactId: string, version: number}} of @returns {Promise<boolean>} */
  async function undo({ artifactId, version }) {
    const { ok, said, version: current } = await app.operate("undo", artifactId, { baseVersion: version });
    app.notify(ok ? "info" : "error", ok ? said : notUndone(version, current) || said);
    return ok;
  }

  /** The passage as it was is rewritten once more. @param {RewriteOutcome} outcome */
  async function again({ artifactId, version, start, end, old, instruction }) {
    const { contextId } = store.state;
    const text = store.state.artifacts[artifactId]?.text ?? "";
    const wished = text.slice(0, start) + old + text.slice(end);
    const { ok, said, version: current = version } = await app.operate("undo", artifactId, { baseVersion: version });
    if (!ok || !app.isOpen(contextId)) {
      ok || app.notify("error", notUndone(version, current) || said);
      return;
    }
    await gone(artifactId, version);
    const now = store.state.artifacts[artifactId];
    if (now?.text === wished) {
      await rewrite({ artifactId, version: now.version, start, end: start + old.length, text: old, ...linesOf(wished, start, start + old.length) }, instruction);
    }
  }

  /** Waits until a version is no longer current. @param {string} artifactId @param {number} version @returns {Promise<void>} */
  function gone(artifactId, version) {
    return new Promise((resolve) => {
      const end = () => (clearTimeout(timer), stop(), resolve());
      const stop = store.subscribe(({ artifacts }) => artifacts[artifactId]?.version !== version && end());
      const timer = setTimeout(end, LATE_MS);
      store.state.artifacts[artifactId]?.version !== version && end();
    });
  }
}

/** If the version has not arrived by then, its change is shown without a place. */
const LATE_MS = 5_000;

/**
 * Where what stands in place of a range is, in the text after changes; null if a change reaches over its ends. Pure.
 * @param {string} before
 * @param {string} after
 * @param {{start: number, end: number}} range
 * @returns {{start: number, end: number}|null}
 */
export function placeAfter(before, after, { start, end }) {
  let [from, to] = [start, end];
  for (const change of changesOf(before, after)) {
    const by = change.inserted - (change.end - change.start);
    const isBefore = change.end < start || (change.end === start && change.start < start);
    if (!isBefore && change.start < start) {
      return null;
    }
    if (change.start <= end && change.end > end) {
      return null;
    }
    from += isBefore ? by : 0;
    to += isBefore || change.start <= end ? by : 0;
  }
  return { start: from, end: to };
}

/** Why a change was not taken back, if it is because another version is current. @param {number} version @param {number|undefined} current */
export function notUndone(version, current = version) {
  if (current < version) {
    return TEXT.alreadyUndone;
  }
  return current > version ? TEXT.changedSince : "";
}
