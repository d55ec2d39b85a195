// @ts-check
/** The dialog that signs somebody in: with a key or a token, or with the provider of the users. */

import { button } from "../controls.js";
import { openDialog } from "../dialogs.js";
import { h } from "../dom.js";

/** @type {import("./session.js").Ask} */
export async function askForKey({ server, said, signIn, check }) {
  const told = h("p", { class: "dialog-text dialog-error", id: "sign-in-said", role: "alert" }, said);
  const field = h("input", {
    class: "field", id: "sign-in-key", type: "password", autocomplete: "current-password", spellcheck: false, required: true,
    "aria-describedby": "sign-in-said",
  });
  const enter = button("Sign in", null, { type: "submit", class: "button button-primary" });
  const cancel = button("Cancel", () => close(""));
  const provider = signIn && button("Sign in with your account", () => leaveFor(signIn));
  const where = server ? `${new URL(server).host} requires you to sign in.` : "This server requires you to sign in.";
  const asked = openDialog("Sign in", [
    h("p", { class: "dialog-text" }, `${where} Paste the key or the token that its operator gave you. It is kept until you close this tab.`),
    h(
      "form",
      { method: "dialog", onsubmit: submit },
      h("label", { class: "dialog-text", htmlFor: "sign-in-key" }, "Key or token"),
      field,
      told,
      h("div", { class: "dialog-actions" }, provider, cancel, enter),
    ),
  ]);
  field.focus();
  return (await asked) === "yes";

  /** @param {string} value */
  function close(value) {
    field.closest("dialog").close(value);
  }

  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    enter.disabled = true;
    const reason = await refusal(check, field.value.trim());
    enter.disabled = false;
    if (reason === "") {
      close("yes");
      return;
    }
    told.textContent = reason;
    field.setAttribute("aria-invalid", "true");
    field.select();
    field.focus();
  }
}

/** Why a key is not taken; empty if it is. @param {(key: string) => Promise<Response>} check @param {string} key */
async function refusal(check, key) {
  // Others cannot be in a header.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    return "A key contains only letters, digits and punctuation, without spaces. Copy it again.";
  }
  const response = await check(key).catch(() => null);
  if (response === null) {
    return "The server does not answer. Check that you are online and try again.";
  }
  if (response.status === 429) {
    // Too many wrong keys, or a right one with which too much was asked: the server says which.
    const said = await response.json().catch(() => null);
    return said?.error?.message ?? `Too many requests. Try again in ${response.headers.get("Retry-After") ?? "some"} seconds.`;
  }
  if (response.status >= 500) {
    return "The server cannot check this key right now. Try again.";
  }
  return response.status === 401 ? "The server does not recognise this key. Check that you copied all of it, or ask for a new one." : "";
}

/** Comes back to what is open now. @param {string} address */
function leaveFor(address) {
  const back = location.pathname + location.search + location.hash;
  location.assign(`${address}?${new URLSearchParams({ return: back })}`);
}
