// @ts-check
/** Has a passage rewritten: what was typed is saved first, and in the end the user is told, and can undo it or try again. */

import { TEXT } from "../strings.js";

/**
 * @param {App} app
 * @returns {(selection: PassageSelection, instruction: string) => Promise<void>}
 */
export function createRewriting(app) {
  return rewrite;

  /** @param {PassageSelection} selection @param {string} instruction */
  async function rewrite(selection, instruction) {
    const { contextId } = app.store.state;
    const again = { label: TEXT.retry, run: () => rewrite(selection, instruction) };
    const isOpen = () => app.isOpen(contextId);
    const fail = (/** @type {string} */ text) => app.notify("error", text, again, contextId ?? undefined);
    const isSaved = await app.flush();
    if (!isOpen()) {
      return;
    }
    if (!isSaved) {
      fail(TEXT.passageNotSent);
      return;
    }
    const { ok, said, version, declined } = await app.edit(selection, instruction);
    if (!isOpen()) {
      return; // another conversation has no such passage
    }
    if (ok && version !== undefined && version !== selection.version) {
      const of = { artifactId: selection.artifactId, version };
      app.notify("info", said, { label: TEXT.undo, run: () => undo(of) }, undefined, of);
    } else if (ok || declined) {
      app.notify("info", said); // nothing was changed, so there is nothing to take back
    } else if (said) {
      fail(said);
    }
  }

  /** Takes this change back, unless another version is current by now. @param {{artifactId: string, version: number}} of */
  async function undo({ artifactId, version }) {
    const { ok, said, version: current } = await app.operate("undo", artifactId, { baseVersion: version });
    app.notify(ok ? "info" : "error", ok ? said : notUndone(version, current) || said);
  }
}

/** Why a change was not taken back, if it is because another version is current. @param {number} version @param {number|undefined} current */
export function notUndone(version, current = version) {
  if (current < version) {
    return TEXT.alreadyUndone;
  }
  return current > version ? TEXT.changedSince : "";
}
