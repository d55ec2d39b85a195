// @ts-check
/** The palette: one field that finds a conversation, a document, a version, a line or an action, and goes there. */

import { openDialog } from "../dialogs.js";
import { fill, h, setText } from "../dom.js";
import { isGuest, mayEdit, shownArtifact } from "../state/reducer.js";
import { changesOf, mapRange } from "../state/text.js";
import { TEXT, say } from "../strings.js";
import { plainName } from "../words.js";
import { findEntries, findLines, findPlace, versionIn } from "./find.js";
import { createTextSearch } from "./texts.js";

/** @typedef {import("./find.js").Entry} Entry */
/** @typedef {import("../document/outline_menu.js").Heading} Heading */
/** @typedef {{focus: () => void, undo: () => void, redo: () => void, save: () => void, developer: () => void, help: () => void, headings: () => Promise<Heading[]>, goTo: (artifactId: string, find: (text: string) => {start: number, end: number}|null) => void}} Actions */
/** @typedef {import("./texts.js").Search} Search */

const SEARCH_AFTER_MS = 150;
/** So many headings leave room for conversations, until something is searched for. */
const FIRST_HEADINGS = 12;
const GROUPS = { action: TEXT.actions, document: TEXT.documents, heading: TEXT.outline, version: TEXT.versions, conversation: TEXT.conversations, line: TEXT.inText, elsewhere: TEXT.inOthers };
/** Of each document of another conversation. */
const MOST_LINES = 3;

/**
 * @param {import("../app.js").App} app
 * @param {Actions} actions
 */
export async function openPalette(app, actions) {
  if (document.querySelector("dialog[open]")) {
    return;
  }
  const { store, client } = app;
  /** @type {ContextSummary[]} */
  let contexts = store.state.contexts;
  /** What is found here, and below it what is found in other conversations. @type {Entry[]} */
  let shown = [];
  let here = 0;
  let rowsHere = 0;
  let chosen = 0;
  /** @type {Search} */
  let texts = { found: [], step: "none", why: "" };
  /** @type {Entry[]} */
  let headings = [];
  const list = h("ul", { class: "palette-list", id: "palette-list", role: "listbox", "aria-label": TEXT.found });
  const field = h("input", {
    class: "field palette-field", type: "search", role: "combobox", "aria-controls": list.id, "aria-expanded": "true",
    "aria-label": TEXT.findAnything, placeholder: TEXT.findAnything, autocomplete: "off", spellcheck: false,
    oninput: () => (show(), searchLater(), searchTexts()),
    onkeydown: pressed,
  });
  const state = h("p", { class: "palette-none", role: "status" });
  const search = createTextSearch(client, ({ contextId }) => contextId !== store.state.contextId, showTexts);
  let later = 0;

  function searchLater() {
    clearTimeout(later);
    later = setTimeout(async () => {
      const query = field.value.trim();
      const page = query ? await client.contexts(query, "").catch(() => null) : { contexts: store.state.contexts };
      if (page && query === field.value.trim() && field.isConnected) {
        contexts = page.contexts;
        chosen === 0 && show();
      }
    }, SEARCH_AFTER_MS);
  }

  function searchTexts() {
    // A guest has no other conversation, and only canvas:v1 promises the search.
    store.state.server?.canvas && !isGuest(store.state) && search.ask(field.value);
  }

  /** @param {Search} found */
  function showTexts(found) {
    texts = found;
    shown = [...shown.slice(0, here), ...textEntries(app, actions, field.value, texts)];
    drawTexts();
  }

  function show() {
    const query = field.value;
    const lines = Object.values(store.state.artifacts).flatMap((artifact) => linesOf(actions, artifact, query));
    const asked = versionEntries(app, query);
    const found = [...asked, ...findEntries(query, [...actionEntries(app, actions), ...documentEntries(app), ...(query.trim() ? headings : headings.slice(0, FIRST_HEADINGS)), ...conversationEntries(app, contexts)]), ...lines];
    here = found.length;
    shown = [...found, ...textEntries(app, actions, query, texts)];
    chosen = 0;
    draw();
  }

  function draw() {
    fill(list, rowsOf(0, here));
    rowsHere = list.childElementCount;
    drawTexts();
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  /** The rows above stay as they are. */
  function drawTexts() {
    [...list.children].slice(rowsHere).forEach((row) => row.remove());
    list.append(...rowsOf(here, shown.length));
    setText(state, stateOf(texts, shown.length === 0));
    field.setAttribute("aria-activedescendant", shown.length ? `palette-${chosen}` : "");
  }

  /** The rows of some entries, with the names of their groups. @param {number} from @param {number} to @returns {HTMLElement[]} */
  function rowsOf(from, to) {
    return shown.slice(from, to).flatMap(({ kind, text, detail }, at) => {
      const number = from + at;
      const row = h(
        "li",
        { class: "palette-entry", role: "option", id: `palette-${number}`, "aria-selected": String(number === chosen), onclick: () => run(number), dir: "auto" },
        h("span", { class: "palette-text" }, text),
        detail && h("span", { class: "palette-detail" }, detail),
      );
      const group = h("li", { class: "palette-group", role: "presentation" }, GROUPS[kind]);
      return kind === shown[number - 1]?.kind ? [row] : [group, row];
    });
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) {
      event.preventDefault();
      chosen = (chosen + step + shown.length) % shown.length;
      draw();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      run(chosen);
    }
  }

  /** @param {number} number */
  function run(number) {
    const entry = shown[number];
    if (entry) {
      field.closest("dialog").close("");
      entry.run();
    }
  }

  const closed = openDialog(TEXT.find, [field, list, state], "dialog-palette");
  const dialog = field.closest("dialog");
  dialog.addEventListener("click", (/** @type {MouseEvent} */ event) => event.target === dialog && dialog.close(""));
  show();
  field.focus();
  actions.headings().then((found) => {
    headings = found.map(({ text, run }) => ({ kind: "heading", text, run }));
    chosen === 0 && field.isConnected && show();
  });
  await closed;
  clearTimeout(later);
  search.stop();
}

/** What the user may do. @param {import("../app.js").App} app @param {Actions} actions @returns {Entry[]} */
function actionEntries(app, { focus, undo, redo, save, developer, help }) {
  const { state } = app.store;
  const changes = mayEdit(state) && Boolean(shownArtifact(state));
  /** @type {[boolean, string, () => void][]} */
  const all = [
    [!isGuest(state), TEXT.newConversation, () => (app.openContext(null), focus())],
    [true, TEXT.writeMessage, focus],
    [changes, TEXT.undo, undo],
    [changes, TEXT.redo, redo],
    [changes, TEXT.saveNow, save],
    [true, TEXT.developerView, developer],
    [true, TEXT.showKeys, help],
  ];
  return all.filter(([has]) => has).map(([, text, run]) => ({ kind: "action", text, run }));
}

/** @param {import("../app.js").App} app @returns {Entry[]} */
function documentEntries({ store, openArtifact }) {
  return Object.values(store.state.artifacts).map(({ artifactId, name }) => ({
    kind: "document",
    text: plainName(name || artifactId),
    run: () => openArtifact(artifactId),
  }));
}

/** @param {import("../app.js").App} app @param {ContextSummary[]} contexts @returns {Entry[]} */
function conversationEntries({ openContext }, contexts) {
  return contexts.map(({ contextId, name, request, artifacts }) => ({
    kind: "conversation",
    text: plainName(name || request || contextId),
    detail: artifacts.map((each) => plainName(each.name || each.artifactId)).join(", "),
    run: () => openContext(contextId),
  }));
}

/** @param {import("../app.js").App} app @param {string} query @returns {Entry[]} */
function versionEntries({ store, openArtifact }, query) {
  const [number, artifact] = [versionIn(query), shownArtifact(store.state)];
  if (!number || !artifact || number > artifact.version) {
    return [];
  }
  const name = plainName(artifact.name || artifact.artifactId);
  const text = say(TEXT.documentVersion, { name, version: String(number) });
  return [{ kind: "version", text, run: () => openArtifact(artifact.artifactId, number === artifact.version ? null : number) }];
}

/** @param {Actions} actions @param {ArtifactView} artifact @param {string} query @returns {Entry[]} */
function linesOf({ goTo }, { artifactId, name, text }, query) {
  const searched = text ?? "";
  return findLines(query, searched).map((each) => ({
    kind: "line",
    text: each.text,
    detail: say(TEXT.lineOf, { name: plainName(name || artifactId), line: String(each.line) }),
    run: () => goTo(artifactId, (now) => mapRange(each, changesOf(searched, now))),
  }));
}

/** @param {import("../app.js").App} app @param {Actions} actions @param {string} query @param {Search} search @returns {Entry[]} */
function textEntries({ openContext }, { goTo }, query, { found }) {
  return found.flatMap(({ contextId, title, artifactId, name, lines }) =>
    lines.slice(0, MOST_LINES).map(({ line, text }) => ({
      kind: "elsewhere",
      text,
      detail: `${say(TEXT.lineOf, { name: plainName(name || artifactId), line: String(line) })} · ${plainName(title)}`,
      run: () => (openContext(contextId), goTo(artifactId, (now) => findPlace(query, now, line))),
    })),
  );
}

/** What is said of the search in other conversations; without it, whether anything was found. @param {Search} search @param {boolean} isEmpty */
function stateOf({ found, step, why }, isEmpty) {
  switch (step) {
    case "searching":
      return TEXT.searchingOthers;
    case "failed":
      return say(TEXT.othersNotSearched, { why });
    default:
      return isEmpty ? TEXT.nothingFound : step === "done" && found.length === 0 ? TEXT.nothingInOthers : "";
  }
}
