// @ts-check
/**
 * What stands in the thread of a conversation: a pure function of the state.
 *
 * Rules:
 * 1. Of what the agent says in one turn only the newest text is shown, and at the end only the reply.
 * 2. There is one status line per running task, and it is the newest.
 * 3. What a person typed into a document is one line per document, however often it was saved.
 * 4. Of edits and steps through the versions in a row the newest is shown, and those before it are one line, to be opened.
 * 5. A request that failed, changed nothing and is made again at once is shown once.
 * 6. Comments and suggestions stand beside the document: no task that is about them is shown, unless it waits for an answer.
 * 7. Thinking, tool calls and tags do not occur: the fold (state/task.js) has dropped them.
 */
import { isAboutAnnotations } from "../state/annotations.js";
import { mergeRecords, recordOf } from "../state/records.js";
import { CANVAS, conversation, isPaused, isRunning, textOf } from "../state/task.js";
import { TEXT, say } from "../strings.js";
import { choicesOf, formatCount, operationWords, passageWords, plainName } from "../words.js";
import { approvalsOf, approves, isButtons } from "./approvals.js";

/** @typedef {{artifactId: string, name: string, version: number}} Changed */

/**
 * @typedef {{key: string, kind: "user", message: Message, place: string, sending: boolean}
 *   | {key: string, kind: "not-sent", messageId: string, text: string}
 *   | {key: string, kind: "agent", text: string, state: "final"|"interim"|"writing"}
 *   | {key: string, kind: "operation", op: string, what: string, detail: string, outcome: string, adds: boolean}
 *   | {key: string, kind: "edits", text: string, edits: Extract<Entry, {kind: "operation"}>[]}
 *   | {key: string, kind: "status", text: string, queued: boolean}
 *   | {key: string, kind: "failed"|"refused"|"stopped", text: string, taskId: string, newest: boolean}
 *   | {key: string, kind: "question", text: string, taskId: string, permission: boolean, choices: string[]}
 *   | {key: string, kind: "approval"} & import("./approvals.js").Approval
 *   | {key: string, kind: "changed", changed: Changed[]}} Entry
 */

/** So many edits before the newest are one line. */
const FOLDED = 2;

/** @param {State} state @returns {Entry[]} */
export function entriesOf(state) {
  const sent = Object.values(state.outgoing).filter((each) => each.contextId === state.contextId);
  const tasks = Object.values(state.tasks).filter(isConversation);
  const requests = [...tasks.map(requestOf), ...sent.map(({ message }) => message)];
  const isOperation = (/** @type {string|undefined} */ op) => op && !isAboutAnnotations(op);
  const shown = tasks.flatMap((task, at) => (isMadeAgain(state, task, requests[at + 1]) ? [] : isOperation(task.operation?.op) ? operation(state, task) : turn(state, task)));
  return [...withEditsFolded(withoutRepeatedPuts(shown)), ...sent.flatMap(onItsWay(state))];
}

/**
 * The task that the user can stop: the newest that works. All operations but edits are done in a moment.
 * @param {State} state
 * @returns {TaskView|undefined}
 */
export function runningTask(state) {
  return Object.values(state.tasks).findLast((task) => isRunning(task.state) && (task.operation?.op ?? "edit") === "edit");
}

/** The task that waits for an answer, unless the answer is for others to give. @param {State} state @returns {TaskView|undefined} */
export function waitingTask(state) {
  const waiting = Object.values(state.tasks).findLast((task) => isPaused(task.state));
  return waiting && (mayApprove(state) || !approvalsOf(waiting.messages.at(-1)).length) ? waiting : undefined;
}

/** Whether the user answers requests for approval here. @param {State} state */
function mayApprove({ shared }) {
  return !shared || shared.level === "approve";
}

/** @param {TaskView} task */
const requestOf = ({ messages }) => messages.find(({ role }) => role === "ROLE_USER");

/** @param {State} state @param {TaskView} task @param {Message|undefined} next  the request after it */
function isMadeAgain(state, task, next) {
  const asked = requestOf(task);
  const words = (/** @type {Message} */ message) => JSON.stringify([textOf(message), message.parts.length, message.metadata?.[CANVAS]?.op]);
  return task.state === "failed" && asked !== undefined && next !== undefined && words(asked) === words(next) && changedBy(state, task).length === 0;
}

// ------------------------------------------------------------------------------------------------- what was said

/** @param {State} state @param {TaskView} task @returns {Entry[]} */
function turn(state, task) {
  const messages = conversation(task);
  const last = messages.at(-1);
  const ended = !isRunning(task.state) && last?.role === "ROLE_AGENT" ? endOf(state, task, textOf(last)) : null;
  const said = (ended ? messages.slice(0, -1) : messages).flatMap((message, at) => saidBy(state, task, message, messages[at - 1], messages[at + 1]));
  const writing = task.reply ? [agent(`${task.taskId}/reply`, task.reply, "writing")] : [];
  return [...said, ...writing, ...changedBy(state, task), ...(ended ?? statusOf(state, task))];
}

/**
 * @param {State} state @param {TaskView} task @param {Message} message
 * @param {Message|undefined} before @param {Message|undefined} next
 * @returns {Entry[]}
 */
function saidBy(state, task, message, before, next) {
  if (message.role === "ROLE_USER") {
    return approvalsOf(before).length && isButtons(textOf(message)) ? [] : [user(state, message, false)];
  }
  if (approvalsOf(message).length) {
    const answer = next && (approves(textOf(next)) ? "approved" : "declined");
    return [approval(task, message, answer ?? "unanswered", false)];
  }
  const isLast = message === task.messages.at(-1);
  return [agent(message.messageId, textOf(message), isLast && isRunning(task.state) ? "interim" : "final")];
}

/** @param {TaskView} task @param {Message} message @param {import("./approvals.js").Answer} answer @param {boolean} sending @returns {Entry} */
function approval({ taskId }, message, answer, sending) {
  return { key: message.messageId, kind: "approval", calls: approvalsOf(message), answer, taskId, text: textOf(message), sending };
}

/** @param {string} key @param {string} text @param {"final"|"interim"|"writing"} state @returns {Entry} */
function agent(key, text, state) {
  return { key, kind: "agent", text, state };
}

/** @param {State} state @param {Message} message @param {boolean} sending @returns {Entry} */
function user(state, message, sending) {
  const looking = message.metadata?.[CANVAS];
  const passage = passageWords(looking?.selection);
  const place = passage ? say(TEXT.placeIn, { place: passage[0].toUpperCase() + passage.slice(1), name: nameOf(state, looking.artifactId) }) : "";
  return { key: message.messageId, kind: "user", message, place, sending };
}

/**
 * The entries for an end or a pause that is more than a reply; null for a reply.
 * @param {State} state @param {TaskView} task @param {string} text
 * @returns {Entry[]|null}
 */
function endOf(state, task, text) {
  const { taskId } = task;
  const key = `${taskId}/end`;
  switch (task.state) {
    case "failed":
      return [{ key, kind: "failed", text, taskId, newest: isNewest(state, task) }];
    case "rejected":
      return [{ key, kind: "refused", text, taskId, newest: isNewest(state, task) }];
    case "input-required":
      if (approvalsOf(task.messages.at(-1)).length) {
        const sending = Object.values(state.outgoing).some(({ message, error }) => message.taskId === taskId && !error);
        return [approval(task, /** @type {Message} */ (task.messages.at(-1)), mayApprove(state) ? "asked" : "waits", sending)];
      }
      return [{ key: `${key}/${task.messages.length}`, kind: "question", text, taskId, permission: false, choices: choicesOf(text) }];
    case "auth-required":
      return [{ key: `${key}/${task.messages.length}`, kind: "question", text, taskId, permission: true, choices: [] }];
    default:
      return null;
  }
}

/** What goes on in a task, or how it ended without a word. @param {State} state @param {TaskView} task @returns {Entry[]} */
function statusOf(state, task) {
  const { taskId } = task;
  const key = `${taskId}/end`;
  const newest = isNewest(state, task);
  if (isRunning(task.state)) {
    return [{ key, kind: "status", text: task.status || TEXT.working, queued: task.state === "submitted" }];
  }
  if (task.state === "canceled") {
    return [{ key, kind: "stopped", text: TEXT.stopped, taskId, newest }];
  }
  const unknown = TEXT.failedWithoutReason;
  return task.state === "failed" ? [{ key, kind: "failed", text: unknown, taskId, newest }] : [];
}

/** Whether nothing was asked for since. @param {State} state @param {TaskView} task */
function isNewest(state, task) {
  return Object.values(state.tasks).findLast(isConversation) === task;
}

/** @param {TaskView} task */
const isConversation = ({ operation, state }) => !isAboutAnnotations(operation?.op) || isPaused(state);

/** @param {State} state @param {TaskView} task @returns {Entry[]} */
function changedBy(state, task) {
  // A task that was read from a list does not say what it has changed; a document knows its last task, its versions theirs.
  const last = Object.values(state.artifacts).filter((artifact) => artifact.taskId === task.taskId);
  const versions = mergeRecords(recordOf(last.map(({ artifactId, version }) => [artifactId, version])), state.made[task.taskId], task.artifacts);
  const changed = Object.entries(versions).map(([artifactId, version]) => ({ artifactId, name: nameOf(state, artifactId), version }));
  return changed.length ? [{ key: `${task.taskId}/changed`, kind: "changed", changed }] : [];
}

// ---------------------------------------------------------------------------------------------------- operations

/** @param {State} state @param {TaskView} task @returns {Entry[]} */
function operation(state, task) {
  const asked = requestOf(task);
  const operation = /** @type {Operation} */ (task.operation);
  const last = task.messages.at(-1);
  const text = last?.role === "ROLE_AGENT" ? textOf(last) : "";
  const ended = text ? endOf(state, task, text) : null;
  if (ended && isReportedElsewhere(operation, task)) {
    return [];
  }
  const words = operationWords(operation, nameOf(state, operation.artifactId) || operation.name || "", textOf(asked));
  const outcome = ended || operation.op === "put" ? "" : text;
  const line = { key: `${task.taskId}/operation`, kind: /** @type {const} */ ("operation"), op: operation.op, ...words, outcome, adds: Boolean(operation.op === "put" && operation.name) };
  return operation.op === "put" ? [line] : [line, ...(ended ?? statusOf(state, task))];
}

/** A refused step through the versions cannot succeed when it is asked for again. It is reported where it was asked for, as is a refused put. @param {Operation} operation @param {TaskView} task */
const isReportedElsewhere = ({ op }, { state }) => op === "put" || (op !== "edit" && state === "rejected");

/** Of puts in a row on the same document one stays. @param {Entry[]} entries @returns {Entry[]} */
function withoutRepeatedPuts(entries) {
  /** @type {Entry[]} */
  const kept = [];
  let puts = 0;
  for (const entry of entries) {
    const before = kept.at(-1);
    const again = isPut(entry) && before !== undefined && isPut(before) && before.what === entry.what;
    puts = again ? puts + 1 : 1;
    if (again) {
      kept[kept.length - 1] = { ...before, outcome: say(TEXT.savedTimes, { puts: formatCount(puts, "time") }) };
    } else {
      kept.push(entry);
    }
  }
  return kept;
}

/** A document that is added is no edit. @param {Entry[]} entries @returns {Entry[]} */
function withEditsFolded(entries) {
  const isEdit = (/** @type {Entry|undefined} */ entry) => entry?.kind === "operation" && !entry.adds;
  /** @type {Entry[]} */
  const kept = [];
  /** @type {any[]} */
  let edits = [];
  entries.forEach((entry, at) => {
    if (isEdit(entry) && isEdit(entries[at + 1])) {
      edits.push(entry);
      return;
    }
    const folded = edits.length < FOLDED ? edits : [{ key: `${edits[0].key}/edits`, kind: "edits", text: formatCount(edits.length, "edit"), edits }];
    kept.push(...folded, entry);
    edits = [];
  });
  return kept;
}

/** @param {Entry} entry @returns {entry is Extract<Entry, {kind: "operation"}>} */
const isPut = (entry) => entry.kind === "operation" && entry.op === "put";

// -------------------------------------------------------------------------------------------------- on their way

/** @param {State} state */
function onItsWay(state) {
  return (/** @type {Outgoing} */ { message, error }) => {
    /** @type {Operation|undefined} */
    const asked = message.metadata?.[CANVAS];
    if (asked?.op) {
      // Whoever started the operation shows why it was refused.
      const words = operationWords(asked, nameOf(state, asked.artifactId), textOf(message));
      return asked.op === "edit" && !error ? [{ key: message.messageId, kind: /** @type {const} */ ("operation"), op: asked.op, ...words, outcome: "", adds: false }] : [];
    }
    /** @type {Entry[]} */
    const failure = error ? [{ key: `${message.messageId}/error`, kind: "not-sent", messageId: message.messageId, text: error }] : [];
    const pressed = isButtons(textOf(message)) && approvalsOf(state.tasks[message.taskId ?? ""]?.messages.at(-1)).length > 0;
    return [...(pressed ? [] : [user(state, message, !error)]), ...failure];
  };
}

/** @param {State} state @param {string} artifactId */
function nameOf(state, artifactId) {
  return plainName(state.artifacts[artifactId]?.name || artifactId);
}
