// @ts-check
/**
 * After an upgrade of the server the page that is open is an older one: what it would load later no longer exists.
 * The files of the page have their digest in their address; the server says which is its own.
 */

/** @param {import("./app.js").App} app @param {{fetch?: typeof fetch}} [options] */
export function watchUpgrades(app, { fetch: ask = (...given) => fetch(...given) } = {}) {
  let told = false;
  app.store.subscribe(({ connection }, previous) => {
    if (connection === "online" && previous.connection === "reconnecting" && !told) {
      check().catch(() => {});
    }
  });

  async function check() {
    const { assets } = await (await ask("./", { headers: { Accept: "application/json" }, cache: "no-cache" })).json();
    if (assets && !import.meta.url.includes(`/${assets}/`)) {
      told = true;
      app.notify("error", "The server has a newer version of this page.", { label: "Reload", run: () => location.reload() });
    }
  }
}
