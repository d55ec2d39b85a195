// @ts-check
/** The list of conversations: searched, opened, renamed, deleted. The arrow keys move in it; F2 renames, Delete deletes. */

import { formatPlace } from "./address.js";
import { sentence } from "./errors.js";
import { button, iconButton } from "./controls.js";
import { confirmAction, openMenu } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { brand, icon } from "./icons.js";
import { ask, closeDrawer } from "./layout.js";
import { partOf } from "./loading.js";
import { createServerChooser } from "./servers.js";
import { TEXT, say } from "./strings.js";
import { ago, formatCount, period, plainName } from "./words.js";

const sharingPart = partOf(() => import("./identity/sharing.js"));
const SEARCH_MS = 200;
const MINUTE = 60_000;

/** @param {ContextSummary} context */
export function titleOf({ name, request, artifacts }) {
  return plainName(name || request.replace(/\s+/g, " ").trim() || artifacts[0]?.name || TEXT.conversation);
}

/** Whether a task in it waits for an answer. @param {ContextSummary} context */
export function waits({ waiting = 0 }) {
  return waiting > 0;
}

/** @param {HTMLElement} nav @param {App} app */
export function mountContexts(nav, app) {
  const { store } = app;
  /** The conversation whose name is edited. @type {string|null} */
  let renamed = null;
  /** The conversation that the list was asked for last. @type {string|null} */
  let asked = null;
  let drawn = "";
  let timer = 0;
  /** The one conversation that Tab leads to: the one that has the focus, else the open one. @type {string|null|undefined} */
  let stop;

  const open = (/** @type {string|null} */ contextId) => {
    app.openContext(contextId);
    closeDrawer(nav);
    ask(nav, "show-chat");
    contextId ?? /** @type {HTMLElement|null} */ (document.querySelector(".composer-field"))?.focus();
  };
  const showDeveloper = () => {
    closeDrawer(nav);
    ask(nav, "show-developer");
  };
  const search = h("input", {
    class: "field",
    dir: "auto",
    type: "search",
    placeholder: TEXT.search,
    "aria-label": TEXT.searchConversations,
    autocomplete: "off",
    spellcheck: false,
    oninput: () => (clearTimeout(timer), (timer = setTimeout(() => app.search(search.value.trim()).catch(complain), SEARCH_MS))),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape" && search.value) {
        event.preventDefault();
        search.value = "";
        app.search("").catch(complain);
      }
    },
  });
  const list = h("div", { class: "contexts-list", onkeydown: onKeydown, onfocusin: moveStop });
  const more = button(TEXT.showMore, () => app.more().catch(complain), { class: "button button-quiet contexts-more" });
  const name = h("span", { class: "truncate" }, "a2a-canvas");
  const user = h("span", { class: "truncate" });
  const account = button(user, enterOrLeave, { sign: "people", class: "button button-quiet", hidden: true });
  fill(
    nav,
    h(
      "header",
      { class: "head" },
      h("span", { class: "contexts-brand" }, brand(), name, createServerChooser(app)),
      iconButton("sidebar", TEXT.hideConversations, () => ask(nav, "hide-contexts")),
    ),
    h(
      "div",
      { class: "contexts-tools" },
      button(TEXT.newConversation, () => open(null), { sign: "plus", class: "button contexts-new" }),
      h("div", { class: "contexts-search" }, icon("search", 14), search),
    ),
    h("div", { class: "contexts-scroll" }, list, more),
    h(
      "footer",
      { class: "contexts-foot" },
      account,
      button(TEXT.developerView, showDeveloper, { sign: "code", class: "button button-quiet" }),
    ),
  );
  store.subscribe((state) => {
    name.textContent = state.server?.name || "a2a-canvas";
    account.hidden = state.identity === null;
    user.textContent = state.identity?.signedIn ? state.identity.user || TEXT.guest : TEXT.signIn;
    draw(state);
    listNew(state);
  });
  setInterval(() => redraw(store.state), MINUTE);
  draw(store.state);

  function enterOrLeave() {
    if (store.state.identity?.signedIn) {
      const beside = app.userBeside();
      const back = { text: say(TEXT.backTo, { beside }), sign: "people", run: () => app.leaveLink() };
      openMenu(account, [...(beside ? [back] : []), { text: TEXT.signOut, sign: "close", run: () => app.signOut() }]);
    } else {
      app.signIn().catch(complain);
    }
  }

  /** A conversation stands in the list from its first message on. @param {State} state */
  function listNew({ contextId, tasks, contexts, query }) {
    const isNew = contextId !== null && query === "" && Object.keys(tasks).length > 0 && !contexts.some((each) => each.contextId === contextId);
    if (isNew && asked !== contextId) {
      asked = contextId;
      app.refresh();
    }
  }

  /** The list comes again from time to time, mostly as it was. @param {State} state */
  function draw(state) {
    const content = JSON.stringify([state.contexts, state.contextId, state.nextPage, state.query, state.working.length > 0]);
    if (content !== drawn) {
      drawn = content;
      redraw(state);
    }
  }

  /** @param {State} state */
  function redraw(state) {
    if (renamed !== null) {
      return;
    }
    const focused = /** @type {HTMLElement|null} */ (document.activeElement)?.closest?.("[data-context]")?.getAttribute("data-context");
    const now = Date.now();
    const isListed = (/** @type {string|null|undefined} */ id) => state.contexts.some(({ contextId }) => contextId === id);
    stop = [focused, state.contextId, stop].find(isListed) ?? state.contexts[0]?.contextId;
    /** @type {Record<string, ContextSummary[]>} */
    const groups = {};
    for (const context of state.contexts) {
      (groups[period(context.updatedAt, now)] ??= []).push(context);
    }
    fill(list, Object.entries(groups).map(([title, contexts]) => group(title, contexts, state, now)), state.contexts.length === 0 && empty(state));
    more.hidden = state.nextPage === "";
    focused && focusRow(focused);
  }

  /** @param {string} title @param {ContextSummary[]} contexts @param {State} state @param {number} now */
  function group(title, contexts, state, now) {
    const rows = h("ul", { "aria-label": title }, contexts.map((context) => row(context, state, now)));
    return [title && h("h3", { class: "contexts-group" }, title), rows];
  }

  /** @param {ContextSummary} context @param {State} state @param {number} now */
  function row(context, state, now) {
    const current = context.contextId === state.contextId;
    const working = current ? state.working.length > 0 || context.working > 0 : context.working > 0;
    const waiting = !working && waits(context);
    const menu = iconButton("more", say(TEXT.actionsFor, { title: titleOf(context) }), () => openMenu(menu, actions(context)), { class: "context-menu", tabIndex: -1, "aria-haspopup": "menu" });
    return h(
      "li",
      { class: "context", "data-context": context.contextId, "data-current": current },
      h(
        "a",
        {
          class: "context-link",
          tabIndex: context.contextId === stop ? 0 : -1,
          href: formatPlace({ contextId: context.contextId, artifactId: null, version: null }),
          title: titleOf(context),
          "aria-current": current ? "page" : null,
          onclick: (/** @type {MouseEvent} */ event) => {
            if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
              event.preventDefault();
              open(context.contextId);
            }
          },
          ondblclick: () => canChange(context) && rename(context),
        },
        working && h("span", { class: "dot dot-working" }),
        working && h("span", { class: "visually-hidden" }, TEXT.workingColon),
        waiting && h("span", { class: "dot dot-warning", title: TEXT.waitsForAnswer }),
        waiting && h("span", { class: "visually-hidden" }, TEXT.waitsForAnswerColon),
        h("bdi", { class: "context-name truncate" }, titleOf(context)),
        h("time", { class: "context-time", datetime: context.updatedAt }, ago(context.updatedAt, now)),
      ),
      actions(context).length > 0 && menu,
    );
  }

  /** Only a server with canvas:v1 renames and deletes, and only for the owner. @param {ContextSummary} context */
  function canChange({ shared }) {
    return !shared && (store.state.server?.canvas ?? true);
  }

  /** @param {ContextSummary} context */
  function actions(context) {
    if (context.shared) {
      return store.state.identity?.user ? [{ text: TEXT.leaveMenu, sign: "close", run: () => leave(context) }] : [];
    }
    return !canChange(context) ? [] : [
      ...(store.state.identity?.user ? [{ text: TEXT.shareMenu, sign: "people", run: () => share(context) }] : []),
      { text: TEXT.rename, sign: "edit", run: () => rename(context) },
      { text: context.agentsSuggest ? TEXT.letAgentsWrite : TEXT.haveAgentsSuggest, sign: "chat", run: () => letAgentsSuggest(context) },
      { text: TEXT.deleteMenu, sign: "trash", danger: true, run: () => remove(context) },
    ];
  }

  /** @param {ContextSummary} context */
  async function share(context) {
    (await sharingPart.get()).openSharing(app, context.contextId, titleOf(context));
  }

  /** @param {ContextSummary} context */
  function rename(context) {
    const line = rowOf(context.contextId);
    if (!line) {
      return;
    }
    renamed = context.contextId;
    const field = h("input", { class: "field", dir: "auto", value: titleOf(context), maxLength: 200, "aria-label": TEXT.nameConversation });
    const end = (/** @type {boolean} */ keep) => {
      if (renamed === null) {
        return;
      }
      renamed = null;
      const name = field.value.trim();
      if (keep && name !== titleOf(context)) {
        setName(context, name || null);
      }
      redraw(store.state);
    };
    field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        end(event.key === "Enter");
        focusRow(context.contextId);
      }
    });
    field.addEventListener("blur", () => end(true));
    fill(line, h("div", { class: "context-rename" }, field));
    field.focus();
    field.select();
  }

  /** @param {ContextSummary} context @param {string|null} name */
  function setName({ contextId, name: before }, name) {
    const back = { label: TEXT.undo, run: () => void app.changeContext(contextId, { name: before }).catch(complain) };
    app.changeContext(contextId, { name }).then(() => app.notify("info", name ? say(TEXT.renamed, { name }) : TEXT.originalName, back, contextId), complain);
  }

  /** @param {ContextSummary} context */
  function letAgentsSuggest({ contextId, agentsSuggest = false }) {
    const text = agentsSuggest ? TEXT.agentsWrite : TEXT.agentsSuggest;
    app.changeContext(contextId, { agentsSuggest: !agentsSuggest }).then(() => app.notify("info", text, undefined, contextId), complain);
  }

  /** @param {ContextSummary} context */
  async function remove(context) {
    const documents = context.artifacts.length;
    const lost = documents ? say(TEXT.documentsWillGo, { documents: formatCount(documents, "document") }) : TEXT.messagesWillGo;
    const sure = await confirmAction({
      title: say(TEXT.askDelete, { title: titleOf(context) }),
      text: [say(TEXT.goneForEveryone, { lost })],
      action: TEXT.delete,
      danger: true,
    });
    if (sure) {
      await app.remove(context.contextId).catch(complain);
    } else {
      focusRow(context.contextId);
    }
  }

  /** @param {ContextSummary} context */
  async function leave(context) {
    const sure = await confirmAction({
      title: say(TEXT.askLeave, { title: titleOf(context) }),
      text: [say(TEXT.leaveMeans, { owner: context.shared?.owner })],
      action: TEXT.leave,
    });
    if (sure) {
      await app.leave(context.contextId).catch(complain);
    }
  }

  /** @param {FocusEvent} event */
  function moveStop({ target }) {
    const line = /** @type {HTMLElement} */ (target).closest("[data-context]");
    const link = line?.querySelector("a");
    if (link) {
      list.querySelectorAll("a").forEach((/** @type {HTMLElement} */ each) => (each.tabIndex = each === link ? 0 : -1));
      stop = line?.getAttribute("data-context") ?? undefined;
    }
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    const line = /** @type {HTMLElement} */ (event.target).closest("[data-context]");
    const context = store.state.contexts.find((each) => each.contextId === line?.getAttribute("data-context"));
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(line?.querySelector("a"));
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => links[Math.min(at + 1, links.length - 1)].focus(),
      ArrowUp: () => (at > 0 ? links[at - 1] : search).focus(),
      Home: () => links[0].focus(),
      End: () => links[links.length - 1].focus(),
      ArrowRight: () => /** @type {HTMLElement|null|undefined} */ (line?.querySelector(".context-menu"))?.focus(),
      ArrowLeft: () => links[at].focus(),
      F2: () => context && canChange(context) && rename(context),
      Delete: () => context && canChange(context) && remove(context),
    };
    if (context && event.key in keys) {
      event.preventDefault();
      keys[event.key]();
    }
  }

  /** @param {string} contextId @returns {HTMLElement|null} */
  function rowOf(contextId) {
    return list.querySelector(`[data-context="${CSS.escape(contextId)}"]`);
  }

  /** @param {string} contextId */
  function focusRow(contextId) {
    rowOf(contextId)?.querySelector("a")?.focus();
  }

  /** @param {unknown} error */
  function complain(error) {
    app.notify("error", sentence(error));
  }
}

/** @param {State} state */
function empty({ query }) {
  return h("p", { class: "contexts-empty" }, query ? say(TEXT.noneMatch, { query }) : TEXT.noConversations);
}
