// @ts-check
/** The requests of the page: A2A 1.0 over JSON-RPC with both extensions, and the server's artifacts over HTTP. */

import { createLog } from "./log.js";
import { RequestFailed } from "./request_failed.js";
import { jsonRpcAddress, otherServers, whyNoAnswer } from "./servers.js";
import { isEventStream, serverEvents } from "./sse.js";
import { watchdog } from "./watchdog.js";
import { CANVAS, TURN } from "../state/task.js";
import { TEXT, say } from "../strings.js";
import { wellFormed } from "../words.js";

/** @typedef {ReturnType<typeof createClient>} Client */
/** @typedef {import("./log.js").Exchange} Exchange */
/** @typedef {{response: Response, exchange: Exchange}} Answer */

/**
 * @param {string} base  the address of the server, with a slash at its end
 * @param {{log?: import("./log.js").Log, fetch?: typeof fetch, home?: string}} [options]  `home` is the page's own server, if
 *     it is another one
 */
export function createClient(base, options = {}) {
  const log = options.log ?? createLog();
  const send = options.fetch ?? ((...given) => fetch(...given));
  const { home = base } = options;
  let endpoint = base;
  let extensions = [TURN, CANVAS];
  let streams = true;
  let number = 0;

  /**
   * @param {string} url
   * @param {{method?: string, headers?: Record<string, string>, body?: string|null, signal?: AbortSignal, keepalive?: boolean, shared?: string}} request
   *     `shared` names a stream that other windows may request, too
   * @param {string} name
   * @returns {Promise<Answer>}
   */
  async function ask(url, request, name) {
    const { method = "GET", headers = {}, body = null, signal, keepalive, shared } = request;
    const exchange = log.request(name, { url, method, headers, body });
    try {
      /** @type {import("./shared_fetch.js").SharedInit} */
      const init = { method, headers, body, signal, keepalive, shared, credentials: "same-origin", cache: "no-cache" };
      const response = await send(url, init);
      if (response.status === 401) {
        throw new RequestFailed(TEXT.signInRequired, 401);
      }
      return { response, exchange };
    } catch (error) {
      if (error instanceof RequestFailed) {
        exchange.failed(error.message);
        throw error;
      }
      if (signal?.aborted) {
        throw error;
      }
      exchange.failed(String(error));
      throw new RequestFailed(
        home === base ? TEXT.noAnswer : await whyNoAnswer(base, home, send),
        0,
      );
    }
  }

  /** @param {string} method @param {any} params @param {{signal?: AbortSignal, keepalive?: boolean, shared?: string}} [options]  `keepalive`: the request outlives the page */
  function rpc(method, params, options) {
    const headers = {
      "Content-Type": "application/json",
      "A2A-Version": "1.0",
      ...(extensions.length > 0 && { "A2A-Extensions": extensions.join(", ") }),
    };
    const body = jsonBody({ jsonrpc: "2.0", id: ++number, method, params });
    return ask(endpoint, { method: "POST", headers, body, ...options }, method);
  }

  /** @param {string} method @param {any} params */
  async function call(method, params) {
    return resultOf(await jsonOf(await rpc(method, params)));
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {AbortSignal} signal
   * @param {string} [shared]
   * @returns {AsyncGenerator<Json, void, void>}  the results
   */
  async function* stream(method, params, signal, shared) {
    const watch = watchdog(signal);
    try {
      const { response, exchange } = await rpc(method, params, { signal: watch.signal, shared });
      if (!isEventStream(response)) {
        resultOf(await jsonOf({ response, exchange }), response.status);
        throw new RequestFailed(TEXT.noStream, response.status);
      }
      for await (const { data } of serverEvents(bodyOf(response), watch.alive)) {
        const answer = JSON.parse(data);
        exchange.received(answer, data.length);
        yield resultOf(answer);
      }
    } finally {
      watch.end();
    }
  }

  /**
   * @param {string} path  below `artifacts`, percent-encoded
   * @param {{method?: string, headers?: Record<string, string>, body?: any, signal?: AbortSignal, keepalive?: boolean, shared?: string}} [request]
   * @returns {Promise<Answer>}
   */
  async function artifacts(path, { method, headers, body, signal, keepalive, shared } = {}) {
    const typed = body === undefined ? headers : { ...headers, "Content-Type": "application/json" };
    const text = body === undefined ? null : jsonBody(body);
    const answer = await ask(`${base}artifacts${path}`, { method, headers: typed, body: text, signal, keepalive, shared }, `artifacts${path}`);
    if (!answer.response.ok) {
      await refuse(answer);
    }
    return answer;
  }

  /** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
  async function json(path, signal) {
    return jsonOf(await artifacts(path, { headers: { Accept: "application/json" }, signal }));
  }

  return {
    base,
    home,
    log,

    /** The servers that the page may talk to beside its own. */
    others: () => otherServers(home, send).catch(() => /** @type {string[]} */ ([])),

    /** The agent card. A server of another origin is talked to at the address that its card has. */
    async card() {
      const answer = await ask(`${base}.well-known/agent-card.json`, {}, "agent card");
      if (!answer.response.ok) {
        throw new RequestFailed(say(TEXT.noAgentCard, { base }), 0);
      }
      const card = await jsonOf(answer);
      const address = jsonRpcAddress(card);
      endpoint = home === base ? base : address;
      const offered = (card.capabilities?.extensions ?? []).map((/** @type {any} */ each) => each.uri);
      extensions = extensions.filter((uri) => offered.includes(uri));
      streams = card.capabilities?.streaming ?? false;
      return card;
    },

    /** @param {Message} message @param {AbortSignal} signal */
    sendStreaming: (message, signal) =>
      streams ? stream("SendStreamingMessage", { message }, signal) : yieldOnce(call("SendMessage", { message })),

    /**
     * Sends a message as its conversation is left: nobody waits for an answer.
     * @param {Message} message
     * @param {{keepalive: boolean}} options  `keepalive`: as the page is left, too. Browsers refuse more than 64 KB of it.
     */
    leave: (message, { keepalive }) => void rpc("SendMessage", { message, configuration: { returnImmediately: true } }, { keepalive }).catch(() => {}),

    /** @param {string} id @param {AbortSignal} signal */
    subscribe: (id, signal) => stream("SubscribeToTask", { id }, signal, `task ${id}`),

    /** @param {string} id @returns {Promise<Json>} */
    getTask: (id) => call("GetTask", { id }),

    /** @param {string} id @returns {Promise<Json>} */
    cancelTask: (id) => call("CancelTask", { id }),

    /** @param {any} params @returns {Promise<{tasks: Json[], nextPageToken: string}>} */
    listTasks: (params) => call("ListTasks", params),

    /** @param {string} query @param {string} pageToken */
    contexts: (query, pageToken) => json(`?${new URLSearchParams({ query, pageToken })}`),

    /** What is found in the texts of documents. @param {string} text @param {number} pageSize @param {string} pageToken @param {AbortSignal} signal */
    texts: (text, pageSize, pageToken, signal) => json(`?${new URLSearchParams({ text, pageSize: String(pageSize), pageToken })}`, signal),

    /** Changes the name of a context, or whether agents suggest in it. @param {string} context @param {{name: string|null}|{agentsSuggest: boolean}} body */
    change: async (context, body) => jsonOf(await artifacts(`/${pathOf(context)}`, { method: "PATCH", body })),

    /** @param {string} context */
    remove: async (context) => void (await artifacts(`/${pathOf(context)}`, { method: "DELETE" })),

    /** The shares of a context: with a body one more, with an id one less. @param {string} context @param {any} [body] @param {string} [id] */
    shares: async (context, body, id = "") => {
      const answer = await artifacts(`/${pathOf(context)}/shares${id && `/${pathOf(id)}`}`, { method: id ? "DELETE" : body ? "POST" : "GET", body });
      return id ? null : jsonOf(answer);
    },

    /** Tells others where the cursor of a window is. @param {string} context @param {{window: string}} body @param {{keepalive?: boolean}} [options] */
    async move(context, body, options) {
      await artifacts(`/${pathOf(context)}/presence`, { method: "POST", body, ...options });
    },

    /** @param {string} context @returns {Promise<{artifacts: Json[], shared?: Shared}>}  without their content */
    listArtifacts: (context) => json(`/${pathOf(context)}`),

    /** @param {string} context @param {string} artifact */
    versions: (context, artifact) => json(`/${artifactPath(context, artifact)}/versions`),

    /** The browser keeps the answer, and asks again with its ETag. @param {string} context @param {string} artifact @returns {Promise<Json[]>} */
    async annotations(context, artifact) {
      const answer = await artifacts(`/${artifactPath(context, artifact)}/annotations`, { headers: { Accept: "application/ld+json" } });
      return (await jsonOf(answer)).first.items.map((/** @type {Json} */ each) => each.canvas);
    },

    /** @param {string} context @param {string} artifact @param {number} version */
    version: (context, artifact, version) => json(`/${artifactPath(context, artifact)}/versions/${version}`),

    /**
     * A raw artifact, an artifact or one of its versions in another format, or a context as a zip.
     * @param {string} context
     * @param {string} [artifact]
     * @param {string} [format]
     * @param {number|null} [version]
     * @returns {Promise<File>}
     */
    async download(context, artifact, format, version = null) {
      const path = artifact === undefined ? pathOf(context) : artifactPath(context, artifact);
      const query = artifact === undefined ? "format=zip" : format ? `format=${format}` : "raw=1&download=1";
      const { response } = await artifacts(`/${path}${version === null ? "" : `/versions/${version}`}?${query}`);
      return new File([await response.blob()], fileName(response.headers.get("Content-Disposition") ?? ""));
    },

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
        const { response, exchange } = await artifacts(`/${pathOf(context)}/events`, { headers, signal: watch.signal, shared: "events" });
        opened();
        for await (const { id, event, data } of serverEvents(bodyOf(response), watch.alive)) {
          const content = JSON.parse(data);
          exchange.received(content, data.length, event === "message" ? "" : event);
          yield { id, event, data: content };
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

/** Ids of artifacts that are words of the paths, too. */
const RESERVED = new Map([["events", "%65vents"], ["presence", "%70resence"], ["shares", "%73hares"]]);

/** @param {string} context @param {string} artifact */
function artifactPath(context, artifact) {
  return `${pathOf(context)}/${RESERVED.get(artifact) ?? pathOf(artifact)}`;
}

/** The name of a file in a header Content-Disposition. @param {string} header */
function fileName(header) {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(header)?.[1];
  return encoded ? decodeURIComponent(encoded) : (/filename="([^"]*)"/.exec(header)?.[1] ?? "download");
}

/** @param {Promise<Json>} answer */
async function* yieldOnce(answer) {
  yield await answer;
}

/** The body of a request, which has no half of a surrogate pair: servers refuse it. @param {any} value */
const jsonBody = (value) => JSON.stringify(wellFormed(value));

/** @param {Response} response @returns {ReadableStream<Uint8Array>} */
function bodyOf(response) {
  return /** @type {ReadableStream<Uint8Array>} */ (response.body);
}

/** @param {Answer} answer */
async function jsonOf({ response, exchange }) {
  const text = await response.text();
  try {
    const content = JSON.parse(text);
    exchange.received(content, text.length);
    return content;
  } catch {
    exchange.failed(`Status ${response.status}: ${text}`);
    throw new RequestFailed(say(TEXT.notJson, { status: response.status }), response.status);
  }
}

/** What stands between the page and the server may refuse in words of its own. @param {any} answer @param {number} [status] */
function resultOf({ result, error }, status = 0) {
  if (error) {
    const said = typeof error === "string" ? error : error.message;
    throw new RequestFailed(said || "The server refused the request without giving a reason.", error.code ?? status, error.data ?? error.details);
  }
  return result;
}

/** @param {Answer} answer @returns {Promise<never>} */
async function refuse(answer) {
  const { response } = answer;
  const { error } = await jsonOf(answer);
  throw new RequestFailed(error?.message ?? `The server answered with status ${response.status}.`, response.status);
}
