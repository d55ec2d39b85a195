// @ts-check
/**
 * After an upgrade of the server the page that is open is an older one: what it would load later no longer exists.
 * The files of the page have their digest in their address; the server says which is its own.
 */

import { TEXT } from "./strings.js";

/** @param {App} app @param {{fetch?: typeof fetch}} [options] */
export function watchUpgrades(app, { fetch: ask = (...given) => fetch(...given) } = {}) {
  let notified = false;
  let checked = 0;
  // Counted, because a connection that is back within one frame is not seen lost here.
  app.store.subscribe(({ connection, losses }) => {
    if (connection === "online" && losses !== checked && !notified) {
      checked = losses;
      check().catch(() => {});
    }
  });

  async function check() {
    const { assets } = await (await ask("./", { headers: { Accept: "application/json" }, cache: "no-cache" })).json();
    if (assets && !import.meta.url.includes(`/${assets}/`)) {
      notified = true;
      app.notify("error", TEXT.newerPage, { label: TEXT.reload, run: () => location.reload() });
    }
  }
}
