// @ts-check
/** Chooses the server that the page is a client of, where its operator has named others. */

import { iconButton } from "./controls.js";
import { openMenu } from "./dialogs.js";
import { TEXT, say } from "./strings.js";

/** @param {App} app @returns {HTMLElement} */
export function createServerChooser({ client }) {
  const button = iconButton("switch", TEXT.chooseServer, choose, { size: 14, "aria-haspopup": "menu", hidden: true });
  const own = new URL(client.home).origin;
  const current = new URL(client.base).origin;
  /** @type {string[]} */
  let servers = [];
  client.others().then((others) => {
    servers = [own, ...others.filter((origin) => origin !== own)];
    button.hidden = others.length === 0 && current === own;
  });

  function choose() {
    const items = servers.map((origin) => ({
      text: origin === own ? say(TEXT.thisServer, { host: hostOf(origin) }) : hostOf(origin),
      sign: origin === current ? "check" : "open",
      run: () => location.assign(origin === own ? client.home : `${client.home}?${new URLSearchParams({ server: `${origin}/` })}`),
    }));
    openMenu(button, items);
  }

  return button;
}

/** @param {string} origin */
function hostOf(origin) {
  return new URL(origin).host;
}
