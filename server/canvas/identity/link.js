// @ts-check
/** The dialog that asks as whom a link is opened. */

import { closingButton, closingButtons, openDialog } from "../dialogs.js";
import { h } from "../dom.js";
import { TEXT, say } from "../strings.js";

const PRIMARY = { class: "button button-primary" };

/** @type {import("./session.js").Choose} */
export async function askWhoOpens({ user, has }) {
  const said = has
    ? say(TEXT.guestOrUser, { user })
    : say(TEXT.guestOnly, { user });
  const chosen = await openDialog(has ? say(TEXT.askUserOrGuest, { user }) : TEXT.askGuest, [
    h("p", { class: "dialog-text" }, said),
    closingButtons(
      closingButton(TEXT.cancel, ""),
      closingButton(TEXT.openAsGuest, "guest", has ? {} : PRIMARY),
      has && closingButton(say(TEXT.openAs, { user }), "user", PRIMARY),
    ),
  ]);
  return /** @type {"user"|"guest"|""} */ (chosen);
}
