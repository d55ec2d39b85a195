// @ts-check
/**
 * The thread: one element per entry (entries.js), kept as long as the entry is there and replaced when it changes.
 * It follows its end unless the user has scrolled away.
 */
import { button } from "../controls.js";
import { fill, h, setText } from "../dom.js";
import { completePart } from "../document/markdown/partial.js";
import { icon } from "../icons.js";
import { ask } from "../layout.js";
import { textOf } from "../state/task.js";
import { TEXT, say } from "../strings.js";
import { withoutChoices } from "../words.js";
import { approvalElement } from "./approvals.js";
import { sentAttachments } from "./attachments.js";
import { entriesOf } from "./entries.js";
import { createMarkdownText } from "./markdown_text.js";

/** @typedef {import("./entries.js").Entry} Entry */
/** @typedef {{entry: Entry, element: HTMLElement, reply?: ReturnType<typeof createMarkdownText>}} Shown */

/** Nearer to the end than this many pixels counts as at the end. */
const AT_END = 48;
const LONG = 1200;

/** @param {App} app @returns {HTMLElement} */
export function createThread(app) {
  const status = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  const list = h("div", { class: "thread", role: "log", "aria-label": TEXT.messages, "aria-live": "off" });
  const latest = h("div", { class: "latest" }, button(TEXT.jumpLatest, toEnd, { sign: "down" }));
  const scroll = h("div", { class: "thread-scroll", tabindex: "-1" }, list, latest);
  const element = h("div", { class: "thread-frame" }, scroll, status);
  /** @type {Map<string, Shown>} */
  let shown = new Map();
  let following = true;
  let top = 0;
  let announced = "";
  /** @type {string|null} */
  let contextId = null;

  scroll.addEventListener(
    "scroll",
    () => {
      // A step upwards is the user's, however small; the end moves on its own while a reply is written.
      const distance = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight;
      following = scroll.scrollTop < top ? distance < 2 : following || distance < AT_END;
      top = scroll.scrollTop;
      latest.hidden = following;
      toggleScrolled();
    },
    { passive: true },
  );
  new ResizeObserver(keepEnd).observe(list);
  new ResizeObserver(keepEnd).observe(scroll);
  app.store.subscribe((state, previous) => isChanged(state, previous) && draw(state));
  draw(app.store.state);
  return element;

  /** @param {State} state */
  function draw(state) {
    if (state.contextId !== contextId) {
      contextId = state.contextId;
      following = true;
    }
    const entries = entriesOf(state);
    const next = new Map(entries.map((entry) => [entry.key, show(entry)]));
    if (entries.some((entry) => entry.kind === "user" && !shown.has(entry.key) && entry.sending)) {
      following = true;
    }
    shown = next;
    const loading = !state.loaded && entries.length === 0;
    place(list, loading ? [LOADING] : [...next.values()].map((each) => each.element));
    announce(entries);
    keepEnd();
  }

  /** @param {Entry} entry @returns {Shown} */
  function show(entry) {
    const before = shown.get(entry.key);
    if (before && same(before.entry, entry)) {
      return before;
    }
    if (entry.kind === "agent") {
      const kept = before?.reply ? before : agentMessage(entry);
      kept.element.toggleAttribute("data-interim", entry.state === "interim");
      kept.reply?.show(entry.state === "writing" ? completePart(entry.text) : entry.text);
      return { ...kept, entry };
    }
    if (entry.kind === "edits" && before) {
      setText(/** @type {HTMLElement} */ (before.element.firstChild), entry.text);
      fill(/** @type {HTMLElement} */ (before.element.lastChild), entry.edits.map(operation));
      return { ...before, entry };
    }
    if (entry.kind === "status" && before?.entry.kind === "status") {
      /** @type {HTMLElement} */ (before.element.querySelector(".status-text")).textContent = entry.text;
      return { ...before, entry };
    }
    const element = elementOf(entry, app);
    keepTyped(before?.element, element);
    return { entry, element };
  }

  /** A screen reader is told what goes on, and the reply when it is whole. @param {Entry[]} entries */
  function announce(entries) {
    const last = entries.findLast((entry) => "text" in entry && entry.kind !== "edits" && !(entry.kind === "agent" && entry.state !== "final"));
    const text = last && "text" in last ? last.text : "";
    if (text !== announced) {
      announced = text;
      status.textContent = text;
    }
  }

  function keepEnd() {
    if (following) {
      scroll.scrollTop = scroll.scrollHeight;
    }
    latest.hidden = following;
    toggleScrolled();
  }

  function toEnd() {
    following = true;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    scroll.scrollTo({ top: scroll.scrollHeight, behavior: calm ? "auto" : "smooth" });
  }

  function toggleScrolled() {
    element.closest(".chat")?.toggleAttribute("data-scrolled", scroll.scrollTop > 0);
  }
}

const LOADING = h("p", { class: "start-loading" }, TEXT.loading);

/** A document that grows changes nothing here. @param {State} state @param {State} previous */
function isChanged(state, previous) {
  const fields = /** @type {const} */ (["contextId", "loaded", "tasks", "made", "outgoing"]);
  return fields.some((field) => state[field] !== previous[field]) || titles(state) !== titles(previous);
}

/** @param {State} state */
function titles({ artifacts }) {
  return Object.values(artifacts).map(({ artifactId, name, version, taskId }) => `${artifactId}\n${name}\n${version}\n${taskId}`).join("\n");
}

/** Puts the elements into their order, and moves only those that stand elsewhere. @param {HTMLElement} list @param {HTMLElement[]} elements */
function place(list, elements) {
  const wanted = new Set(elements);
  for (const child of [...list.children]) {
    wanted.has(/** @type {HTMLElement} */ (child)) || child.remove();
  }
  elements.forEach((element, at) => {
    if (list.children[at] !== element) {
      list.insertBefore(element, list.children[at] ?? null);
    }
  });
}

/** @param {any} a @param {any} b */
function same(a, b) {
  return Object.keys(b).every((key) => a[key] === b[key] || (Array.isArray(b[key]) && alike(a[key], b[key])));
}

/** Whether two JSON values are equal; the order of members says nothing. @param {any} a @param {any} b @returns {boolean} */
function alike(a, b) {
  if (a === b || !a || !b || typeof a !== "object" || typeof b !== "object") {
    return a === b;
  }
  const names = Object.keys(b);
  return Array.isArray(a) === Array.isArray(b) && Object.keys(a).length === names.length && names.every((name) => alike(a[name], b[name]));
}

/** What the user types into an entry stays there when the entry changes. @param {HTMLElement|undefined} before @param {HTMLElement} after */
function keepTyped(before, after) {
  const [typed, field] = [before?.querySelector("input"), after.querySelector("input")];
  if (typed && field) {
    field.value = typed.value;
    typed === document.activeElement && queueMicrotask(() => field.focus());
  }
}

// ------------------------------------------------------------------------------------------------------- elements

/** @param {Extract<Entry, {kind: "agent"}>} entry @returns {Shown} */
function agentMessage(entry) {
  const reply = createMarkdownText();
  return { entry, element: h("article", { class: "message-agent", "aria-label": TEXT.reply }, reply.element), reply };
}

/** @param {Exclude<Entry, {kind: "agent"}>} entry @param {App} app @returns {HTMLElement} */
function elementOf(entry, app) {
  switch (entry.kind) {
    case "user":
      return userMessage(entry);
    case "operation":
      return operation(entry);
    case "edits":
      return h("details", { class: "edits" }, h("summary", {}, entry.text), h("div", {}, entry.edits.map(operation)));
    case "status":
      return h("div", { class: "status" }, h("span", { class: entry.queued ? "dot" : "dot dot-working" }), h("bdi", { class: "status-text" }, entry.text));
    case "failed":
      return outcome("outcome-failed", "failed", entry.text, ...retryButton(entry, TEXT.retry, app));
    case "refused":
      return outcome("outcome-refused", "info", entry.text, ...retryButton(entry, TEXT.askAgain, app));
    case "not-sent":
      return outcome(
        "outcome-failed",
        "failed",
        say(TEXT.notSent, { text: entry.text }),
        button(TEXT.retry, () => app.resend(entry.messageId), { sign: "retry" }),
        button(TEXT.discard, () => app.discard(entry.messageId)),
      );
    case "stopped":
      return h("p", { class: "outcome-note" }, icon("stop", 14), entry.text, entry.newest && button(TEXT.startAgain, () => app.retry(entry.taskId), { class: "link-button" }));
    case "question":
      return question(entry, app);
    case "approval":
      return approvalElement(entry, app);
    case "changed":
      return h("ul", { class: "changed", "aria-label": TEXT.documents }, entry.changed.map((each) => h("li", {}, changedLink(each, app))));
    default:
      return /** @type {never} */ (entry);
  }
}

/** @param {Extract<Entry, {kind: "user"}>} entry */
function userMessage({ message, place: passage, sending }) {
  const text = textOf(message).trim();
  const long = text.length > LONG;
  const bubble = h(
    "div",
    { class: long ? "message-user message-long" : "message-user", "data-pending": sending },
    h("span", { class: "visually-hidden" }, TEXT.youColon),
    passage && h("div", { class: "message-place" }, icon("edit", 14), h("bdi", { class: "truncate" }, passage)),
    text && h("div", { dir: "auto" }, text),
    sentAttachments(message.parts),
  );
  if (!long) {
    return bubble;
  }
  const more = button(TEXT.showAll, () => (bubble.classList.remove("message-long"), more.remove()), { class: "link-button message-expand" });
  return h("div", { class: "message-whole" }, bubble, more);
}

/** @type {Record<string, string>} */
const SIGNS = { edit: "edit", undo: "undo", redo: "redo", restore: "history", put: "edit" };

/** @param {Extract<Entry, {kind: "operation"}>} entry */
function operation({ op, what, detail, outcome: said }) {
  return h("div", { class: "operation" }, icon(SIGNS[op] ?? "edit"), h("div", { class: "operation-text" }, h("b", {}, what), detail && ": ", detail && h("bdi", {}, detail), said && h("div", { dir: "auto" }, said)));
}

/** @param {string} kind @param {string} sign @param {string} text @param {...HTMLElement} actions */
function outcome(kind, sign, text, ...actions) {
  return h("div", { class: `outcome ${kind}` }, icon(sign), h("div", { class: "outcome-text", dir: "auto" }, text), actions.length > 0 && h("div", { class: "outcome-actions" }, actions));
}

/** What is done already is not offered. @param {{taskId: string, newest: boolean}} entry @param {string} text @param {App} app */
function retryButton({ taskId, newest }, text, app) {
  return newest ? [button(text, () => app.retry(taskId), { sign: "retry" })] : [];
}

/** @param {Extract<Entry, {kind: "question"}>} entry @param {App} app */
function question({ text, taskId, permission, choices }, app) {
  const reply = createMarkdownText();
  reply.show(permission ? text : withoutChoices(text));
  const signedIn = button(TEXT.iHaveSignedIn, () => app.answer(taskId, "Done."), { sign: "check", class: "button button-primary" });
  return h(
    "section",
    { class: "question", "aria-label": TEXT.question },
    h("div", { class: "question-head" }, icon(permission ? "lock" : "question"), permission ? TEXT.agentAsksToSignIn : TEXT.agentAsks),
    reply.element,
    h(
      "div",
      { class: "question-choices" },
      permission ? signedIn : choices.map((choice) => button(h("bdi", {}, choice), () => app.answer(taskId, choice))),
      button(TEXT.cancelTask, () => app.cancel(taskId), { class: "button button-quiet" }),
    ),
  );
}

/** @param {import("./entries.js").Changed} changed @param {App} app */
function changedLink({ artifactId, name, version }, app) {
  const open = (/** @type {Event} */ event) => {
    const current = app.store.state.artifacts[artifactId]?.version;
    app.openArtifact(artifactId, version === 0 || version === current ? null : version);
    ask(/** @type {HTMLElement} */ (event.currentTarget), "show-document");
  };
  return button([h("bdi", { class: "truncate" }, name), version > 0 && h("small", {}, say(TEXT.madeVersion, { version }))], open, { sign: "document", class: "changed-link" });
}
