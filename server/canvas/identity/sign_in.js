// @ts-check
/** The dialog that signs somebody in: with a key or a token, or with the provider of the users. */

import { h } from "../dom.js";

/** @type {import("./session.js").Ask} */
export function askForKey({ server, said, signIn, check }) {
  return new Promise((resolve) => {
    const told = h("p", { class: "dialog-text dialog-error", id: "sign-in-said", role: "alert" }, said);
    const field = h("input", {
      class: "field", id: "sign-in-key", type: "password", autocomplete: "current-password", spellcheck: false, required: true,
      "aria-describedby": "sign-in-said",
    });
    const enter = h("button", { class: "button button-primary", type: "submit" }, "Sign in");
    const cancel = h("button", { class: "button", type: "button", onclick: () => dialog.close("") }, "Cancel");
    const provider = signIn && h("button", { class: "button", type: "button", onclick: () => leaveFor(signIn) }, "Sign in with your account");
    const form = h(
      "form",
      { method: "dialog", onsubmit: submit },
      h("label", { class: "dialog-text", htmlFor: "sign-in-key" }, "Key or token"),
      field,
      told,
      h("div", { class: "dialog-actions" }, provider, cancel, enter),
    );
    const where = server ? `${new URL(server).host} asks who you are.` : "This server asks who you are.";
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": "sign-in-title" },
      h("h2", { class: "dialog-title", id: "sign-in-title" }, "Sign in"),
      h("p", { class: "dialog-text" }, `${where} Paste the key or the token that its operator gave you. It is kept until you close this tab.`),
      form,
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    field.focus();

    /** @param {SubmitEvent} event */
    async function submit(event) {
      event.preventDefault();
      enter.disabled = true;
      const reason = await refusal(check, field.value.trim());
      enter.disabled = false;
      if (reason === "") {
        dialog.close("yes");
        return;
      }
      told.textContent = reason;
      field.setAttribute("aria-invalid", "true");
      field.select();
      field.focus();
    }
  });
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
  return response.status === 401 ? "The server does not know this key. Check that you copied all of it, or ask for a new one." : "";
}

/** Comes back to what is open now. @param {string} address */
function leaveFor(address) {
  const back = location.pathname + location.search + location.hash;
  location.assign(`${address}?${new URLSearchParams({ return: back })}`);
}
