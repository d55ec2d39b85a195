// @ts-check
/**
 * Streams that the windows of a browser share: `fetch`, by way of the shared worker. Over HTTP/1.1 a browser has six connections to
 * a server, for all windows together; shared, a stream takes one of them.
 */

/** `shared` is the name of a stream that several windows may ask for. @typedef {RequestInit & {shared?: string}} SharedInit */

/** A port to the worker for each stream: if the worker has crashed, the browser starts it again. @typedef {{port: MessagePort, onerror: ((event: any) => void)|null}} Worker */

/**
 * @param {(() => Worker)|null} start  null where the browser has no shared workers: each window then has its own streams
 * @param {{owner?: () => string, send?: typeof fetch}} [options]  `owner` is the user whose cookies the requests carry
 * @returns {typeof fetch}
 */
export function createSharedFetch(start, { owner = () => "", send = (...given) => fetch(...given) } = {}) {
  let usable = start !== null;
  return (url, init = {}) => {
    const { shared: name, signal, ...rest } = /** @type {SharedInit} */ (init);
    if (!usable || !start || !name || !signal) {
      return send(url, init);
    }
    try {
      return relay(start(), { owner: owner(), name, url: String(url), init: rest }, signal, () => (usable = false));
    } catch {
      usable = false;
      return send(url, init);
    }
  };
}

/**
 * @param {Worker} worker
 * @param {{owner: string, name: string, url: string, init: RequestInit}} request
 * @param {AbortSignal} signal
 * @param {() => void} broken  called when the worker cannot be loaded
 * @returns {Promise<Response>}
 */
function relay(worker, request, signal, broken) {
  const { port } = worker;
  const encoder = new TextEncoder();
  /** @type {ReadableStreamDefaultController<Uint8Array>} */
  let output;
  const close = () => {
    port.postMessage({ type: "leave" });
    port.close();
    globalThis.removeEventListener?.("pagehide", onPageHide);
    signal.removeEventListener("abort", onAbort);
  };
  const body = new ReadableStream({ start: (controller) => void (output = controller), cancel: close });
  /** @type {(error: unknown) => void} */
  let fail = () => {};
  const onAbort = () => fail(new DOMException("The stream was left.", "AbortError"));
  /** A page that comes back from the back/forward cache reconnects. */
  const onPageHide = () => fail(new TypeError("The page was left."));
  return new Promise((resolve, reject) => {
    fail = (error) => {
      close();
      reject(error);
      output.error(error);
    };
    worker.onerror = () => {
      broken();
      fail(new TypeError("The shared worker could not be loaded."));
    };
    port.onmessage = ({ data }) => {
      if (data.type === "head") {
        resolve(new Response(body, { status: data.status, headers: data.headers }));
      } else if (data.type === "text") {
        output.enqueue(encoder.encode(data.text));
      } else if (data.type === "ping") {
        port.postMessage({ type: "here" });
      } else if (data.type === "failed") {
        fail(new TypeError(data.error));
      } else {
        reject(new TypeError("The stream ended before the server answered."));
        close();
        output.close();
      }
    };
    globalThis.addEventListener?.("pagehide", onPageHide);
    signal.addEventListener("abort", onAbort);
    signal.aborted ? onAbort() : port.postMessage({ type: "open", request });
  });
}
