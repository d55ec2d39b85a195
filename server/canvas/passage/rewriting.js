// @ts-check
/** Has a passage rewritten: what was typed is saved first, and in the end the user is told, and can undo it or try again. */

/** @typedef {import("../types.js").Selection} Selection */

/**
 * @param {import("../app.js").App} app
 * @returns {(selection: Selection, instruction: string) => Promise<void>}
 */
export function createRewriting(app) {
  return rewrite;

  /** @param {Selection} selection @param {string} instruction */
  async function rewrite(selection, instruction) {
    const { contextId } = app.store.state;
    const again = { label: "Retry", run: () => rewrite(selection, instruction) };
    const isOpen = () => app.store.state.contextId === contextId;
    const fail = (/** @type {string} */ text) => app.notify("error", text, again, contextId ?? undefined);
    const isSaved = await app.flush();
    if (!isOpen()) {
      return;
    }
    if (!isSaved) {
      fail("What you typed could not be saved, so the passage was not sent.");
      return;
    }
    const { ok, said, version, declined } = await app.edit(selection, instruction);
    if (!isOpen()) {
      return; // another conversation has no such passage
    }
    // Where nothing was changed there is nothing to take back.
    if (declined || (ok && (version === undefined || version === selection.version))) {
      app.notify("info", said);
    } else if (ok) {
      app.notify("info", said, { label: "Undo", run: () => undo(selection.artifactId, version) });
    } else if (said) {
      fail(said);
    }
  }

  /** Takes this change back, unless another one came after it. @param {string} artifactId @param {number|undefined} baseVersion */
  async function undo(artifactId, baseVersion) {
    const { ok, said } = await app.operate("undo", artifactId, baseVersion ? { baseVersion } : {});
    app.notify(ok ? "info" : "error", said);
  }
}
