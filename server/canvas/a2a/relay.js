// @ts-check
/**
 * One stream of the server for all windows of a browser that request the same one. It runs in a shared worker.
 *
 * Rule 1: two requests are for the same stream if they have the same owner, address, headers and name. A credential is a header,
 *         or a cookie of the owner, so that no window receives what another credential has opened.
 * Rule 2: a window that joins a stream receives everything since its beginning, which has the whole state, or everything after its
 *         own Last-Event-ID; then what follows, in order.
 * Rule 3: a stream that cannot serve a window that way, because it began after another id or has become too long to keep, stays
 *         with the windows that it has. The window opens a new one, which takes its place for those that come later.
 * Rule 4: a stream ends with its last window, and nothing of it is kept.
 */

import { isEventStream, parseEvent, serverBlocks } from "./sse.js";
import { watchdog } from "./watchdog.js";

/**
 * The request of a window; `name` says which stream, as the body of a request may differ between windows.
 * @typedef {{owner: string, name: string, url: string, init: {method?: string, headers: Record<string, string>, body?: string|null, credentials?: RequestCredentials, cache?: RequestCache}}} StreamRequest
 *
 * What a window receives: the head of the answer, its text piece by piece, and its end.
 * @typedef {{type: "head", status: number, headers: [string, string][]}|{type: "text", text: string}|{type: "end"}|{type: "failed", error: string}} Relayed
 *
 * @typedef {(said: Relayed) => void} Listener
 * @typedef {ReturnType<typeof createRelay>} Relay
 */

const LAST_ID = "Last-Event-ID";
const MAX_SIZE = 16_000_000;

/** @param {typeof fetch} send @param {{maxSize?: number}} [options]  `maxSize` of what is kept of a stream, in characters */
export function createRelay(send, { maxSize = MAX_SIZE } = {}) {
  /** @type {Map<string, Stream>} */
  const streams = new Map();

  /** @param {string} key @param {StreamRequest} request @param {string|null} from */
  function begin(key, request, from) {
    const stream = createStream(from, maxSize, () => streams.get(key) === stream && streams.delete(key));
    streams.set(key, stream);
    stream.run(send, request);
    return stream;
  }

  return {
    /** How many streams are open. */
    get size() {
      return streams.size;
    },

    /** @param {StreamRequest} request @param {Listener} listener @returns {() => void} leaves the stream */
    join(request, listener) {
      const { [LAST_ID]: last = null, ...headers } = request.init.headers;
      const key = JSON.stringify([request.owner, request.url, request.name, headers]);
      const open = streams.get(key);
      // One from the beginning serves every window, unless it is too long to keep.
      const whole = open && !open.isTooLong ? { ...request, init: { ...request.init, headers } } : null;
      const stream = open?.serves(last) ? open : begin(key, whole ?? request, whole ? null : last);
      stream.join(listener, last);
      return () => stream.leave(listener);
    },
  };
}

/** @typedef {ReturnType<typeof createStream>} Stream */

/**
 * @param {string|null} from  the id after which it begins
 * @param {number} maxSize
 * @param {() => void} ended  called when no window can join it
 */
function createStream(from, maxSize, ended) {
  const controller = new AbortController();
  /** @type {Set<Listener>} */
  const listeners = new Set();
  /** @type {Relayed|null} */
  let head = null;
  /** Events, in their order; null if they were too long to keep. @type {{id: string|null, text: string}[]|null} */
  let kept = [];
  let size = 0;
  /** The newest event of each kind without an id: it replaces the ones before. @type {Map<string, string>} */
  const newest = new Map();

  /** @param {Relayed} said */
  const tell = (said) => listeners.forEach((listener) => listener(said));

  /** @param {string} block */
  function keep(block) {
    const event = parseEvent(block);
    if (event && event.id === null && event.event !== "message") {
      newest.set(event.event, `${block}\n\n`);
    } else if (event && kept) {
      kept.push({ id: event.id, text: `${block}\n\n` });
      size += block.length;
      kept = size > maxSize ? null : kept;
    }
  }

  /** The index of the first event that a window has to receive; null if the stream cannot serve it. @param {string|null} last */
  function startFor(last) {
    const at = last === null ? -1 : (kept?.findLastIndex(({ id }) => id === last) ?? -1);
    return kept && (at >= 0 || last === from || from === null) ? at + 1 : null;
  }

  /** @param {Relayed} said */
  function finish(said) {
    ended();
    tell(said);
    listeners.clear();
    controller.abort();
  }

  /** @param {Response} response @param {() => void} alive */
  async function relay(response, alive) {
    head = { type: "head", status: response.status, headers: [...response.headers] };
    tell(head);
    if (!response.body || !isEventStream(response)) {
      ended();
      return tell({ type: "text", text: await response.text() });
    }
    for await (const block of serverBlocks(response.body, alive)) {
      keep(block);
      tell({ type: "text", text: `${block}\n\n` });
    }
  }

  return {
    get isTooLong() {
      return kept === null;
    },

    /** @param {string|null} last */
    serves: (last) => startFor(last) !== null,

    /** @param {Listener} listener @param {string|null} last */
    join(listener, last) {
      const missed = (kept ?? []).slice(startFor(last) ?? 0).map(({ text }) => text).concat(...newest.values());
      listeners.add(listener);
      head && listener(head);
      missed.length && listener({ type: "text", text: missed.join("") });
    },

    /** @param {Listener} listener */
    leave(listener) {
      listeners.delete(listener);
      listeners.size === 0 && finish({ type: "end" });
    },

    /** @param {typeof fetch} send @param {StreamRequest} request */
    async run(send, { url, init }) {
      const watch = watchdog(controller.signal);
      try {
        await relay(await send(url, { ...init, signal: watch.signal }), watch.alive);
        finish({ type: "end" });
      } catch (error) {
        finish({ type: "failed", error: String(error) });
      } finally {
        watch.end();
      }
    },
  };
}

const PING_MS = 20_000;

/**
 * Serves a window at its port: one port is one stream. A window that does not answer for a while is frozen or has crashed: it
 * leaves, and reconnects if it ever wakes up.
 * @param {Relay} relay
 * @param {MessagePort} port
 */
export function serveWindow(relay, port) {
  let leave = () => {};
  let answered = true;
  const timer = setInterval(() => {
    answered ? port.postMessage({ type: "ping" }) : dropWindow();
    answered = false;
  }, PING_MS);
  function dropWindow() {
    clearInterval(timer);
    leave();
    port.close();
  }
  port.onmessage = ({ data }) => {
    answered = true;
    if (data.type === "open") {
      leave = relay.join(data.request, (said) => port.postMessage(said));
    } else if (data.type === "leave") {
      dropWindow();
    }
  };
}
