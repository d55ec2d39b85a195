// @ts-check
/** The dialog that asks as whom a link is opened. */

import { closingButton, closingButtons, openDialog } from "../dialogs.js";
import { h } from "../dom.js";

const PRIMARY = { class: "button button-primary" };

/** @type {import("./session.js").Choose} */
export async function askWhoOpens({ user, has }) {
  const said = has
    ? `${user} can open the conversation, too. A guest’s messages have no name.`
    : `The conversation is not shared with ${user} by name, so the link opens it as a guest. ${user} stays signed in everywhere else.`;
  const chosen = await openDialog(has ? `Open the link as ${user}, or as a guest?` : "Open the link as a guest?", [
    h("p", { class: "dialog-text" }, said),
    closingButtons(
      closingButton("Cancel", ""),
      closingButton("Open as a guest", "guest", has ? {} : PRIMARY),
      has && closingButton(`Open as ${user}`, "user", PRIMARY),
    ),
  ]);
  return /** @type {"user"|"guest"|""} */ (chosen);
}
