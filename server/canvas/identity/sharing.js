// @ts-check
/** The dialog with which an owner shares a conversation, with users and by links, and takes that back. */

import { sentence } from "../app.js";
import { fill, h } from "../dom.js";
import { icon } from "../icons.js";

const DAY = 86_400;
/** @type {[string, number][]} in seconds; 0 for never */
const ENDS = [["Never", 0], ["In an hour", 3_600], ["In a day", DAY], ["In a week", 7 * DAY], ["In 30 days", 30 * DAY]];

/** @typedef {{shareId: string, user?: string, link?: boolean, level: "read"|"edit"|"approve", expires?: string, url?: string}} Share */

/** @param {import("../app.js").App} app @param {string} contextId @param {string} title */
export function openSharing(app, contextId, title) {
  const { client } = app;
  const user = h("input", { class: "field", id: "share-user", autocomplete: "off", spellcheck: false, maxLength: 256, "aria-describedby": "share-hint" });
  const level = h("select", { class: "field", id: "share-level" }, h("option", { value: "read" }, "Read"), h("option", { value: "edit" }, "Edit"), h("option", { value: "approve" }, "Edit and approve calls"));
  const ends = h("select", { class: "field", id: "share-ends" }, ENDS.map(([words, seconds]) => h("option", { value: seconds }, words)));
  const made = h("div", { role: "status" });
  const told = h("p", { class: "dialog-error", role: "alert" });
  const list = h("ul", { class: "share-list", "aria-label": "Shared with" });
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "share-title", onclose: () => dialog.remove() },
    h("h2", { class: "dialog-title", id: "share-title" }, `Share “${title}”`),
    h(
      "form",
      { onsubmit: share },
      field("share-user", "User", user),
      h("p", { class: "dialog-text", id: "share-hint" }, "The name of a user of this server. Without one it is shared by a link: whoever has it needs no name."),
      field("share-level", "They may", level),
      field("share-ends", "Ends", ends),
      told,
      h("div", { class: "dialog-actions" }, h("button", { class: "button button-primary", type: "submit" }, "Share")),
    ),
    made,
    list,
    h("form", { method: "dialog", class: "dialog-actions" }, h("button", { class: "button" }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
  user.focus();
  attempt(read);

  /** @param {SubmitEvent} event */
  function share(event) {
    event.preventDefault();
    const name = user.value.trim();
    const expires = Number(ends.value);
    attempt(async () => {
      const share = await client.shares(contextId, { ...(name ? { user: name } : { link: true }), level: level.value, ...(expires && { expires }) });
      user.value = "";
      fill(made, share.url ? linkOf(share.url) : h("p", { class: "dialog-text" }, `Shared with ${name}.`));
      await read();
    });
  }

  async function read() {
    const { shares } = await client.shares(contextId);
    fill(list, shares.length ? shares.map(row) : h("li", { class: "dialog-text" }, "It is not shared with anybody."));
  }

  /** @param {Share} share */
  function row({ shareId, user: name, level: may, expires }) {
    const who = name ?? "Link";
    const until = expires ? `, until ${new Date(expires).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}` : "";
    const revoke = () => attempt(async () => {
      await client.shares(contextId, undefined, shareId);
      fill(made);
      await read();
    });
    return h(
      "li",
      { class: "share" },
      h("span", { class: "share-who" }, who, h("span", { class: "muted" }, ` may ${may}${until}`)),
      h("button", { class: "button", type: "button", "aria-label": `Revoke the share of ${who}`, onclick: revoke }, "Revoke"),
    );
  }

  /** The link is shown once: the server does not store it. @param {string} url */
  function linkOf(url) {
    const address = h("input", { class: "field", readOnly: true, value: url, "aria-label": "Link", onfocus: () => address.select() });
    const copy = () => navigator.clipboard.writeText(url).then(() => (told.textContent = ""), () => address.focus());
    return [
      h("p", { class: "dialog-text" }, "Copy the link now: it is not shown again."),
      h("div", { class: "share" }, address, h("button", { class: "button", type: "button", onclick: copy }, icon("copy"), "Copy")),
    ];
  }

  /** @param {() => Promise<void>} act */
  async function attempt(act) {
    told.textContent = "";
    try {
      await act();
    } catch (error) {
      told.textContent = sentence(error);
    }
  }
}

/** @param {string} id @param {string} words @param {HTMLElement} control */
function field(id, words, control) {
  return h("div", { class: "share-field" }, h("label", { htmlFor: id }, words), control);
}
