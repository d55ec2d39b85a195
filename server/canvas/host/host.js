// @ts-check
/**
 * The view of a document in an MCP host (MCP Apps): it grows while the host's model writes, and follows what others do.
 *
 * Rules:
 * 1. It works with what the host sends. Where the host lets it reach the server, it also follows live, by the address that came
 *    with a result; when that has ended it asks the host for another one.
 * 2. The text is Markdown of strangers: it is sanitized as on the page, and loads nothing.
 */

import { completePart } from "../document/markdown/partial.js";
import { createMarkdownView } from "../document/markdown/markdown.js";
import { fill, h, setText } from "../dom.js";
import { TEXT, say } from "../strings.js";
import { plainName } from "../words.js";
import { createBridge } from "./bridge.js";
import { FOLLOW, NOTHING, callEnded, changeArrived, inputArrived, isMarkdown, passageMessage } from "./shown_document.js";

/** Milliseconds before the view asks for another address to follow, doubled each time that none works. */
const AGAIN = 1_000;
/** So many addresses in a row do not work where the host does not let the view connect: then it is content with the results. */
const MOST_TRIES = 5;

const place = /** @type {HTMLElement} */ (document.getElementById("host"));
const markdown = createMarkdownView();
const plain = h("pre", { class: "host-plain" });
const name = h("h1", { class: "document-name truncate", dir: "auto" });
const about = h("p", { class: "document-about truncate", role: "status" });
const versions = h("select", { class: "host-versions", "aria-label": TEXT.versions, hidden: true, onchange: chooseVersion });
const restore = h("button", { class: "button", type: "button", hidden: true, onclick: restoreChosen }, TEXT.restore);
const open = h("button", { class: "button", type: "button", hidden: true, onclick: openPage }, TEXT.openInPage);
const wish = h("input", { class: "host-wish", "aria-label": TEXT.askAboutPassage, placeholder: TEXT.askAboutPassage, onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && ask() });
const asking = h("div", { class: "host-asking", hidden: true }, wish, h("button", { class: "button", type: "button", onclick: ask }, TEXT.send));
const body = h("div", { class: "document-scroller", tabIndex: 0 });

let shown = NOTHING;
/** The older version that the user looks at; 0 for the current one. */
let older = 0;
let passage = "";
/** @type {EventSource|null} */
let following = null;
let tries = 0;

fill(place, h("header", { class: "document-head" }, h("div", { class: "document-title" }, name, about), versions, restore, open), body, asking);
const bridge = createBridge({
  "ui/notifications/tool-input-partial": ({ arguments: input }) => show(inputArrived(shown, input)),
  "ui/notifications/tool-input": ({ arguments: input }) => show(inputArrived(shown, input)),
  "ui/notifications/tool-result": takeResult,
  "ui/notifications/tool-cancelled": () => show({ ...shown, writing: false }),
  "ui/notifications/host-context-changed": dress,
});
bridge.opened.then(({ hostContext = {} }) => dress(hostContext), () => {});
new ResizeObserver(() => bridge.notify("ui/notifications/size-changed", { height: Math.ceil(place.scrollHeight) })).observe(place);
document.addEventListener("selectionchange", () => {
  const selected = document.getSelection();
  if (selected && body.contains(selected.anchorNode)) {
    passage = String(selected).trim();
    asking.hidden = passage === "";
  }
});

/** The look that the host has. @param {Json} context */
function dress({ theme }) {
  if (theme) {
    document.documentElement.style.colorScheme = theme;
  }
}

/** @param {import("./shown_document.js").Shown} next */
function show(next) {
  shown = next;
  const { artifact, writing, error, url, id } = next;
  setText(name, artifact ? plainName(artifact.name) : id);
  setText(about, error || (writing || artifact?.open ? TEXT.isWritten : artifact?.version ? say(TEXT.versionNumber, { version: artifact.version }) : TEXT.loading));
  open.hidden = !url;
  if (artifact && !older) {
    draw(artifact, artifact.open || writing);
  }
}

/** @param {ArtifactView} artifact @param {boolean} growing */
function draw(artifact, growing) {
  const text = artifact.text ?? "";
  if (isMarkdown(artifact)) {
    markdown.update(growing ? completePart(text) : text);
    body.firstChild === markdown.element || fill(body, markdown.element);
  } else {
    setText(plain, text);
    body.firstChild === plain || fill(body, plain);
  }
}

/** @param {Json} result */
async function takeResult(result) {
  show(callEnded(shown, result));
  result._meta?.[FOLLOW] ? follow(result._meta[FOLLOW]) : shown.id && refresh();
}

/** @param {string} tool @param {Json} input */
const call = (tool, input) => bridge.request("tools/call", { name: tool, arguments: input });

/** Reads the document again, by way of the host. */
async function refresh() {
  const result = await call("read_artifact", { id: shown.id }).catch(() => null);
  if (result && !result.isError) {
    show(callEnded(shown, result));
    result._meta?.[FOLLOW] && follow(result._meta[FOLLOW]);
  }
}

/** Follows the document until the address has ended (rule 1). @param {string} address */
function follow(address) {
  following?.close();
  const source = following = new EventSource(address);
  source.onopen = () => {
    tries = 0;
    listVersions();
  };
  source.onmessage = ({ data }) => {
    const before = shown.artifact;
    show(changeArrived(shown, JSON.parse(data).artifactUpdate));
    shown.artifact !== before && !shown.artifact?.open && listVersions();
  };
  source.onerror = () => {
    source.close();
    if (following === source) {
      following = null;
      tries < MOST_TRIES && setTimeout(refresh, AGAIN * 2 ** tries++);
    }
  };
}

async function listVersions() {
  const { structuredContent: data } = await call("history", { id: shown.id }).catch(() => ({}));
  const all = /** @type {number[]} */ (data?.versions ?? []);
  fill(versions, ...all.map((number) => h("option", { value: String(number), selected: number === (older || data.version) }, say(TEXT.versionNumber, { version: number }))));
  versions.hidden = all.length < 2;
}

async function chooseVersion() {
  const chosen = Number(versions.value);
  older = chosen === shown.artifact?.version ? 0 : chosen;
  restore.hidden = !older;
  const result = older && await call("read_artifact", { id: shown.id, version: older }).catch(() => null);
  const old = result && callEnded(shown, result).artifact;
  old ? draw(old, false) : show(shown);
}

async function restoreChosen() {
  const result = await call("undo", { id: shown.id, base_version: shown.artifact?.version, restore: older }).catch(() => null);
  older = 0;
  restore.hidden = true;
  result && show(callEnded(shown, { ...result, _meta: {} }));
  following || refresh();
}

/** Sends the passage with what the user wants of it to the host's model. */
function ask() {
  const text = passageMessage(shown, passage, wish.value.trim());
  wish.value.trim() && bridge.request("ui/message", { role: "user", content: [{ type: "text", text }] }).then(() => (wish.value = "", asking.hidden = true), () => {});
}

function openPage() {
  bridge.request("ui/open-link", { url: shown.url }).catch(() => {});
}
