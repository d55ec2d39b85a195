// @ts-check
/**
 * Who uses the page: the key that it was given, and the requests that carry it.
 *
 * Rules:
 * 1. A key goes to the server that it was given for, and to no other origin. It is in no address and in no log.
 * 2. It is kept as long as the tab is open. Who signs out leaves nothing behind.
 * 3. A request that is refused without credentials waits until somebody has signed in, and is then sent again.
 */

import { partOf } from "../loading.js";

const KEY = "a2a-canvas.key:";
const SIGNED_OUT = "a2a-canvas.signed-out";
/** Tells the server that the page itself sends a request: no other page can send this header along with a cookie. */
const OWN = { "A2A-Canvas-Page": "1" };

/**
 * Whom the server takes the page for.
 * @typedef {object} Identity
 * @property {boolean} signedIn
 * @property {boolean} required  without credentials there is nothing to see
 * @property {string} user  empty for whoever has only a link, or nothing
 * @property {string} [signIn]  the address at which a browser signs in with the provider of the users
 */

/** @typedef {ReturnType<typeof createSession>} Session */
/** Asks the user for a key until one is taken; false if they would rather not. @typedef {(options: {server: string, said: string, signIn: string, check: (key: string) => Promise<Response>}) => Promise<boolean>} Ask */

/**
 * @param {string} base  the address of the server, with a slash at its end
 * @param {{home?: string, fetch?: typeof fetch, storage?: Pick<Storage, "getItem"|"setItem"|"removeItem"|"clear">, ask?: Ask, reload?: () => void, key?: string}} [options]
 *     `home` is the page's own server, if it is another one; `key` the one to use from now on, such as that of a link
 */
export function createSession(base, options = {}) {
  const { home = base, storage = sessionStorage, ask = askInDialog, reload = () => location.reload() } = options;
  const send = options.fetch ?? ((...given) => fetch(...given));
  const { origin } = new URL(base);
  if (storage.getItem(SIGNED_OUT)) {
    storage.clear();
  }
  let key = options.key ?? storage.getItem(KEY + base) ?? "";
  keep(key);
  let user = "";
  let address = "";
  let declined = false;
  /** @type {Promise<boolean>|null} */
  let asking = null;

  /** @param {any} init @param {string} given */
  function carrying(init, given) {
    const own = base === home ? OWN : {};
    return { ...init, headers: { ...init.headers, ...own, ...(given && { Authorization: `Bearer ${given}` }) } };
  }

  /** `fetch`, with the key (rules 1 and 3). @type {typeof fetch} */
  async function sendWithKey(url, init = {}) {
    if (new URL(String(url), base).origin !== origin || init.mode === "no-cors") {
      return send(url, init);
    }
    for (;;) {
      await unlessAborted(asking, init.signal);
      const given = key;
      const response = await send(url, carrying(init, given));
      if (response.status !== 401) {
        return response;
      }
      if (given === key && !(await unlessAborted(again(given), init.signal))) {
        return response;
      }
    }
  }

  /** The server does not take the key. @param {string} given */
  function again(given) {
    if (given) {
      keep("");
      declined = false;
    }
    return declined ? Promise.resolve(false) : signIn(given ? "This key is not valid any more." : "");
  }

  /** @param {string} [said] */
  function signIn(said = "") {
    asking ??= ask({ server: base === home ? "" : origin, said, signIn: address, check }).then((done) => {
      declined = !done;
      return done;
    }).finally(() => (asking = null));
    return asking;
  }

  /** Whether the server takes a key; then it is kept. @param {string} given */
  async function check(given) {
    const response = await send(`${base}auth/session`, carrying({ cache: "no-store" }, given));
    if (response.status !== 401 && response.status !== 429) {
      keep(given);
      const told = response.ok ? (await response.clone().json()).user : "";
      // What is shown is somebody else's.
      user && user !== told ? reload() : (user = told);
    }
    return response;
  }

  /** @param {string} given */
  function keep(given) {
    key = given;
    given ? storage.setItem(KEY + base, given) : storage.removeItem(KEY + base);
  }

  return {
    fetch: sendWithKey,

    /**
     * Whom the server takes the page for; asks for a key first if there is nothing to see without one.
     * @returns {Promise<Identity|null>}  null if the server does not say
     */
    async identify() {
      for (;;) {
        const response = await sendWithKey(`${base}auth/session`, { cache: "no-store" });
        if (!response.ok) {
          return null;
        }
        /** @type {Identity} */
        const identity = await response.json();
        address = (base === home && identity.signIn) || "";
        user = identity.user;
        if (identity.signedIn || !identity.required || !(await signIn())) {
          return identity;
        }
      }
    },

    /** Asks for a key. @returns {Promise<boolean>} whether one was taken */
    signIn: () => signIn(),

    /** Forgets who it was, and all that this tab has kept. What was typed last is still on its way with the key. */
    async signOut() {
      storage.setItem(SIGNED_OUT, "1");
      if (address) {
        await send(`${base}auth/sign-out`, carrying({ method: "POST" }, "")).catch(() => {});
      }
      history.replaceState(null, "", location.pathname + location.search);
      reload();
    },
  };
}

const signInPart = partOf(() => import("./sign_in.js"));

/** @type {Ask} */
async function askInDialog(options) {
  return (await signInPart.get()).askForKey(options);
}

/** @template T @param {Promise<T>|null} promise @param {AbortSignal|null} [signal] @returns {Promise<T|null>} */
function unlessAborted(promise, signal) {
  return new Promise((resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    Promise.resolve(promise).then(resolve, reject);
  });
}
