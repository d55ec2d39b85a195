// @ts-check
/** The requests of the page: A2A 1.0 over JSON-RPC with both extensions, and the server's artifacts over HTTP. */

import { serverEvents } from "./sse.js";
import { CANVAS, TURN } from "../state/task.js";

/** @typedef {import("../types.js").Message} Message */
/** @typedef {import("../types.js").Json} Json */

/**
 * A request that was refused. `message` is a sentence for the user.
 * `code` is that of JSON-RPC, or the status of HTTP; 0 if nobody answered.
 */
export class RequestFailed extends Error {
  /** @param {string} message @param {number} code @param {any[]} [details] */
  constructor(message, code, details = []) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** JSON-RPC's code of A2A's UnsupportedOperation: a finished task has no stream. */
export const UNSUPPORTED = -32004;
/** JSON-RPC's code of A2A's TaskNotFound. */
export const TASK_NOT_FOUND = -32001;

const SILENCE_MS = 15_000;

/**
 * What is written to the log of a client, for the developer view.
 * @typedef {object} LogEntry
 * @property {number} at  ms since 1970
 * @property {"request"|"event"|"error"} kind
 * @property {string} name  the method, or the path
 * @property {any} body
 * @property {{url: string, method: string, headers: Record<string, string>, body: string|null}} [request]
 */

/**
 * @typedef {ReturnType<typeof createClient>} Client
 */

/**
 * @param {string} base  the address of the server, with a slash at its end
 * @param {{log?: (entry: LogEntry) => void, fetch?: typeof fetch}} [options]
 */
export function createClient(base, options = {}) {
  const log = options.log ?? (() => {});
  const send = options.fetch ?? ((...given) => fetch(...given));
  let endpoint = base;
  let number = 0;

  /**
   * @param {string} url
   * @param {{method?: string, headers?: Record<string, string>, body?: string|null, signal?: AbortSignal}} request
   * @param {string} name
   */
  async function ask(url, request, name) {
    const { method = "GET", headers = {}, body = null, signal } = request;
    log({ at: Date.now(), kind: "request", name, body: body && JSON.parse(body), request: { url, method, headers, body } });
    try {
      return await send(url, { method, headers, body, signal, credentials: "same-origin", cache: "no-cache" });
    } catch (error) {
      if (signal?.aborted) {
        throw error;
      }
      log({ at: Date.now(), kind: "error", name, body: String(error) });
      throw new RequestFailed("The server does not answer. Look whether it runs and whether you are online.", 0);
    }
  }

  /** @param {string} method @param {any} params @param {AbortSignal} [signal] */
  function rpc(method, params, signal) {
    const headers = {
      "Content-Type": "application/json",
      "A2A-Version": "1.0",
      "A2A-Extensions": `${TURN}, ${CANVAS}`,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++number, method, params });
    return ask(endpoint, { method: "POST", headers, body, signal }, method);
  }

  /** @param {string} method @param {any} params */
  async function call(method, params) {
    const answer = await jsonOf(await rpc(method, params));
    log({ at: Date.now(), kind: "event", name: method, body: answer });
    return resultOf(answer);
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<Json, void, void>}  the results
   */
  async function* stream(method, params, signal) {
    const watch = watchdog(signal);
    try {
      const response = await rpc(method, params, watch.signal);
      if (!isEventStream(response)) {
        resultOf(await jsonOf(response));
        throw new RequestFailed("The server answers without a stream.", response.status);
      }
      for await (const { data } of serverEvents(bodyOf(response), watch.alive)) {
        const answer = JSON.parse(data);
        log({ at: Date.now(), kind: "event", name: method, body: answer });
        yield resultOf(answer);
      }
    } finally {
      watch.end();
    }
  }

  /**
   * @param {string} path  below `artifacts`, percent-encoded
   * @param {{method?: string, headers?: Record<string, string>, body?: any, signal?: AbortSignal}} [request]
   */
  async function artifacts(path, { method, headers, body, signal } = {}) {
    const typed = body === undefined ? headers : { ...headers, "Content-Type": "application/json" };
    const text = body === undefined ? null : JSON.stringify(body);
    const response = await ask(`${base}artifacts${path}`, { method, headers: typed, body: text, signal }, path);
    if (!response.ok) {
      await refuse(response);
    }
    return response;
  }

  /** @param {string} path @returns {Promise<any>} */
  async function json(path) {
    const answer = await (await artifacts(path, { headers: { Accept: "application/json" } })).json();
    log({ at: Date.now(), kind: "event", name: path, body: answer });
    return answer;
  }

  return {
    base,

    /** The agent card. A server of another origin is talked to at the address that its card has. */
    async card() {
      const response = await ask(`${base}.well-known/agent-card.json`, {}, "agent card");
      const card = await jsonOf(response);
      const found = (card.supportedInterfaces ?? []).find(
        (/** @type {any} */ each) => each.protocolBinding === "JSONRPC" && each.protocolVersion.startsWith("1."),
      );
      if (!found) {
        throw new RequestFailed("This server does not speak A2A 1.0 over JSON-RPC.", 0);
      }
      endpoint = isOwn(base) ? base : found.url;
      return card;
    },

    /** @param {Message} message @param {AbortSignal} signal */
    sendStreaming: (message, signal) => stream("SendStreamingMessage", { message }, signal),

    /** @param {string} id @param {AbortSignal} signal */
    subscribe: (id, signal) => stream("SubscribeToTask", { id }, signal),

    /** @param {string} id @returns {Promise<Json>} */
    getTask: (id) => call("GetTask", { id }),

    /** @param {string} id @returns {Promise<Json>} */
    cancelTask: (id) => call("CancelTask", { id }),

    /** @param {any} params @returns {Promise<{tasks: Json[], nextPageToken: string}>} */
    listTasks: (params) => call("ListTasks", params),

    /** @param {string} query @param {string} pageToken */
    contexts: (query, pageToken) => json(`?${new URLSearchParams({ query, pageToken })}`),

    /** @param {string} context @param {string|null} name */
    rename: async (context, name) =>
      (await artifacts(`/${pathOf(context)}`, { method: "PATCH", body: { name } })).json(),

    /** @param {string} context */
    remove: async (context) => void (await artifacts(`/${pathOf(context)}`, { method: "DELETE" })),

    /** @param {string} context @param {string} artifact */
    versions: (context, artifact) => json(`/${artifactPath(context, artifact)}/versions`),

    /** @param {string} context @param {string} artifact @param {number} version */
    version: (context, artifact, version) => json(`/${artifactPath(context, artifact)}/versions/${version}`),

    /** The address of a raw artifact, or of a context as a zip. @param {string} context @param {string} [artifact] */
    downloadUrl: (context, artifact) =>
      artifact === undefined
        ? `${base}artifacts/${pathOf(context)}?format=zip`
        : `${base}artifacts/${artifactPath(context, artifact)}?raw=1&download=1`,

    /**
     * The events of a context.
     * @param {string} context
     * @param {string|null} lastEventId
     * @param {() => void} opened  called when the server has accepted the stream
     * @param {AbortSignal} signal
     */
    async *contextEvents(context, lastEventId, opened, signal) {
      const watch = watchdog(signal);
      try {
        const headers = { Accept: "text/event-stream", ...(lastEventId ? { "Last-Event-ID": lastEventId } : {}) };
        const response = await artifacts(`/${pathOf(context)}/events`, { headers, signal: watch.signal });
        opened();
        for await (const event of serverEvents(bodyOf(response), watch.alive)) {
          log({ at: Date.now(), kind: "event", name: event.event, body: JSON.parse(event.data) });
          yield event;
        }
      } finally {
        watch.end();
      }
    },
  };
}

/** @param {string} id */
function pathOf(id) {
  return id === "." || id === ".." ? id.replaceAll(".", "%2E") : encodeURIComponent(id);
}

/** @param {string} context @param {string} artifact */
function artifactPath(context, artifact) {
  return `${pathOf(context)}/${artifact === "events" ? "%65vents" : pathOf(artifact)}`;
}

/** @param {string} base */
function isOwn(base) {
  return typeof location !== "undefined" && new URL(base).origin === location.origin;
}

/** A signal that aborts with another one, or when nothing has arrived for some time. @param {AbortSignal} outer */
function watchdog(outer) {
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

/** @param {Response} response */
function isEventStream(response) {
  return (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

/** @param {Response} response @returns {ReadableStream<Uint8Array>} */
function bodyOf(response) {
  return /** @type {ReadableStream<Uint8Array>} */ (response.body);
}

/** @param {Response} response */
async function jsonOf(response) {
  try {
    return await response.json();
  } catch {
    throw new RequestFailed(`The server answers with status ${response.status}, and not in JSON.`, response.status);
  }
}

/** @param {any} answer */
function resultOf(answer) {
  if (answer.error) {
    throw new RequestFailed(answer.error.message, answer.error.code, answer.error.data ?? answer.error.details);
  }
  return answer.result;
}

/** @param {Response} response @returns {Promise<never>} */
async function refuse(response) {
  const { error } = await jsonOf(response);
  throw new RequestFailed(error?.message ?? `The server answers with status ${response.status}.`, response.status);
}
