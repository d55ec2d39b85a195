// @ts-check
/**
 * The documents of a shared conversation in a frame of another page, to read: `/embed#share=TOKEN`.
 *
 * Rules:
 * 1. The token stays in the fragment and in memory. It goes to this server alone, in a header, and replaces all cookies.
 * 2. Nothing is stored: browsers refuse it to frames of other sites.
 * 3. A view, and its libraries, are loaded when a document needs them.
 */

import { createClient } from "../a2a/client.js";
import { createTabs } from "../controls.js";
import { createAutoScroll } from "../document/auto_scroll.js";
import { kindOf } from "../document/files/kinds.js";
import { fill, h, setText } from "../dom.js";
import { createKeyed } from "../keyed.js";
import { partOf, withSheets } from "../loading.js";
import { overlays, shownText } from "../state/artifacts.js";
import { recordOf } from "../state/records.js";
import { createStore } from "../state/store.js";
import { TEXT, say } from "../strings.js";
import { plainName } from "../words.js";
import { NO_DOCUMENTS, followDocuments } from "./shared_documents.js";

/** @typedef {import("./shared_documents.js").SharedDocuments} SharedDocuments */
/** @typedef {{element: HTMLElement, destroy: () => void, view: import("../document/views.js").View, follower: ReturnType<typeof createAutoScroll>}} Body */

const viewsPart = partOf(() => withSheets(import("../document/views.js"), new URL("../style/views.css", import.meta.url)));
const home = new URL(".", location.href.replace(/[?#].*/, "")).href;
const token = /^#share=([\w-]+)$/.exec(location.hash)?.[1] ?? "";

/** @type {typeof fetch} */
const fetchWithToken = (url, init = {}) => fetch(url, { ...init, credentials: "omit", headers: { ...init.headers, Authorization: `Bearer ${token}` } });

/** @param {HTMLElement} place @param {import("../a2a/client.js").Client} client */
function mountDocuments(place, client) {
  const store = createStore(NO_DOCUMENTS, (_, /** @type {SharedDocuments} */ next) => next);
  const tabs = createTabs({ label: TEXT.documents, look: "document-tab", choose });
  const name = h("h1", { class: "document-name truncate", dir: "auto" });
  const about = h("p", { class: "document-about truncate", role: "status" });
  const open = h("a", { class: "button embed-open", href: `${home}#share=${token}`, target: "_blank", rel: "noopener" }, TEXT.openConversation);
  const head = h("header", { class: "document-head embed-head" }, h("div", { class: "document-title" }, name, about), open);
  const panel = h("div", { id: "document-panel", class: "document-panel" });
  const waiting = h("p", { class: "embed-note", role: "status" });
  /** @type {ReturnType<typeof createKeyed<Body>>} */
  const keyed = createKeyed(panel, () => (setText(waiting, TEXT.loading), waiting));
  /** The document that the reader has chosen; "" for the one that changed last. */
  let chosen = "";
  /** The versions that are not what their kind says, and so are shown as their source. @type {Record<string, number>} */
  const brokenVersions = recordOf();

  fill(place, tabs.element, head, panel);
  store.subscribe(render);
  render(store.state);
  client.card().then((card) => setText(open, say(TEXT.openIn, { name: plainName(card.name) })), () => {});
  return store.dispatch;

  /** @param {string} id */
  function choose(id) {
    chosen = id;
    render(store.state);
  }

  /** @param {SharedDocuments} documents */
  function render({ connection, artifacts, edits, lastChanged }) {
    const artifact = artifacts[chosen] ?? artifacts[lastChanged] ?? null;
    const all = Object.values(artifacts);
    tabs.update(all.map((one) => ({ id: one.artifactId, name: plainName(one.name), panel: panel.id, busy: one.open })), artifact?.artifactId ?? "");
    tabs.element.hidden = all.length < 2;
    setText(name, artifact ? plainName(artifact.name) : "");
    setText(about, artifact ? stateOf(connection, artifact, edits) : "");
    head.hidden = connection === "ended";
    if (artifact) {
      document.title = plainName(artifact.name);
      showArtifact(artifact, Object.values(edits));
    } else {
      keyed.clear();
      setText(waiting, EMPTY[connection]);
      fill(panel, waiting);
    }
  }

  /** @param {ArtifactView} artifact @param {Edit[]} edits */
  function showArtifact(artifact, edits) {
    const kind = kindOf(artifact);
    const mode = modeOf(artifact, kind.modes[0].mode);
    const key = JSON.stringify([artifact.artifactId, kind.name, kind.language, mode]);
    const body = keyed.show(key, () => makeBody(artifact, kind, mode), ({ follower }) => {
      follower.set(artifact.open);
      render(store.state);
    });
    // A table or a tree in the middle of an edit may be none.
    const { text, ranges } = shownText(artifact, mode === "grid" || mode === "tree" ? [] : edits);
    body?.view.update(text, artifact);
    body?.view.mark({ selection: null, writing: ranges });
    body?.follower.textChanged(artifact.open);
  }

  /** While a table or a tree is written, it is none yet. @param {ArtifactView} artifact @param {import("../document/files/kinds.js").Mode} mode */
  function modeOf({ artifactId, version, open: isOpen, cut }, mode) {
    return (mode === "grid" || mode === "tree") && (isOpen || cut || brokenVersions[artifactId] === version) ? "source" : mode;
  }

  /** @param {ArtifactView} artifact @param {import("../document/files/kinds.js").Kind} kind @param {import("../document/files/kinds.js").Mode} mode @returns {Promise<Body>} */
  async function makeBody(artifact, kind, mode) {
    const documents = { all: () => store.state.artifacts, open: choose };
    const onBroken = () => {
      brokenVersions[artifact.artifactId] = store.state.artifacts[artifact.artifactId].version;
      // It may be drawn just now.
      queueMicrotask(() => render(store.state));
    };
    const options = { artifact, text: artifact.text ?? "", kind, readOnly: true, isFramed: true, onSelect() {}, onInput() {}, onBroken, documents };
    const tell = (/** @type {import("../loading.js").Remedy|null} */ remedy) => setText(waiting, remedy ? TEXT.viewNotLoaded : TEXT.loading);
    const { createView } = await viewsPart.get(tell);
    const view = await createView(mode, options, tell);
    const follower = createAutoScroll(view.scroller, { scrollToEnd: view.scrollToEnd, onChange() {} });
    return { element: view.element, destroy: () => (view.destroy(), follower.destroy()), view, follower };
  }
}

/** What is shown where there is no document. @type {Record<SharedDocuments["connection"], string>} */
const EMPTY = { connecting: TEXT.loading, online: TEXT.noDocumentYet, reconnecting: TEXT.reconnecting, ended: TEXT.linkEndedAskAgain };

/** @param {SharedDocuments["connection"]} connection @param {ArtifactView} artifact @param {Record<string, Edit>} edits */
function stateOf(connection, artifact, edits) {
  const { open, version } = artifact;
  const busy = open ? TEXT.isWritten : overlays(artifact, Object.values(edits)).length > 0 ? TEXT.rewritingPassage : "";
  return connection === "reconnecting" ? TEXT.reconnecting : busy || say(TEXT.versionNumber, { version });
}

function start() {
  const place = /** @type {HTMLElement} */ (document.getElementById("embed"));
  addEventListener("hashchange", () => location.reload());
  if (token) {
    const client = createClient(home, { fetch: fetchWithToken });
    followDocuments(client, mountDocuments(place, client), new AbortController().signal);
    viewsPart.get();
  } else {
    fill(place, h("p", { class: "embed-note" }, TEXT.noLinkHere));
  }
}

start();
