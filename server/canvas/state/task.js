// @ts-check
/**
 * What is shown of a task, folded from its stream: A2A's events and those of urn:a2a-canvas:turn:v1. Pure.
 * The rules are those of docs/turn.md, "How a client folds a turn".
 */

import { recordOf } from "./records.js";
import { TEXT } from "../strings.js";

export const TURN = "urn:a2a-canvas:turn:v1";
/** More of a reply that is being written is not kept. In characters. */
const LONGEST_REPLY = 1_000_000;
export const CANVAS = "urn:a2a-canvas:canvas:v1";

/**
 * A task as `GetTask`, `ListTasks` and the beginning of a stream have it.
 * @param {Json} task
 * @param {string} stream
 * @returns {TaskView}
 */
export function taskView(task, stream) {
  const { status } = task;
  const state = stateOf(status.state);
  const history = (task.history ?? []).filter(saysSomething);
  const last = status.message;
  const said = !last || history.some((/** @type {Message} */ each) => each.messageId === last.messageId);
  const label = last && !said && isRunning(state) ? textOf(last) : "";
  const canvas = task.metadata?.[CANVAS] ?? {};
  const turn = task.metadata?.[TURN];
  return {
    taskId: task.id,
    state,
    timestamp: status.timestamp ?? "",
    messages: said || label ? history : [...history, last],
    status: label || (isRunning(state) ? TEXT.working : ""),
    reply: "",
    artifacts: recordOf(Object.entries(canvas.artifacts ?? {}).map(([id, each]) => [id, each.artifactVersion])),
    // The message of an operation may say nothing but that.
    operation: (task.history ?? []).find((/** @type {Message} */ each) => each.role === "ROLE_USER")?.metadata?.[CANVAS] ?? null,
    stream,
    joinedAt: said && last && turn ? `${turn.epoch}/${turn.generation}` : null,
  };
}

/**
 * A status update of A2A.
 * @param {TaskView} view
 * @param {Json} update
 * @returns {TaskView}
 */
export function statusChanged(view, update) {
  const { status } = update;
  const state = stateOf(status.state);
  const message = status.message;
  const common = { ...view, state, timestamp: status.timestamp ?? view.timestamp };
  if (message && isRunning(state) && (update.metadata?.[TURN]?.label || state === "submitted")) {
    return { ...common, status: textOf(message) };
  }
  const messages = message && saysSomething(message) ? [...view.messages, message] : view.messages;
  const waits = isRunning(state) ? view.status : "";
  return { ...common, messages, status: waits, reply: "" };
}

/**
 * An event of turn:v1. What is not shown (thinking, tool calls, usage) changes nothing.
 * @param {TaskView} view
 * @param {string} type
 * @param {any} data
 * @param {string} at  its epoch and generation
 * @returns {TaskView}
 */
export function turnEvent(view, type, data, at) {
  switch (type) {
    case "message_start":
      return { ...view, reply: "" };
    case "text_delta":
      return { ...view, reply: view.reply.length < LONGEST_REPLY ? view.reply + data.text : view.reply };
    case "assistant":
      // A newcomer is told the text of a round once more that stands among the messages already.
      return { ...view, reply: at === view.joinedAt ? "" : data.content };
    case "completed":
      return { ...view, reply: "", status: "" };
    default:
      return view;
  }
}

/**
 * What stands in the conversation: of several texts of the agent in a row only the last one, as each replaces the one before
 * it, and none where the reply is being written that replaces it.
 * @param {TaskView} view
 * @returns {Message[]}
 */
export function conversation({ messages, reply }) {
  return messages.filter((message, at) => {
    const next = messages[at + 1];
    return message.role === "ROLE_USER" || (next ? next.role === "ROLE_USER" : !reply);
  });
}

/** @param {string} state @returns {TaskState} */
export function stateOf(state) {
  return /** @type {TaskState} */ (state.replace("TASK_STATE_", "").toLowerCase().replace("_", "-"));
}

/** Whether the agent works on the task, or will. @param {TaskState} state */
export function isRunning(state) {
  return state === "submitted" || state === "working";
}

/** Whether the task waits for a message of the user. @param {TaskState} state */
export function isPaused(state) {
  return state === "input-required" || state === "auth-required";
}

/** The text of a message. @param {{parts?: any[]}|undefined} message */
export function textOf(message) {
  return (message?.parts ?? []).map((part) => part.text ?? "").join("");
}

/** @param {Message} message */
function saysSomething(message) {
  return message.parts?.some((part) => !("text" in part) || part.text !== "") ?? false;
}
