// @ts-check
/** The dialog that asks as whom a link is opened. */

import { h } from "../dom.js";

/** @type {import("./session.js").Choose} */
export function askWhoOpens({ user, has }) {
  return new Promise((resolve) => {
    const button = (/** @type {string} */ words, /** @type {string} */ value, look = "") =>
      h("button", { class: `button ${look}`, type: "button", onclick: () => dialog.close(value) }, words);
    const said = has
      ? `The conversation is open to ${user}, too. What a guest writes has no name.`
      : `The conversation is not shared with ${user} by name: the link opens it for a guest. ${user} stays signed in everywhere else.`;
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": "link-title" },
      h("h2", { class: "dialog-title", id: "link-title" }, has ? `Open the link as ${user}, or as a guest?` : "Open the link as a guest?"),
      h("p", { class: "dialog-text" }, said),
      h(
        "div",
        { class: "dialog-actions" },
        button("Cancel", ""),
        button("Open as a guest", "guest", has ? "" : "button-primary"),
        has && button(`Open as ${user}`, "user", "button-primary"),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(/** @type {"user"|"guest"|""} */ (dialog.returnValue));
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
