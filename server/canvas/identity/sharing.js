// @ts-check
/** The dialog with which an owner shares a conversation, with users and by links, and takes that back. */

import { copyText } from "../clipboard.js";
import { button } from "../controls.js";
import { closingButton, closingButtons, openDialog } from "../dialogs.js";
import { fill, h } from "../dom.js";
import { sentence } from "../errors.js";
import { TEXT, say } from "../strings.js";
import { LOCALES, plainName } from "../words.js";

const DAY = 86_400;
/** @type {[string, number][]} in seconds; 0 for never */
const ENDS = [[TEXT.inHour, 3_600], [TEXT.inDay, DAY], [TEXT.inWeek, 7 * DAY], [TEXT.in30Days, 30 * DAY], [TEXT.never, 0]];
const USUAL = 7 * DAY;
/** @type {[string, string][]} */
const LEVELS = [["read", TEXT.read], ["comment", TEXT.mayComment], ["edit", TEXT.edit]];
/** Who approves a call has a name. @type {[string, string][]} */
const LEVELS_OF_USERS = [...LEVELS, ["approve", TEXT.editAndApprove]];

/** @typedef {{shareId: string, user?: string, link?: boolean, level: "read"|"comment"|"edit"|"approve", expires?: string, url?: string}} Share */

/** @param {App} app @param {string} contextId @param {string} title */
export function openSharing(app, contextId, title) {
  const { client } = app;
  const user = h("input", { class: "field", id: "share-user", autocomplete: "off", spellcheck: false, maxLength: 256, required: true });
  const made = h("div", { role: "status" });
  const problem = h("p", { class: "dialog-error", role: "alert" });
  const list = h("ul", { class: "share-list", "aria-label": TEXT.sharedWithList });
  openDialog(say(TEXT.shareTitle, { title }), [
    part("invite", TEXT.inviteUser, TEXT.aboutInvite, [["share-user", TEXT.user, user]], LEVELS_OF_USERS, TEXT.invite, (terms) => invite(user.value.trim(), terms)),
    part("link", TEXT.createALink, TEXT.aboutLink, [], LEVELS, TEXT.createLink, (terms) => share({ link: true, ...terms })),
    problem,
    made,
    list,
    closingButtons(closingButton(TEXT.close, "")),
  ]);
  user.focus();
  attempt(read);

  /** @param {string} name @param {object} terms */
  function invite(name, terms) {
    if (name) {
      share({ user: name, ...terms });
    } else {
      problem.textContent = TEXT.userMissing;
    }
  }

  /** @param {any} asked  as `POST /artifacts/{context}/shares` takes it */
  function share(asked) {
    attempt(async () => {
      const share = await client.shares(contextId, asked);
      user.value = "";
      fill(made, share.url ? linkOf(share.url) : h("p", { class: "dialog-text" }, say(TEXT.sharedWith, { user: plainName(asked.user) })));
      await read();
    });
  }

  async function read() {
    const { shares } = await client.shares(contextId);
    fill(list, shares.length ? shares.map(row) : h("li", { class: "dialog-text" }, TEXT.notShared));
  }

  /** @param {Share} share */
  function row({ shareId, user: name, level: may, expires }) {
    const who = name ? plainName(name) : TEXT.link;
    const until = expires ? say(TEXT.until, { time: new Date(expires).toLocaleString(LOCALES, { dateStyle: "medium", timeStyle: "short" }) }) : "";
    const revoke = () => attempt(async () => {
      await client.shares(contextId, undefined, shareId);
      fill(made);
      await read();
    });
    return h(
      "li",
      { class: "share" },
      h("span", { class: "share-who" }, who, h("span", { class: "muted" }, ` ${say(TEXT.may, { level: may })}${until}`)),
      button(TEXT.revoke, revoke, { "aria-label": say(TEXT.revokeShareOf, { who }) }),
    );
  }

  /** The link is shown once: the server does not store it. @param {string} url */
  function linkOf(url) {
    const address = h("input", { class: "field", readOnly: true, value: url, "aria-label": TEXT.link, onfocus: () => address.select() });
    const copy = async () => {
      const done = await copyText(url);
      problem.textContent = done ? "" : TEXT.cannotCopyPress;
      done || address.focus();
    };
    return [
      h("p", { class: "dialog-text" }, TEXT.copyLinkNow),
      h("div", { class: "share" }, address, button(TEXT.copy, copy, { sign: "copy" })),
    ];
  }

  /** @param {() => Promise<void>} act */
  async function attempt(act) {
    problem.textContent = "";
    try {
      await act();
    } catch (error) {
      problem.textContent = sentence(error, TEXT.cannotShare);
    }
  }
}

/**
 * One way to share: what it needs, what others may do then, and for how long.
 * @param {string} id
 * @param {string} title
 * @param {string} hint
 * @param {[id: string, words: string, control: HTMLElement][]} fields
 * @param {[value: string, words: string][]} levels
 * @param {string} action  on its button
 * @param {(terms: {level: string, expires?: number}) => void} run
 */
function part(id, title, hint, fields, levels, action, run) {
  const level = select(`share-${id}-level`, levels, levels[0][0]);
  const ends = select(`share-${id}-ends`, ENDS.map(([words, seconds]) => [String(seconds), words]), String(USUAL));
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const expires = Number(ends.value);
    run({ level: level.value, ...(expires && { expires }) });
  };
  return h(
    "form",
    { class: "share-part", "aria-labelledby": `share-${id}`, onsubmit: submit },
    h("h3", { class: "share-part-title", id: `share-${id}` }, title),
    h("p", { class: "dialog-text" }, hint),
    fields.map(([name, words, control]) => field(name, words, control)),
    h("div", { class: "share-terms" }, field(level.id, TEXT.theyMay, level), field(ends.id, TEXT.ends, ends), button(action, null, { type: "submit", class: "button button-primary" })),
  );
}

/** @param {string} id @param {[value: string, words: string][]} options @param {string} chosen @returns {HTMLSelectElement} */
function select(id, options, chosen) {
  return h("select", { class: "field", id }, options.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));
}

/** @param {string} id @param {string} words @param {HTMLElement} control */
function field(id, words, control) {
  return h("div", { class: "share-field" }, h("label", { htmlFor: id }, words), control);
}
