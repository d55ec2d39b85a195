// @ts-check
/** Waits between attempts to reach the server: longer each time, and not at all once the network is back. */

const FIRST_MS = 500;
const LONGEST_MS = 15_000;

/**
 * @param {(retryAt: number) => void} [waiting]  told when the next attempt will be made
 */
export function createBackoff(waiting = () => {}) {
  let attempts = 0;
  return {
    /** After a success. */
    reset() {
      attempts = 0;
    },
    /** @param {AbortSignal} signal */
    async wait(signal) {
      const delay = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempts++) * (0.75 + Math.random() / 2);
      waiting(Date.now() + delay);
      await pause(delay, signal);
    },
  };
}

/**
 * Resolves after some time, when the network or the tab comes back, or when `signal` aborts.
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.("online", done);
      globalThis.document?.removeEventListener("visibilitychange", onVisible);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const onVisible = () => document.visibilityState === "visible" && done();
    const timer = setTimeout(done, ms);
    globalThis.addEventListener?.("online", done);
    globalThis.document?.addEventListener("visibilitychange", onVisible);
    signal.addEventListener("abort", done);
    if (signal.aborted) {
      done();
    }
  });
}
