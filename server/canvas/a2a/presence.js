// @ts-check
/**
 * Whether somebody sees the page. A browser has six connections to a server of HTTP/1.1, for all of its tabs, and a
 * stream takes one: a tab that is hidden lets its streams go, and opens them again when it is shown.
 */

const HIDDEN_MS = 2_000;

/**
 * @param {AbortSignal} signal  ends it
 * @returns {{readonly signal: AbortSignal, shown: () => Promise<void>}}
 *   `signal` is that of a stream to open now: it aborts soon after the page is hidden. `shown` resolves while the page is
 *   shown, and once `signal` has ended.
 */
export function createPresence(signal) {
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
  function changed() {
    clearTimeout(timer);
    if (page.visibilityState === "hidden") {
      timer = setTimeout(letGo, HIDDEN_MS);
    } else if (stream.signal.aborted) {
      stream = new AbortController();
      wake();
    }
  }
  function end() {
    page?.removeEventListener("visibilitychange", changed);
    clearTimeout(timer);
    letGo();
    wake();
  }

  page?.addEventListener("visibilitychange", changed);
  signal.addEventListener("abort", end, { once: true });
  if (page?.visibilityState === "hidden") {
    letGo();
  }
  return {
    get signal() {
      return stream.signal;
    },
    shown: () => (stream.signal.aborted && !signal.aborted ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
  };
}
