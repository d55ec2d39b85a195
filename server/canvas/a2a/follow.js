// @ts-check
/**
 * Follows a conversation: its artifacts, who works in it and who looks on, and the tasks that run. Reconnects by itself.
 *
 * A task that began and ended between two `activity` events is named by none: their `tasks` and `updatedAt` say that
 * something was missed, and it is loaded.
 */

import { NO_METHOD, RequestFailed, TASK_NOT_FOUND, UNSUPPORTED } from "./request_failed.js";
import { createVisibility } from "./visibility.js";
import { createBackoff } from "./retry.js";
import { recordOf, withEntry } from "../state/records.js";
import { CANVAS, TURN, isPaused, isRunning, stateOf } from "../state/task.js";
import { randomId } from "./ids.js";

/** @typedef {import("./client.js").Client} Client */

const POLL_MS = 3_000;
const PAGE_SIZE = 100;
const WHOLE_HISTORY = 10_000;
const MAX_ATTEMPTS = 4;
/** What HTTP answers where there is no such conversation, or where an id cannot be one: asking again does not help. */
const NO_CONTEXT = new Set([400, 404, 410]);

/**
 * What became of a task, as its stream told it.
 * @typedef {object} Outcome
 * @property {string} taskId
 * @property {string} state  as on the wire
 * @property {Message|undefined} message  of its last status
 * @property {Record<string, number>} versions  of the artifacts that it has changed
 */

/**
 * @param {Client} client
 * @param {(action: Action) => void} dispatch
 * @param {string} given  the id of the context, which the server may replace when it is new
 * @param {object} options
 * @param {boolean} options.canvas  the server has the event stream of a context
 * @param {(contextId: string) => void} options.onGone  called when the conversation was deleted
 * @param {(from: string, to: string) => void} options.onRenamed  called when the server has replaced the id
 */
export function followContext(client, dispatch, given, { canvas, onGone, onRenamed }) {
  let contextId = given;
  const controller = new AbortController();
  const { signal } = controller;
  const visibility = createVisibility(signal);
  /** @type {Set<string>} */
  const followed = new Set();
  /** The tasks that were begun here. @type {Set<string>} */
  const begun = new Set();
  /** The states of the tasks of the context, as far as they are known. @type {Map<string, TaskState>} */
  const known = new Map();
  /** @type {{working: string[], tasks: number, updatedAt: string|null}} */
  let activity = { working: [], tasks: 0, updatedAt: null };
  /** What the tasks were last compared with. @type {string|null} */
  let comparedAt = null;
  /** How many tasks the context has had that are not listed. */
  let unlisted = 0;
  let loading = Promise.resolve();
  let comparing = false;
  let starting = 0;
  let following = false;

  /** @param {Connection} connection @param {number} [retryAt] */
  const reportConnection = (connection, retryAt = 0) => dispatch({ type: "connection", contextId, connection, retryAt });

  async function loadTasks() {
    const tasks = await allTasks(client, contextId, { known: begun, includeArtifacts: !canvas });
    tasks.forEach(({ id, status }) => known.set(id, stateOf(status?.state ?? "")));
    dispatch({ type: "tasks", contextId, tasks });
    tasks.filter((task) => isRunning(stateOf(task.status?.state ?? ""))).forEach((task) => follow(task.id));
    if (canvas && tasks.length > 1) {
      await loadVersions();
    }
  }

  /** A listed task does not say what it has changed: the versions of the artifacts say whose they are. */
  async function loadVersions() {
    const { artifacts } = await client.listArtifacts(contextId);
    for (const { artifactId } of artifacts.filter((each) => each.versions > 1)) {
      const { versions } = await client.versions(contextId, artifactId);
      dispatch({ type: "versions", contextId, artifactId, versions });
    }
  }

  /** Reads the event stream of the context, again and again. */
  async function run() {
    const backoff = createBackoff((retryAt) => reportConnection("reconnecting", retryAt));
    /** @type {string|null} */
    let last = null;
    const onOpen = () => {
      backoff.reset();
      reportConnection("online");
      loading = loadTasks().catch(() => {});
    };
    while (!signal.aborted) {
      const seen = visibility.signal;
      let isNew = true;
      try {
        for await (const { id, event, data } of client.contextEvents(contextId, last, onOpen, seen)) {
          isNew && dispatch({ type: "subscribed", contextId });
          isNew = false;
          last = id ?? last;
          take(event, data);
        }
      } catch (error) {
        if (error instanceof RequestFailed && NO_CONTEXT.has(error.code) && !signal.aborted) {
          return onGone(contextId);
        }
      }
      await (seen.aborted ? visibility.whenVisible() : backoff.wait(signal));
    }
  }

  /** @param {string} kind @param {any} data */
  function take(kind, data) {
    if (kind === "activity") {
      activity = { tasks: 0, updatedAt: null, ...data };
      dispatch({ type: "activity", contextId, watchers: data.watchers, working: data.working });
      catchUp();
    } else if (kind === "presence") {
      dispatch({ type: "presence", contextId, roster: data });
    } else if (kind === "message") {
      dispatch({ type: "artifact-event", contextId, event: data });
    } else if (kind === "annotations") {
      dispatch({ type: "annotations-changed", contextId, event: data });
    }
  }

  /** Without the event stream: asks for the tasks from time to time. */
  async function poll() {
    const backoff = createBackoff((retryAt) => reportConnection("reconnecting", retryAt));
    while (!signal.aborted) {
      try {
        await loadTasks();
        backoff.reset();
        reportConnection("online");
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      } catch {
        await backoff.wait(signal);
      }
      await visibility.whenVisible();
    }
  }

  /** Follows what works, and loads what no stream has said. A message on its way will have a stream of its own. */
  function catchUp() {
    if (!starting) {
      activity.working.forEach(follow);
      compare().catch(() => {});
    }
  }

  async function compare() {
    await loading;
    while (!comparing && !starting && !signal.aborted && isBehind()) {
      comparing = true;
      const { tasks, updatedAt } = activity;
      try {
        await (tasks > known.size + unlisted ? loadTasks() : readPaused());
        comparedAt = updatedAt;
        unlisted = Math.max(0, tasks - known.size);
      } finally {
        comparing = false;
      }
    }
  }

  /** Only a task that waits can change without a stream that tells it, besides those that are new. */
  const isBehind = () => activity.tasks > known.size + unlisted || (activity.updatedAt !== comparedAt && findPaused().length > 0);
  const findPaused = () => [...known].filter(([id, state]) => isPaused(state) && !followed.has(id)).map(([id]) => id);

  async function readPaused() {
    const tasks = await Promise.all(findPaused().map((id) => client.getTask(id)));
    for (const task of tasks.filter(({ id }) => !starting && !followed.has(id))) {
      await play([{ task }]);
    }
  }

  /** @param {string} taskId */
  function follow(taskId) {
    if (!followed.has(taskId)) {
      known.has(taskId) || known.set(taskId, "working");
      followTask(taskId).catch(() => {});
    }
  }

  /** @param {string} taskId @returns {Promise<Outcome|null>} */
  async function followTask(taskId) {
    const backoff = createBackoff();
    followed.add(taskId);
    try {
      while (!signal.aborted) {
        const seen = visibility.signal;
        const outcome = await play(client.subscribe(taskId, seen)).catch((error) => endOf(taskId, error));
        if (outcome && !isRunning(stateOf(outcome.state))) {
          return outcome;
        }
        await (seen.aborted ? visibility.whenVisible() : backoff.wait(signal));
      }
      return null;
    } finally {
      followed.delete(taskId);
    }
  }

  /** A task that has ended has no stream: it is read. @param {string} taskId @param {any} error */
  async function endOf(taskId, error) {
    if (error.code === TASK_NOT_FOUND) {
      throw error;
    }
    return error.code === UNSUPPORTED ? play([{ task: await client.getTask(taskId) }]) : null;
  }

  /**
   * Hands the events of a stream on.
   * @param {AsyncIterable<Json>|Json[]} events
   * @param {(taskId: string) => void} [began]
   * @returns {Promise<Outcome|null>}  null if it had no events
   */
  async function play(events, began = () => {}) {
    const stream = randomId();
    /** @type {Outcome|null} */
    let outcome = null;
    try {
      for await (const event of events) {
        event.task && takeId(event.task.contextId);
        dispatch({ type: "task-event", contextId, stream, event });
        if (!outcome && event.task) {
          began(event.task.id);
        }
        event.task && begun.add(event.task.id);
        outcome = outcomeOf(outcome, event);
        outcome && known.set(outcome.taskId, stateOf(outcome.state));
      }
    } catch (error) {
      if (!outcome) {
        throw error;
      }
    }
    return outcome;
  }

  /** A server may give a new conversation an id of its own. @param {string|undefined} next */
  function takeId(next) {
    if (next && next !== contextId && !following) {
      const from = contextId;
      contextId = next;
      onRenamed(from, next);
    }
  }

  /**
   * Sends a message, and follows its task to the end, over any number of connections.
   * @param {Message} message
   * @param {() => void} [arrived]  called when the server has it
   * @returns {Promise<Outcome|null>}  null if the conversation was left meanwhile
   * @throws {RequestFailed} it was refused, or did not arrive
   */
  async function send(message, arrived = () => {}) {
    starting++;
    let started = false;
    const begins = () => {
      if (!started) {
        started = true;
        starting--;
        begin();
        catchUp();
      }
    };
    try {
      const outcome = await deliver(message, (taskId) => {
        followed.add(taskId);
        begins();
        arrived();
      });
      if (!outcome) {
        return null;
      }
      followed.delete(outcome.taskId);
      return isRunning(stateOf(outcome.state)) ? await followTask(outcome.taskId) : outcome;
    } finally {
      // What the server has refused may not have begun the conversation, so there is nothing to follow yet.
      if (!started) {
        started = true;
        starting--;
        catchUp();
      }
    }
  }

  /** A message that did not arrive is sent again: the server knows it by its id. @param {Message} message @param {(taskId: string) => void} began */
  async function deliver(message, began) {
    const backoff = createBackoff();
    for (let attempt = 1; ; attempt++) {
      try {
        const outcome = await play(withTask(client.sendStreaming(message, signal), message), began);
        if (outcome || signal.aborted) {
          return outcome;
        }
      } catch (error) {
        const answered = error instanceof RequestFailed && error.code !== 0 && error.code < 500;
        if (signal.aborted || answered || attempt === MAX_ATTEMPTS) {
          throw error;
        }
      }
      await backoff.wait(signal);
    }
  }

  function begin() {
    if (!following) {
      following = true;
      (canvas ? run() : poll()).catch(() => {});
    }
  }

  return {
    get contextId() {
      return contextId;
    },
    send,
    /** Begins to follow a conversation that is there; one that is new is followed from its first message on. */
    begin() {
      reportConnection("connecting");
      begin();
    },
    stop: () => controller.abort(),
  };
}

/**
 * The tasks of a context. A server that does not list them has at least those that are known.
 * @param {Client} client
 * @param {string} contextId
 * @param {{known: Iterable<string>, includeArtifacts: boolean}} options
 * @returns {Promise<Json[]>}  oldest first
 */
async function allTasks(client, contextId, { known, includeArtifacts }) {
  const tasks = [];
  let pageToken = "";
  try {
    do {
      const asked = { contextId, pageSize: PAGE_SIZE, pageToken, historyLength: WHOLE_HISTORY, includeArtifacts };
      const page = await client.listTasks(asked);
      tasks.push(...page.tasks);
      pageToken = page.nextPageToken;
    } while (pageToken);
  } catch (error) {
    if (isUnlisted(error)) {
      const found = await Promise.all([...known].map((id) => client.getTask(id).catch(notFound)));
      return found.filter((task) => task !== null);
    }
    throw error;
  }
  return tasks.reverse();
}

/** @param {unknown} error @returns {null} */
function notFound(error) {
  if (error instanceof RequestFailed && error.code === TASK_NOT_FOUND) {
    return null;
  }
  throw error;
}

/** Whether a server does not list tasks. @param {unknown} error */
export function isUnlisted(error) {
  return error instanceof RequestFailed && (error.code === NO_METHOD || error.code === UNSUPPORTED);
}

/**
 * The events of a stream. An agent may answer with a message in place of a task: it is shown like a task that has ended.
 * @param {AsyncIterable<Json>} events
 * @param {Message} asked
 */
async function* withTask(events, asked) {
  for await (const event of events) {
    yield event.message ? { task: toTask(asked, event.message) } : event;
  }
}

/** @param {Message} asked @param {Message} message @returns {Json} */
function toTask(asked, message) {
  const status = { state: "TASK_STATE_COMPLETED", timestamp: new Date().toISOString() };
  return { id: message.messageId, contextId: message.contextId || asked.contextId, status, history: [asked, message] };
}

/** @param {Outcome|null} before @param {Json} event @returns {Outcome|null} */
function outcomeOf(before, event) {
  if (event.task) {
    const { id, status } = event.task;
    return { taskId: id, state: status.state, message: status.message, versions: recordOf() };
  }
  if (!before) {
    return null;
  }
  if (event.artifactUpdate) {
    const { artifact, metadata } = event.artifactUpdate;
    const version = metadata?.[CANVAS]?.artifactVersion;
    return { ...before, versions: withEntry(before.versions, artifact.artifactId, version) };
  }
  const { status, metadata } = event.statusUpdate;
  const extra = metadata?.[TURN]?.event_type || metadata?.[CANVAS]?.edit || metadata?.[CANVAS]?.annotations;
  return extra ? before : { ...before, state: status.state, message: status.message };
}
