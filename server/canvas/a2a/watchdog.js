// @ts-check
/** Ends a stream on which nothing arrives: the server says something every few seconds. */

const SILENCE_MS = 15_000;

/** A signal that aborts with another one, or when nothing has arrived for some time. @param {AbortSignal} outer */
export function watchdog(outer) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  outer.aborted ? abort() : outer.addEventListener("abort", abort);
  let timer = setTimeout(abort, SILENCE_MS);
  return {
    signal: controller.signal,
    alive() {
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE_MS);
    },
    end() {
      clearTimeout(timer);
      outer.removeEventListener("abort", abort);
      controller.abort();
    },
  };
}
