// @ts-check
/** The conversation: its head, the thread or the start page, the composer; files can be dropped anywhere on it. */

import { copyAndTell } from "../clipboard.js";
import { iconButton } from "../controls.js";
import { fill, h } from "../dom.js";
import { mountDrop } from "../drop.js";
import { icon } from "../icons.js";
import { ask } from "../layout.js";
import { isGuest, mayComment, mayEdit } from "../state/reducer.js";
import { textOf } from "../state/task.js";
import { TEXT, say } from "../strings.js";
import { formatCount, plainName, shorten } from "../words.js";
import { titleOf, waits } from "../contexts.js";
import { createComposer } from "./composer.js";
import { createExamples, createWelcome } from "./start.js";
import { createThread } from "./thread.js";

/** @param {HTMLElement} section @param {App} app */
export function mountChat(section, app) {
  const composer = createComposer(app);
  const thread = createThread(app);
  const welcome = createWelcome();
  const examples = createExamples({ onExample: composer.send, onFiles: (files) => app.upload(files) });
  const notice = h("p", { class: "chat-notice", hidden: true });
  fill(section, createHead(app), welcome, thread, notice, composer.element, examples.element);
  mountDrop(section, TEXT.dropToAttach, composer.addFiles);

  /** @type {State["server"]} */
  let server = null;

  const draw = (/** @type {State} */ state) => {
    const empty = isEmpty(state);
    section.toggleAttribute("data-start", empty);
    section.toggleAttribute("data-plain", state.server?.canvas === false);
    const readOnly = !mayEdit(state) && state.shared !== null;
    document.body.toggleAttribute("data-read-only", readOnly);
    document.body.toggleAttribute("data-guest", isGuest(state));
    notice.hidden = !readOnly;
    notice.textContent = say(mayComment(state) ? TEXT.sharedToComment : TEXT.sharedReadOnly, { owner: state.shared?.owner });
    welcome.hidden = examples.element.hidden = !empty;
    thread.hidden = empty;
    if (state.server !== server) {
      server = state.server;
      examples.show(server?.card);
    }
  };
  app.store.subscribe(draw);
  draw(app.store.state);
  composer.focus();
}

/** Whether there is nothing to show; until the conversation of the address is read, that is not known. @param {State} state */
function isEmpty({ contextId, loaded, tasks, artifacts, outgoing }) {
  const anything = Object.keys(tasks).length + Object.keys(artifacts).length > 0;
  return loaded && !anything && !Object.values(outgoing).some((each) => each.contextId === contextId);
}

/** The name of the open conversation; until the list has it, its first request. @param {State} state */
function headline(state) {
  const context = state.contexts.find((each) => each.contextId === state.contextId);
  const first = Object.values(state.tasks)[0]?.messages[0] ?? Object.values(state.outgoing).find((each) => each.contextId === state.contextId)?.message;
  return context ? titleOf(context) : plainName(shorten(textOf(first), 120));
}

/** The conversation and the agent; in front, how many conversations wait for an answer. @param {State} state @param {string} title */
function tabTitle({ contexts, server }, title) {
  const waiting = contexts.filter(waits).length;
  return `${waiting ? `(${waiting}) ` : ""}${[title, server?.name || "a2a-canvas"].filter(Boolean).join(" · ")}`;
}

/** @param {App} app */
function createHead(app) {
  const title = h("h1", { class: "chat-title truncate", dir: "auto" });
  const watchers = h("span", { class: "watchers", hidden: true });
  const share = iconButton("link", TEXT.copyTheLink, () => copyAndTell(app, location.href, TEXT.linkCopied, TEXT.copyFromAddressBar), { title: TEXT.copyLinkConversation });
  const head = h(
    "header",
    { class: "head chat-head" },
    iconButton("menu", TEXT.conversations, () => ask(head, "show-contexts"), { class: "only-narrow" }),
    title,
    watchers,
    share,
    iconButton("plus", TEXT.newConversation, () => app.openContext(null), { class: "only-narrow" }),
  );
  const draw = (/** @type {State} */ state) => {
    share.hidden = state.contextId === null;
    title.setAttribute("aria-hidden", String(state.contextId === null));
    title.textContent = state.contextId === null ? "" : headline(state);
    document.title = tabTitle(state, title.textContent ?? "");
    watchers.hidden = state.watchers < 2;
    fill(watchers, icon("people"), h("span", {}, String(state.watchers)), h("span", { class: "visually-hidden" }, TEXT.peopleAreLooking));
    watchers.title = say(TEXT.looking, { people: formatCount(state.watchers, "person is", "people are") });
  };
  app.store.subscribe(draw);
  draw(app.store.state);
  return head;
}
