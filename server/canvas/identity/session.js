// @ts-check
/**
 * Who uses the page: the key that it was given, and the requests that carry it.
 *
 * Rules:
 * 1. A key goes to the server that it was given for, and to no other origin. It is in no address and in no log.
 * 2. It is kept as long as the tab is open. Signing out leaves nothing behind.
 * 3. A request that is refused without credentials waits until somebody has signed in, and is then sent again.
 * 4. The token of a link is kept beside the key and never replaces it. Somebody who is signed in chooses whether to open the
 *    link as a guest; the token is then used at the address of its conversation only.
 */

import { partOf } from "../loading.js";
import { TEXT } from "../strings.js";

const KEY = "a2a-canvas.key:";
const GUEST = "a2a-canvas.guest:";
const SIGNED_OUT = "a2a-canvas.signed-out";
/** Tells the server that the page itself sends a request: no other page can send this header along with a cookie. */
const OWN = { "A2A-Canvas-Page": "1" };

/**
 * Whom the server takes the page for.
 * @typedef {object} Identity
 * @property {boolean} signedIn
 * @property {boolean} required  without credentials there is nothing to see
 * @property {string} user  empty for a caller with only a link, or nothing
 * @property {string} [signIn]  the address at which a browser signs in with the provider of the users
 */

/** A link that was opened as a guest; `beside` is the user who is signed in, if any. @typedef {{token: string, contextId: string, beside: string}} Guest */
/** Asks who opens a link: the user, if they have the conversation anyway, or a guest; empty for nobody. @typedef {(options: {user: string, has: boolean}) => Promise<"user"|"guest"|"">} Choose */
/** @typedef {ReturnType<typeof createSession>} Session */
/** Asks the user for a key until one is taken; false if they would rather not. @typedef {(options: {server: string, said: string, signIn: string, check: (key: string) => Promise<Response>}) => Promise<boolean>} Ask */

/**
 * @param {string} base  the address of the server, with a slash at its end
 * @param {{home?: string, fetch?: typeof fetch, storage?: Pick<Storage, "getItem"|"setItem"|"removeItem"|"clear">, ask?: Ask, choose?: Choose, reload?: () => void, contextId?: string|null}} [options]
 *     `home` is the page's own server, if it is another one; `contextId` the conversation that the page opens with
 */
export function createSession(base, options = {}) {
  const { home = base, storage = sessionStorage, reload = () => location.reload() } = options;
  const ask = options.ask ?? (async (asked) => (await signInPart.get()).askForKey(asked));
  const choose = options.choose ?? (async (asked) => (await linkPart.get()).askWhoOpens(asked));
  const send = options.fetch ?? ((...given) => fetch(...given));
  const { origin } = new URL(base);
  if (storage.getItem(SIGNED_OUT)) {
    storage.clear();
  }
  let guest = guestAt(options.contextId ?? null);
  let key = guest?.token ?? storage.getItem(KEY + base) ?? "";
  let user = "";
  let address = "";
  let declined = false;
  /** @type {Promise<boolean>|null} */
  let asking = null;

  /** @param {any} init @param {string} given */
  function withKey(init, given) {
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
      const response = await send(url, withKey(init, given));
      if (response.status !== 401) {
        return response;
      }
      if (given === key && !(await unlessAborted(signInAgain(given), init.signal))) {
        return response;
      }
    }
  }

  /** The server does not take the key. @param {string} given */
  function signInAgain(given) {
    if (given && given === guest?.token) {
      return endLink(guest);
    }
    if (given) {
      keep("");
      declined = false;
    }
    return declined ? Promise.resolve(false) : signIn(given ? TEXT.keyEnded : "");
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
    const response = await askAs("auth/session", given);
    if (response.status < 500 && response.status !== 401 && response.status !== 429) {
      keep(given);
      const name = response.ok ? (await response.clone().json()).user : "";
      // What is shown is somebody else's.
      user && user !== name ? reload() : (user = name);
    }
    return response;
  }

  /** The link that was opened as a guest, where it is used (rule 4). @param {string|null} contextId @returns {Guest|null} */
  function guestAt(contextId) {
    /** @type {Guest|null} */
    const opened = JSON.parse(storage.getItem(GUEST + base) ?? "null");
    return opened && (!opened.beside || opened.contextId === contextId) ? opened : null;
  }

  function forgetGuest() {
    storage.removeItem(GUEST + base);
    guest = null;
    key = storage.getItem(KEY + base) ?? "";
  }

  /** @param {Guest} ended */
  function endLink({ beside }) {
    if (beside) {
      leaveLink();
      return Promise.resolve(false);
    }
    forgetGuest();
    return signIn(TEXT.linkEnded);
  }

  /** Goes back from a link to what the user has. */
  function leaveLink() {
    forgetGuest();
    history.replaceState(null, "", location.pathname + location.search);
    reload();
  }

  /** @param {string} path @param {string} given */
  const askAs = (path, given) => send(`${base}${path}`, withKey({ cache: "no-store" }, given));

  /** @param {string} given */
  function keep(given) {
    storage.removeItem(GUEST + base);
    guest = null;
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

    /** The user whom the page was told last; empty for none. */
    get user() {
      return user;
    },

    /** The user beside whom a link is open as a guest; empty for none. */
    get beside() {
      return guest?.beside ?? "";
    },

    /**
     * Opens a link; asks first as whom, if somebody is signed in (rule 4).
     * @param {string} token
     * @returns {Promise<string>} the id of its conversation; empty if it stays closed
     * @throws {Error} with a sentence for the user
     */
    async openLink(token) {
      const own = storage.getItem(KEY + base) ?? "";
      const contextId = await contextOf(await askAs("artifacts", token));
      const session = await askAs("auth/session", own);
      const signedIn = session.ok ? (await session.json()).user : "";
      const has = signedIn !== "" && (await askAs(`artifacts/${encodeURIComponent(contextId)}`, own)).ok;
      const chosen = signedIn ? await choose({ user: signedIn, has }) : "guest";
      if (chosen === "guest") {
        guest = { token, contextId, beside: signedIn };
        storage.setItem(GUEST + base, JSON.stringify(guest));
        key = token;
      }
      return chosen ? contextId : "";
    },

    leaveLink,

    /** Whether the page has to be loaded again to show a conversation: it is seen as a guest, and others are not. @param {string|null} contextId */
    changesAt: (contextId) => guestAt(contextId)?.token !== guest?.token,

    /** Asks for a key. @returns {Promise<boolean>} whether one was taken */
    signIn: () => signIn(),

    /** Forgets who it was, and all that this tab has kept. What was typed last is still on its way with the key. */
    async signOut() {
      storage.setItem(SIGNED_OUT, "1");
      if (address) {
        await send(`${base}auth/sign-out`, withKey({ method: "POST" }, "")).catch(() => {});
      }
      history.replaceState(null, "", location.pathname + location.search);
      reload();
    },
  };
}

const signInPart = partOf(() => import("./sign_in.js"));
const linkPart = partOf(() => import("./link.js"));

/** The conversation that a link is for. @param {Response} response */
async function contextOf(response) {
  if (!response.ok) {
    throw new Error(response.status === 401 ? TEXT.linkEndedAskAgain : TEXT.linkNotOpened);
  }
  const { contexts } = await response.json();
  return contexts[0].contextId;
}

/** @template T @param {Promise<T>|null} promise @param {AbortSignal|null} [signal] @returns {Promise<T|null>} */
function unlessAborted(promise, signal) {
  return new Promise((resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    Promise.resolve(promise).then(resolve, reject);
  });
}
