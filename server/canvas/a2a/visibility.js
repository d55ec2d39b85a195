// @ts-check
/**
 * Whether somebody sees the page. A browser has six connections to a server of HTTP/1.1, for all of its tabs, and a
 * stream takes one: a tab that is hidden lets its streams go, and opens them again when it is shown.
 */

const HIDDEN_MS = 2_000;

/**
 * @param {AbortSignal} signal  ends it
 * @returns {{readonly signal: AbortSignal, whenVisible: () => Promise<void>}}
 *   `signal` is that of a stream to open now: it aborts soon after the page is hidden. `whenVisible` resolves while the page is
 *   shown, and once `signal` has ended.
 */
export function createVisibility(signal) {
  const page = globalThis.document;
  let stream = new AbortController();
  /** @type {(() => void)[]} */
  let waiting = [];
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let timer;

  const letGo = () => stream.abort();
  const wake = () => {
    waiting.forEach((resolve) => resolve());
    waiting = [];
  };
  function onChange() {
    clearTimeout(timer);
    if (page.visibilityState === "hidden") {
      timer = setTimeout(letGo, HIDDEN_MS);
    } else if (stream.signal.aborted) {
      stream = new AbortController();
      wake();
    }
  }
  function end() {
    page?.removeEventListener("visibilitychange", onChange);
    clearTimeout(timer);
    letGo();
    wake();
  }

  page?.addEventListener("visibilitychange", onChange);
  signal.addEventListener("abort", end, { once: true });
  if (page?.visibilityState === "hidden") {
    letGo();
  }
  return {
    get signal() {
      return stream.signal;
    },
    whenVisible: () => (stream.signal.aborted && !signal.aborted ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
  };
}
