// @ts-check
/** Puts the page together: the store, the client, the app and the panes; and keeps the address bar in step. */

import { formatPlace, parsePlace } from "./address.js";
import { createApp } from "./app.js";
import { sentence } from "./errors.js";
import { createClient } from "./a2a/client.js";
import { randomId } from "./a2a/ids.js";
import { serverAddress } from "./a2a/servers.js";
import { createSharedFetch } from "./a2a/shared_fetch.js";
import { mountChat } from "./chat/chat.js";
import { loadMarkdown } from "./chat/markdown_text.js";
import { mountContexts } from "./contexts.js";
import { mountPasting } from "./document/files/pasting.js";
import { createSession } from "./identity/session.js";
import { mountKeyboard } from "./keyboard.js";
import { mountLayout } from "./layout.js";
import { loadAhead, partOf, singly, tellMissing, whenIdle, withSheets } from "./loading.js";
import { mountNotices } from "./notices.js";
import { sharedWorker } from "./policy.js";
import { INITIAL, isGuest, isIdentified, reduce } from "./state/reducer.js";
import { createStore } from "./state/store.js";
import { isRunning } from "./state/task.js";
import { watchUpgrades } from "./upgrade.js";
import { TEXT } from "./strings.js";

const REFRESH_MS = 20_000;

const sheet = (/** @type {string} */ name) => new URL(`./style/${name}.css`, import.meta.url);
const panePart = partOf(() => withSheets(import("./document/pane.js"), sheet("views"), sheet("pane")));
const developerPart = partOf(() => withSheets(import("./developer/drawer.js"), sheet("developer")));
const keysPart = partOf(() => import("./keys_dialog.js"));
const palettePart = partOf(() => import("./palette/palette.js"));

const asked = new URLSearchParams(location.search).get("server");
const home = new URL(".", location.href.replace(/[?#].*/, "")).href;
const store = createStore(INITIAL, reduce);
const base = addressOf(asked);
const link = /^#share=([\w-]+)$/.exec(location.hash)?.[1];
if (link) {
  history.replaceState(null, "", location.pathname + location.search);
}
const startWorker = typeof SharedWorker === "function" ? () => sharedWorker(new URL("./a2a/shared_worker.js", import.meta.url)) : null;
// Until the server has said whose cookies the requests carry, this window shares its streams with no other.
const alone = randomId();
const send = createSharedFetch(startWorker, { owner: () => (base === home && !isIdentified(store.state) ? alone : session.user) });
/** @type {import("./identity/session.js").Session} */
const session = createSession(base, { home, fetch: send, contextId: parsePlace(location.hash).contextId });
const client = createClient(base, { home, fetch: session.fetch });
const app = createApp(store, client, { navigate, session });

/** The server that was asked for; this one if that is no address. @param {string|null} server */
function addressOf(server) {
  try {
    return serverAddress(server, home);
  } catch (error) {
    store.dispatch({ type: "notice", kind: "error", text: sentence(error) });
    return home;
  }
}

/** @param {string} hash @param {boolean} replace */
function navigate(hash, replace) {
  if (hash !== location.hash) {
    history[replace ? "replaceState" : "pushState"](null, "", hash === "#/" ? location.pathname + location.search : hash);
  }
}

function goToAddress() {
  if (location.hash.startsWith("#share=")) {
    return location.reload();
  }
  const { contextId, artifactId, version } = parsePlace(location.hash);
  if (session.changesAt(contextId)) {
    return location.reload();
  }
  app.openContext(contextId);
  if (artifactId !== store.state.artifactId || version !== store.state.version) {
    app.openArtifact(artifactId, version);
  }
}

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

// Until the conversation of an address is read, the page shows neither it nor a new one.
link || parsePlace(location.hash).contextId || store.dispatch({ type: "context-opened", contextId: null });
mountLayout(element("shell"), app);
mountContexts(element("contexts"), app);
mountChat(element("chat"), app);
mountNotices(element("notices"), app);
watchUpgrades(app);
tellMissing(showMissing);
const painted = firstPaint();
const pane = painted.then(() => panePart.get()).then(({ createDocumentPane }) => createDocumentPane(app));
painted.then(loadMarkdown).then(() => pane).then(() => new Promise(whenIdle)).then(loadAhead).then(() => startWorker?.()).catch(() => {});
pane.then(({ element: shown, growing }) => (element("document").append(shown), document.querySelector(".chat-notice")?.before(growing)));
/** @type {import("./palette/palette.js").Actions & Record<"stop"|"find"|"next"|"previous"|"accept"|"reject", () => void>} */
const actions = {
  focus: () => document.querySelector("textarea")?.focus(),
  stop: () => Object.values(store.state.tasks).forEach(({ state, taskId }) => isRunning(state) && app.cancel(taskId)),
  undo: async () => (await pane).step("undo"),
  redo: async () => (await pane).step("redo"),
  save: async () => void (await pane).save(),
  next: async () => (await pane).review("next"),
  previous: async () => (await pane).review("previous"),
  accept: async () => (await pane).review("accept"),
  reject: async () => (await pane).review("reject"),
  help: singly(async () => (await keysPart.get()).showKeys()),
  developer: singly(async () => (await developerPart.get()).toggleDeveloper(app)),
  headings: async () => (await pane).headings(),
  goTo: async (artifactId, find) => (await pane).goTo(artifactId, find),
  find: singly(async () => (await palettePart.get()).openPalette(app, actions)),
};
element("shell").addEventListener("show-developer", actions.developer);
mountKeyboard(actions);

/** Libraries wait for the first paint; a page in a hidden tab is not painted, so that they wait for a second at most. */
function firstPaint() {
  return new Promise((done) => {
    const observer = new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").length && done(null));
    observer.observe({ type: "paint", buffered: true });
    setTimeout(done, 1000);
  });
}

/** One notice for all that is missing. @type {import("./loading.js").Tell} */
function showMissing(remedy) {
  const shown = store.state.notices.find(({ text }) => text === TEXT.partMissing);
  shown && store.dispatch({ type: "notice-dismissed", id: shown.id });
  remedy && app.notify("error", TEXT.partMissing, remedy);
}

/** @param {string} token */
async function openLink(token) {
  try {
    const contextId = await session.openLink(token);
    contextId && history.replaceState(null, "", formatPlace({ contextId, artifactId: null, version: null }));
  } catch (error) {
    app.notify("error", sentence(error));
  }
}

async function start() {
  link && (await openLink(link));
  try {
    await app.start();
  } catch (error) {
    app.notify("error", sentence(error));
  }
  goToAddress();
  if (isGuest(store.state) && store.state.contextId === null) {
    app.openContext(store.state.contexts[0]?.contextId ?? null);
  }
  addEventListener("popstate", goToAddress);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && app.refresh());
  setInterval(() => document.visibilityState === "visible" && app.refresh(), REFRESH_MS);
}

mountPasting(app, start());
