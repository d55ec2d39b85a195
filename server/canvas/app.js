// @ts-check
/** What a user can do with the page. All input and output is started here; what it brings is dispatched to the store. */

import { formatPlace } from "./address.js";
import { sentence } from "./errors.js";
import { TEXT, say } from "./strings.js";
import { plainName } from "./words.js";
import { createWindows, hasFewConnections } from "./a2a/windows.js";
import { RequestFailed } from "./a2a/request_failed.js";
import { followContext, isUnlisted } from "./a2a/follow.js";
import { randomId } from "./a2a/ids.js";
import { artifactUpdated } from "./state/artifacts.js";
import { mayEdit } from "./state/reducer.js";
import { waitingTask } from "./chat/entries.js";
import { CANVAS, isPaused, textOf } from "./state/task.js";

/** @typedef {import("./state/store.js").Store<State, Action>} Store */
/** @typedef {import("./a2a/client.js").Client} Client */

/**
 * What came of an operation.
 * @typedef {object} Result
 * @property {boolean} ok
 * @property {string} said  a sentence for the user
 * @property {number|undefined} version  that is current now
 * @property {{start: number, end: number}[]} conflicts  the places of its base at which a put could not be merged
 * @property {Json} details  what else the server says of it: the metadata of canvas:v1
 * @property {boolean} busy  the artifact is being written
 * @property {boolean} declined  the agent did not want to, and nothing is wrong
 * @property {boolean} answered  by the server: otherwise it is not known whether it was done
 */

/** @typedef {ReturnType<typeof createApp>} App */

const TEXT_TYPES = /^(text\/|application\/(json|xml|yaml|toml|javascript|x-sh))|\+(json|xml)$/;
const FIRST_PAGE = "";
const LATE_MS = 3_000;
/** A conversation has one or two streams, and a browser six connections. */
const MANY_WINDOWS = 2;

/**
 * @param {Store} store
 * @param {Client} client
 * @param {{navigate?: (hash: string, replace: boolean) => void, session?: import("./identity/session.js").Session}} [options]
 *     `navigate` changes the address bar
 */
export function createApp(store, client, { navigate = () => {}, session } = {}) {
  const { dispatch } = store;
  /** The conversations that were begun here, oldest first. @type {Map<string, ContextSummary>} */
  const begun = new Map();
  const windows = createWindows({ shown: () => store.state.contextId });
  /** @type {ReturnType<typeof followContext>|null} */
  let following = null;
  let wanted = ""; // the query of the newest search

  /**
   * @param {"error"|"info"} kind
   * @param {string} text
   * @param {Notice["action"]} [action]
   * @param {string} [contextId]  the conversation that it is about: it goes with it
   * @param {Notice["of"]} [of]  the version that it is about
   */
  const notify = (kind, text, action, contextId, of) => dispatch({ type: "notice", kind, text, action, contextId, of });

  /** @param {boolean} [replace] */
  function showAddress(replace = false) {
    const { contextId, artifactId, version } = store.state;
    navigate(formatPlace({ contextId, artifactId, version }), replace);
  }

  /**
   * Follows a conversation. A new one gets an id with its first message.
   * @param {string|null} contextId
   * @param {boolean} [exists]
   */
  function openContext(contextId, exists = true) {
    if (contextId === store.state.contextId && following?.contextId === contextId) {
      return;
    }
    following?.stop();
    following = null;
    client.log.clear();
    dispatch({ type: "context-opened", contextId });
    showAddress();
    if (contextId !== null) {
      const canvas = store.state.server?.canvas ?? true;
      following = followContext(client, dispatch, contextId, { canvas, onGone: closeDeleted, onRenamed: takeNewId });
      exists && following.begin();
      store.state.identity && exists && client.listArtifacts(contextId).then(({ shared = null }) => dispatch({ type: "shared", contextId, shared }), () => {});
    }
  }

  /** @param {string} contextId */
  function closeDeleted(contextId) {
    if (store.state.contextId === contextId) {
      notify("error", TEXT.conversationGone);
      openContext(null);
      refresh();
    }
  }

  /** The server has given a new conversation another id. @param {string} from @param {string} to */
  function takeNewId(from, to) {
    const summary = begun.get(from);
    if (summary) {
      begun.delete(from);
      begun.set(to, { ...summary, contextId: to });
    }
    dispatch({ type: "context-renamed", from, to });
    showAddress(true);
  }

  /**
   * Sends a message to the open conversation, or begins one.
   * @param {Part[]} parts
   * @param {{metadata?: Record<string, any>, taskId?: string, messageId?: string}} [fields]
   */
  async function post(parts, { metadata, taskId, messageId = randomId() } = {}) {
    if (store.state.contextId === null) {
      openContext(randomId(), false);
    }
    const contextId = /** @type {string} */ (store.state.contextId);
    const followed = /** @type {ReturnType<typeof followContext>} */ (following);
    /** @type {Message} */
    const message = { messageId, contextId, role: "ROLE_USER", parts, ...(taskId && { taskId }), ...(metadata && { metadata }) };
    const summary = begun.get(contextId) ?? { contextId, name: null, request: textOf(message).slice(0, 200), working: 0, artifacts: [] };
    begun.delete(contextId);
    begun.set(contextId, { ...summary, updatedAt: new Date().toISOString() });
    dispatch({ type: "sending", contextId, message });
    const late = setTimeout(() => sayWhyLate(contextId), LATE_MS);
    try {
      return await followed.send(message, () => (clearTimeout(late), refresh()));
    } catch (error) {
      dispatch({ type: "not-sent", messageId, error: sentence(error) });
      throw error;
    } finally {
      clearTimeout(late);
      refresh();
    }
  }

  /** A message that has not begun: other windows may have all connections of the browser. @param {string} contextId */
  async function sayWhyLate(contextId) {
    if (hasFewConnections() && (await windows.others()) >= MANY_WINDOWS) {
      notify("error", TEXT.noConnectionLeft, undefined, contextId);
    }
  }

  /** A page of a search may be empty and have a next one. @param {string} query @param {string} token */
  async function pageWithContexts(query, token) {
    let page = await client.contexts(query, token);
    while (page.contexts.length === 0 && page.nextPageToken && query === wanted) {
      page = await client.contexts(query, page.nextPageToken);
    }
    return page;
  }

  /** Lists what is found, unless the user has meanwhile typed another query. @param {string} query */
  async function search(query) {
    wanted = query;
    if (store.state.server && !store.state.server.canvas) {
      dispatch({ type: "contexts", contexts: (await knownContexts()).filter(isFound(query)), nextPage: "", query });
      return;
    }
    const page = await pageWithContexts(query, FIRST_PAGE);
    if (query === wanted) {
      dispatch({ type: "contexts", contexts: page.contexts, nextPage: page.nextPageToken ?? "", query });
    }
  }

  /** A server without a list of contexts has perhaps one of their tasks; otherwise those of this page are known. */
  async function knownContexts() {
    try {
      return contextsOf((await client.listTasks({ pageSize: 100, historyLength: 50 })).tasks);
    } catch (error) {
      if (isUnlisted(error)) {
        return [...begun.values()].reverse();
      }
      throw error;
    }
  }

  async function identify() {
    dispatch({ type: "identity", identity: (await session?.identify()) ?? null });
  }

  const refresh = () => search(wanted).catch(() => {});

  /**
   * @param {Operation["op"]} op
   * @param {string} artifactId
   * @param {Record<string, any>} [fields]
   * @param {Part[]} [parts]  what the message says: the instruction of an edit, the content of an upload
   * @param {string} [messageId]  of a message that may have been sent before
   * @returns {Promise<Result>}
   */
  async function operate(op, artifactId, fields = {}, parts = [{ text: op }], messageId = randomId()) {
    try {
      const outcome = await post(parts, { metadata: { [CANVAS]: { op, artifactId, ...fields } }, messageId });
      const refused = outcome?.message?.metadata?.[CANVAS];
      return {
        ok: outcome?.state === "TASK_STATE_COMPLETED",
        said: textOf(outcome?.message),
        version: outcome?.versions[artifactId] ?? refused?.artifactVersion,
        conflicts: refused?.conflicts ?? [],
        details: refused ?? {},
        busy: refused?.busy === true,
        declined: outcome?.state === "TASK_STATE_REJECTED" && !refused,
        answered: outcome !== null,
      };
    } catch (error) {
      const answered = error instanceof RequestFailed && error.code !== 0 && error.code < 500;
      return { ok: false, said: sentence(error), version: undefined, conflicts: [], details: {}, busy: false, declined: false, answered };
    }
  }

  return {
    store,
    client,
    /** Saves what was typed into the documents; whether all of it is saved. The document pane replaces this (`document/pane.js`). @type {() => Promise<boolean>} */
    flush: async () => true,
    openContext,
    refresh,
    search,
    notify,

    /** Reads the agent card, and the list of conversations. */
    async start() {
      const card = await client.card();
      const uris = (card.capabilities?.extensions ?? []).map((/** @type {any} */ each) => each.uri);
      const { name, description } = card;
      dispatch({ type: "server", server: { name, description, canvas: uris.includes(CANVAS), card } });
      if (Object.keys(card.securitySchemes ?? {}).length) {
        await identify();
      }
      await search("");
    },

    /** Asks for a key, also where it is not needed. */
    async signIn() {
      if (await session?.signIn()) {
        await identify();
        await search("");
      }
    },

    signOut: () => session?.signOut(),

    /** The user who is signed in beside a link that is open as a guest; empty for none. */
    userBeside: () => session?.beside ?? "",

    leaveLink: () => session?.leaveLink(),

    /** The next page of conversations. */
    async more() {
      const { query, nextPage } = store.state;
      const page = await pageWithContexts(query, nextPage);
      if (query === wanted) {
        dispatch({ type: "contexts", contexts: page.contexts, nextPage: page.nextPageToken ?? "", query, more: true });
      }
    },

    /**
     * A message to the agent. While a task waits for an answer, it is the answer.
     * @param {string} text
     * @param {Part[]} [files]
     */
    async send(text, files = []) {
      const waiting = waitingTask(store.state);
      const parts = [...(text ? [{ text }] : []), ...files];
      await post(parts, { taskId: waiting?.taskId, metadata: lookingAt(store.state) }).catch(() => {});
    },

    /** A message to the agent that answers nothing. @param {string} text */
    ask: (text) => post([{ text }]).catch(() => {}),

    /** @param {string} taskId @param {string} text */
    answer: (taskId, text) => post([{ text }], { taskId }).catch(() => {}),

    /** Sends a message that did not arrive once more. @param {string} messageId */
    async resend(messageId) {
      const { message } = store.state.outgoing[messageId];
      await post(message.parts, message).catch(() => {});
    },

    /** @param {string} messageId */
    discard: (messageId) => dispatch({ type: "discarded", messageId }),

    /** Asks again for what a task failed to do. @param {string} taskId */
    async retry(taskId) {
      // Later ones are answers to questions of the task.
      const message = store.state.tasks[taskId]?.messages.find((each) => each.role === "ROLE_USER");
      if (message) {
        await post(message.parts, { metadata: message.metadata }).catch(() => {});
      }
    },

    /** @param {string} taskId */
    async cancel(taskId) {
      try {
        const task = await client.cancelTask(taskId);
        // The stream of a task that runs says so itself; one that waited for an answer has none.
        if (isPaused(store.state.tasks[taskId]?.state)) {
          dispatch({ type: "task-event", contextId: task.contextId, stream: randomId(), event: { task } });
        }
      } catch (error) {
        notify("error", sentence(error));
      }
    },

    /**
     * Has the agent rewrite a passage.
     * @param {PassageSelection} selection
     * @param {string} instruction
     * @param {"replace"|"insert_before"|"insert_after"} [strategy]
     */
    edit({ artifactId, version, start, end, text, others = [] }, instruction, strategy = "replace") {
      const selection = { start, end, text };
      const places = others.length > 0 ? { selections: [selection, ...others] } : { selection };
      const fields = { baseVersion: version, ...places, strategy };
      return operate("edit", artifactId, fields, [{ text: instruction }]);
    },

    operate,

    /**
     * Makes artifacts of files, or new versions of those that have their names.
     * @param {File[]} files
     */
    async upload(files) {
      if (!mayEdit(store.state)) {
        notify("error", store.state.shared ? TEXT.readOnly : TEXT.noDocuments);
        return;
      }
      let { contextId } = store.state;
      for (const file of files) {
        const read = await readDocument(file);
        if (!isOpen(contextId)) {
          return notify("error", TEXT.leftWhileAdding);
        }
        if (!read) {
          notify("error", say(TEXT.documentNotRead, { name: plainName(file.name) }));
          continue;
        }
        const put = operate("put", file.name, { name: file.name, ...read.fields }, [read.part]);
        ({ contextId } = store.state); // the first file may begin the conversation
        const result = await put;
        if (isOpen(contextId)) {
          result.ok ? openArtifact(file.name) : notify("error", result.said);
        } else if (!result.ok) {
          return notify("error", TEXT.leftWhileAdding);
        }
      }
    },

    isOpen,

    openArtifact,

    /** @param {string} contextId @param {{name: string|null}|{agentsSuggest: boolean}} fields */
    async changeContext(contextId, fields) {
      const context = await client.change(contextId, fields);
      dispatch({ type: "context-changed", context });
    },

    /** @param {string} contextId */
    async remove(contextId) {
      await client.remove(contextId);
      closeContext(contextId);
    },

    /** Ends the share that somebody else has given the user. @param {string} contextId */
    async leave(contextId) {
      const { shares } = await client.shares(contextId);
      await client.shares(contextId, undefined, shares[0].shareId);
      closeContext(contextId);
    },

    /** @param {string} artifactId @returns {Promise<Json[]>} the oldest first */
    versions: async (artifactId) => store.state.server?.canvas === false ? [] : (await client.versions(contextOf(store.state), artifactId)).versions,

    /** @param {string} artifactId @param {number} version */
    version: async (artifactId, version) =>
      contentOf(artifactId, await client.version(contextOf(store.state), artifactId, version)),
  };

  /** Whether a conversation is open, also under the id that the server has given it. @param {string|null} contextId */
  function isOpen(contextId) {
    return contextId === store.state.contextId || (contextId !== null && contextId === store.state.givenId);
  }

  /** A conversation that is no longer the user's. @param {string} contextId */
  function closeContext(contextId) {
    dispatch({ type: "context-removed", contextId });
    if (store.state.contextId === contextId) {
      openContext(null);
    }
  }

  /**
   * Shows an artifact, or an old version of it.
   * @param {string|null} artifactId
   * @param {number|null} [version]
   */
  function openArtifact(artifactId, version = null) {
    dispatch({ type: "artifact-shown", artifactId, version });
    showAddress();
    if (artifactId !== null && version !== null) {
      readVersion(artifactId, version);
    }
  }

  /** @param {string} artifactId @param {number} version */
  async function readVersion(artifactId, version) {
    const contextId = contextOf(store.state);
    try {
      const content = contentOf(artifactId, await client.version(contextId, artifactId, version));
      dispatch({ type: "version-read", contextId, content });
    } catch (error) {
      notify("error", sentence(error));
      openArtifact(artifactId);
    }
  }
}

/** A closed version, as an artifact. @param {string} artifactId @param {Json} version */
function contentOf(artifactId, { name, parts, number, author }) {
  const metadata = { [CANVAS]: { artifactVersion: number, author } };
  return artifactUpdated(undefined, { artifact: { artifactId, name, parts }, lastChunk: true, taskId: "", metadata });
}

/** @param {Blob & {name?: string}} file @returns {Promise<Part>} */
export async function filePart(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return { raw: btoa(binary), filename: file.name, mediaType: file.type || "application/octet-stream" };
}

/** What a `put` of a file says; null if the file cannot be read. @param {File} file @returns {Promise<{fields: {text?: string}, part: Part}|null>} */
async function readDocument(file) {
  try {
    const text = TEXT_TYPES.test(file.type) || file.type === "" ? decodeText(await file.arrayBuffer()) : null;
    return text === null ? { fields: {}, part: await filePart(file) } : { fields: { text }, part: { text: file.name } };
  } catch {
    return null;
  }
}

/** The text of bytes; null if they are not UTF-8. @param {ArrayBuffer} bytes */
function decodeText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** @param {State} state */
function contextOf({ contextId }) {
  return contextId ?? "";
}

/** What the user looks at goes with a message: "this" and "here" then have a meaning. @param {State} state */
function lookingAt({ selection, server }) {
  if (!selection || !server?.canvas) {
    return undefined;
  }
  const { artifactId, version, start, end, text } = selection;
  return { [CANVAS]: { artifactId, baseVersion: version, selection: { start, end, text } } };
}

/** @param {string} query */
const isFound = (query) => (/** @type {ContextSummary} */ { request }) => request.toLowerCase().includes(query.toLowerCase());

/** @param {Json[]} tasks  newest first @returns {ContextSummary[]} */
function contextsOf(tasks) {
  /** @type {Map<string, ContextSummary>} */
  const contexts = new Map();
  for (const task of tasks) {
    const known = contexts.get(task.contextId);
    const first = (task.history ?? []).find((/** @type {Message} */ each) => each.role === "ROLE_USER");
    const request = textOf(first).slice(0, 200) || known?.request || "";
    const updatedAt = known?.updatedAt ?? task.status?.timestamp ?? "";
    contexts.set(task.contextId, { contextId: task.contextId, name: null, request, updatedAt, working: 0, artifacts: [] });
  }
  return [...contexts.values()];
}
