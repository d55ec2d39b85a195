// @ts-check
/** The dialog that signs somebody in: with a key or a token, or with the provider of the users. */

import { button } from "../controls.js";
import { openDialog } from "../dialogs.js";
import { h } from "../dom.js";
import { TEXT, say } from "../strings.js";

/** @type {import("./session.js").Ask} */
export async function askForKey({ server, said, signIn, check }) {
  const problem = h("p", { class: "dialog-text dialog-error", id: "sign-in-said", role: "alert" }, said);
  const field = h("input", {
    class: "field", id: "sign-in-key", type: "password", autocomplete: "current-password", spellcheck: false, required: true,
    "aria-describedby": "sign-in-said",
  });
  const enter = button(TEXT.signIn, null, { type: "submit", class: "button button-primary" });
  const cancel = button(TEXT.cancel, () => close(""));
  const provider = signIn && button(TEXT.signInWithAccount, () => leaveFor(signIn));
  const where = server ? say(TEXT.otherSignInRequired, { host: new URL(server).host }) : TEXT.signInRequired;
  const asked = openDialog(TEXT.signIn, [
    h("p", { class: "dialog-text" }, say(TEXT.pasteKey, { where })),
    h(
      "form",
      { method: "dialog", onsubmit: submit },
      h("label", { class: "dialog-text", htmlFor: "sign-in-key" }, TEXT.keyOrToken),
      field,
      problem,
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
    problem.textContent = reason;
    field.setAttribute("aria-invalid", "true");
    field.select();
    field.focus();
  }
}

/** Why a key is not taken; empty if it is. @param {(key: string) => Promise<Response>} check @param {string} key */
async function refusal(check, key) {
  // Others cannot be in a header.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    return TEXT.keyMalformed;
  }
  const response = await check(key).catch(() => null);
  if (response === null) {
    return TEXT.keyNoAnswer;
  }
  if (response.status === 429) {
    // Too many wrong keys, or a right one with which too much was asked: the server says which.
    const said = await response.json().catch(() => null);
    return said?.error?.message ?? say(TEXT.tooManyRequests, { seconds: response.headers.get("Retry-After") ?? "some" });
  }
  if (response.status >= 500) {
    return TEXT.keyNotChecked;
  }
  return response.status === 401 ? TEXT.keyUnknown : "";
}

/** Comes back to what is open now. @param {string} address */
function leaveFor(address) {
  const back = location.pathname + location.search + location.hash;
  location.assign(`${address}?${new URLSearchParams({ return: back })}`);
}
