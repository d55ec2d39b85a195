// @ts-check
/**
 * Progress of a question to the agent in a thread: docs/annotations.md, "Ask the agent". Pure.
 *
 * Rule 1: the tasks of the conversation say it, which everybody who looks on has, also after a reload: one that is still running
 * when its remark is there has asked the agent, and so has one that failed after that.
 * Rule 2: what follows the remark settles it: an answer of the agent in the thread, a suggestion by the same task, and for a
 * failure whatever is written or decided since.
 */

import { annotationsOf, isDecided, remarkOf } from "../state/annotations.js";
import { isPaused, isRunning, textOf } from "../state/task.js";

/** @typedef {{taskId: string, kind: "answering"|"waits"|"failed"|"stopped", text: string, words: string}} Asked  `text`: of its status; `words`: what was asked */

/** @param {State} state @param {AnnotationView} item @returns {Asked|null} */
export function askedIn(state, item) {
  const task = Object.values(state.tasks).findLast((each) => each.state !== "completed" && remarkOf(each, item) !== -1);
  const kind = task && kindOf(task);
  if (!kind) {
    return null;
  }
  const since = item.thread.slice(remarkOf(task, item) + 1);
  const suggested = annotationsOf(state, task.operation?.artifactId).some(({ taskId, author }) => taskId === task.taskId && author === "agent");
  const isSettled = kind === "answering" || kind === "waits" ? since.some(({ author }) => author === "agent") : since.length > 0 || isDecided(item);
  return isSettled || suggested ? null : { taskId: task.taskId, kind, text: textOf(task.messages.at(-1)), words: textOf(task.messages[0]) };
}

/** Without `ask`, a task that has not begun to work adds a remark and is done. @param {TaskView} task @returns {Asked["kind"]|null} */
function kindOf({ state, operation }) {
  if (isPaused(state)) {
    return "waits";
  }
  if (isRunning(state)) {
    return state === "working" || operation?.ask ? "answering" : null;
  }
  return state === "canceled" ? "stopped" : "failed";
}
