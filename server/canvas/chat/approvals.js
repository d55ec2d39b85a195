// @ts-check
/**
 * Calls of tools that the user is asked to approve: `metadata["urn:a2a-canvas:canvas:v1"].approvals` of the question.
 * One answer is for all calls of a question.
 */
import { button } from "../controls.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { CANVAS } from "../state/task.js";
import { TEXT, say } from "../strings.js";
import { formatCount, formatNumber } from "../words.js";
import { createMarkdownText } from "./markdown_text.js";

/** @typedef {{tool: string, input: Record<string, any>}} Call */
/** @typedef {"asked"|"waits"|"approved"|"declined"|"unanswered"} Answer */
/** @typedef {{calls: Call[], answer: Answer, taskId: string, text: string, sending: boolean}} Approval */

export const APPROVED = "Approved.";
export const DECLINED = "Not approved.";
/** The server's, as the first word of an answer (server/wire.py). */
export const YES = ["yes", "y", "ok", "okay", "sure", "approve", "approved", "allow", "allowed", "go", "true"];
const MOST_CHARACTERS = 20_000;
/** Characters that change how others are read, or are not seen: in an input they are shown as escapes. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const QUESTION = /^May I run .*\? (Answer|This waits for .*) yes or no\.$/;

/** The calls that a message asks for; none if it asks for nothing. @param {Message|undefined} message @returns {Call[]} */
export function approvalsOf(message) {
  const asked = message?.role === "ROLE_AGENT" ? message.metadata?.[CANVAS]?.approvals : [];
  return (Array.isArray(asked) ? asked : [])
    .filter((each) => typeof each?.tool === "string")
    .map(({ tool, input }) => ({ tool, input: input && typeof input === "object" ? input : {} }));
}

/** Whether the server takes an answer for a yes. @param {string} text */
export function approves(text) {
  try {
    const given = JSON.parse(text);
    return given === true || given?.approved === true;
  } catch {
    return YES.includes(text.toLowerCase().replace(/[,.!]/g, " ").trim().split(/\s+/)[0]);
  }
}

/** What was answered; the answer of a button is no message to show. @param {string} text */
export function isButtons(text) {
  return text === APPROVED || text === DECLINED;
}

// ------------------------------------------------------------------------------------------------------- elements

/** @param {Approval} approval @param {App} app @returns {HTMLElement} */
export function approvalElement(approval, app) {
  return approval.answer === "asked" || approval.answer === "waits" ? requestElement(approval, app) : answerElement(approval);
}

/** @param {Approval} approval @param {App} app */
function requestElement({ calls, answer, taskId, text, sending }, app) {
  const why = h("input", { class: "field approval-why", type: "text", maxLength: 2000, placeholder: TEXT.whyNot, "aria-label": TEXT.whyNot, disabled: sending });
  const approve = button(calls.length > 1 ? TEXT.approveAll : TEXT.approve, () => app.answer(taskId, APPROVED), { sign: "check", class: "button button-primary", disabled: sending });
  const decline = button(TEXT.dont, null, { type: "submit", disabled: sending });
  const onDecline = (/** @type {Event} */ event) => (event.preventDefault(), app.answer(taskId, `${DECLINED} ${why.value}`.trim()));
  return h(
    "section",
    { class: "question approval", "aria-label": TEXT.approval },
    h("div", { class: "question-head" }, icon("lock"), `${answer === "waits" ? TEXT.waitingForOwner : TEXT.agentAsksToRun} ${calls.length > 1 ? formatCount(calls.length, "tool", "tools") : TEXT.aTool}`),
    calls.map(callElement),
    otherQuestion(text),
    answer === "asked" && h(
      "form",
      { class: "question-choices", onsubmit: onDecline },
      approve,
      decline,
      why,
      button(TEXT.cancelTask, () => app.cancel(taskId), { class: "button button-quiet" }),
    ),
  );
}

/** @type {Record<Answer, [string, string]>} */
const ANSWERS = {
  asked: ["lock", TEXT.waitsForYou],
  waits: ["lock", TEXT.waitsForOwner],
  approved: ["check", TEXT.approved],
  declined: ["close", TEXT.notApproved],
  unanswered: ["info", TEXT.notAnswered],
};

/** @param {Approval} approval */
function answerElement({ calls, answer }) {
  const [sign, words] = ANSWERS[answer];
  const names = calls.map((call, at) => [at > 0 && ", ", h("code", {}, escapeUnseen(call.tool))]);
  const summary = h("summary", { class: "approval-answer" }, icon(sign), h("span", {}, h("b", {}, words), ": ", names));
  return h("details", { class: "approval-answered", "data-answer": answer }, summary, calls.map(callElement));
}

/** @param {Call} call */
function callElement({ tool, input }) {
  // On the wire their order is not kept.
  const rows = Object.entries(input).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, escapeUnseen(name)), h("td", {}, inputText(value))));
  return h(
    "div",
    { class: "approval-call" },
    h("code", { class: "approval-tool" }, escapeUnseen(tool)),
    rows.length > 0
      ? h("div", { class: "approval-input", tabindex: "0", role: "group", "aria-label": say(TEXT.inputOf, { tool }) }, h("table", {}, h("tbody", {}, rows)))
      : h("p", { class: "muted" }, TEXT.withoutInput),
  );
}

/** What is asked beside the approvals. @param {string} text */
function otherQuestion(text) {
  const rest = text.split("\n").filter((line) => !QUESTION.test(line)).join("\n").trim();
  if (!rest) {
    return null;
  }
  const reply = createMarkdownText();
  reply.show(rest);
  return reply.element;
}

/** @param {any} value */
function inputText(value) {
  const text = escapeUnseen(typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const more = text.length - MOST_CHARACTERS;
  return more > 0 ? `${text.slice(0, MOST_CHARACTERS)}\n${say(TEXT.moreCharacters, { count: formatNumber(more) })}` : text;
}

/** @param {string} text */
function escapeUnseen(text) {
  return text.replace(UNSEEN, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
