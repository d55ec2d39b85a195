// Whose requests carry the key, and what becomes of those that are refused.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { createSession } from "../../../../server/canvas/identity/session.js";

const HOME = "https://canvas.example.com/below/";

let stored;
let sent;
let right;
let asked;
const storage = {
  getItem: (name) => stored.get(name) ?? null,
  setItem: (name, value) => void stored.set(name, value),
  removeItem: (name) => void stored.delete(name),
  clear: () => stored.clear(),
};

/** A server that takes the key `right`. */
async function fetch(url, { headers = {} } = {}) {
  sent.push({ url: String(url), headers });
  const signedIn = headers.Authorization === `Bearer ${right}`;
  if (String(url).endsWith("/auth/session") && !headers.Authorization) {
    return Response.json({ signedIn, required: true, user: "" });
  }
  return signedIn ? Response.json({ signedIn, required: false, user: "ann" }) : new Response("{}", { status: 401 });
}

/** Somebody who types these keys, one after the other, and then gives up. */
const typing = (...keys) => async ({ said, check }) => {
  asked.push(said);
  for (const key of keys) {
    if ((await check(key)).ok) {
      return true;
    }
  }
  return false;
};
const session = (options = {}, base = HOME) => createSession(base, { fetch, storage, ask: typing("right"), reload: () => {}, ...options });

beforeEach(() => {
  stored = new Map();
  sent = [];
  asked = [];
  right = "right";
});

test("a key goes to its server, and to no other origin", async () => {
  stored.set(`a2a-canvas.key:${HOME}`, "right");
  const { fetch: send } = session();
  await send(`${HOME}artifacts`);
  for (const url of ["https://other.example.com/", "http://canvas.example.com/below/", "https://canvas.example.com:8443/"]) {
    await send(url);
  }
  await send(HOME, { mode: "no-cors" });
  assert.deepEqual(sent.map(({ headers }) => headers.Authorization), ["Bearer right", ...Array(4).fill(undefined)]);
});

test("another server gets the key that was given for it, and not this one's", async () => {
  const other = "https://other.example.com/";
  stored.set(`a2a-canvas.key:${HOME}`, "right");
  const { fetch: send } = session({ home: HOME, ask: typing() }, other);
  assert.equal((await send(`${other}artifacts`)).status, 401);
  assert.deepEqual(sent.map(({ headers }) => headers), [{}]);
});

test("what is refused waits for a key, and is sent again; others wait with it", async () => {
  const { fetch: send } = session();
  const answers = await Promise.all([send(`${HOME}a`), send(`${HOME}b`)]);
  assert.deepEqual(answers.map(({ status }) => status), [200, 200]);
  assert.equal(asked.length, 1);
  assert.equal(stored.get(`a2a-canvas.key:${HOME}`), "right");
});

test("a wrong key is not kept", async () => {
  const { fetch: send } = session({ ask: typing("wrong", "very wrong") });
  assert.equal((await send(HOME)).status, 401);
  assert.equal(stored.size, 0);
});

test("a key that the server cannot check now is not taken, and nothing is loaded again", async () => {
  let broken = false;
  let reloaded = 0;
  const failing = (url, init) => (broken ? Promise.resolve(new Response("{}", { status: 503 })) : fetch(url, init));
  const { identify, signIn } = session({ fetch: failing, reload: () => reloaded++ });
  await identify();
  broken = true;
  await signIn();
  assert.equal(reloaded, 0);
  stored.clear();
  await session({ fetch: failing }).signIn();
  assert.equal(stored.size, 0);
});

test("who would rather not sign in is not asked by each request, but when they say so", async () => {
  const { fetch: send, signIn } = session({ ask: typing() });
  await send(HOME);
  await send(HOME);
  assert.equal(asked.length, 1);
  await signIn();
  assert.equal(asked.length, 2);
});

test("a key that was revoked is forgotten, and another one asked for", async () => {
  stored.set(`a2a-canvas.key:${HOME}`, "old");
  const { fetch: send } = session();
  assert.equal((await send(HOME)).status, 200);
  assert.deepEqual(asked, ["This key is no longer valid."]);
});

test("a request that is given up does not wait on", async () => {
  const { fetch: send } = session({ ask: () => new Promise(() => {}) });
  const controller = new AbortController();
  const answer = send(HOME, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(answer, /enough/);
});

test("the server says who it is, after somebody has signed in", async () => {
  assert.deepEqual(await session().identify(), { signedIn: true, required: false, user: "ann" });
});

test("somebody else's key loads the page anew: what is shown is not theirs", async () => {
  let reloaded = 0;
  let user = "ann";
  const named = async (url, init) => {
    const answer = await fetch(url, init);
    return answer.ok && init.headers.Authorization ? Response.json({ signedIn: true, required: false, user }) : answer;
  };
  const keys = ["first", "second"];
  const { identify, fetch: send } = session({ fetch: named, ask: ({ check }) => typing(keys.shift())({ check }), reload: () => reloaded++ });
  right = "first";
  await identify();
  assert.equal(reloaded, 0);
  [right, user] = ["second", "joe"];
  await send(HOME);
  assert.equal(reloaded, 1);
});

test("who signs out leaves nothing of the tab behind", async () => {
  stored.set(`a2a-canvas.key:${HOME}`, "right");
  stored.set("draft", "secret");
  globalThis.location = { pathname: "/", search: "" };
  globalThis.history = { replaceState() {} };
  let reloaded = false;
  await session({ reload: () => (reloaded = true) }).signOut();
  session();
  assert.ok(reloaded);
  assert.equal(stored.size, 0);
});

// ---------------------------------------------------------------------------------------------------------------- links

const GUEST = `a2a-canvas.guest:${HOME}`;

/** A server on which `right` is ann's key, and `link` opens the conversation c, which ann does not have. */
async function shared(url, { headers = {} } = {}) {
  const path = String(url).slice(HOME.length);
  const user = { "Bearer right": "ann", "Bearer link": "" }[headers.Authorization];
  sent.push({ url: String(url), headers });
  if (path === "auth/session") {
    return Response.json({ signedIn: user !== undefined, required: true, user: user ?? "" });
  }
  if (user === undefined) {
    return new Response("{}", { status: 401 });
  }
  return path === "artifacts/c" && user === "ann" ? new Response("{}", { status: 404 }) : Response.json({ contexts: [{ contextId: "c" }] });
}

test("a link is opened at once by somebody who is not signed in", async () => {
  const { openLink, fetch: send } = session({ fetch: shared, choose: () => assert.fail("asked") });
  assert.equal(await openLink("link"), "c");
  assert.equal((await send(`${HOME}artifacts/c`)).status, 200);
});

test("somebody who is signed in is asked, and keeps the key; the token is used for its conversation only", async () => {
  stored.set(`a2a-canvas.key:${HOME}`, "right");
  const choose = async (told) => (asked.push(told), "guest");
  const opening = session({ fetch: shared, choose });
  assert.equal(await opening.openLink("link"), "c");
  assert.deepEqual(asked, [{ user: "ann", has: false }]);
  assert.equal(opening.beside, "ann");
  assert.equal(stored.get(`a2a-canvas.key:${HOME}`), "right");
  for (const [contextId, credential] of [["c", "link"], ["d", "right"], [null, "right"]]) {
    await session({ fetch: shared, contextId }).fetch(`${HOME}artifacts`);
    assert.equal(sent.at(-1).headers.Authorization, `Bearer ${credential}`);
    assert.equal(opening.changesAt(contextId), credential !== "link");
  }
});

test("somebody who does not want to open a link stays where they are", async () => {
  stored.set(`a2a-canvas.key:${HOME}`, "right");
  assert.equal(await session({ fetch: shared, choose: async () => "" }).openLink("link"), "");
  assert.equal(stored.get(GUEST), undefined);
});

test("a link that is not valid says so, and changes nothing", async () => {
  stored.set(`a2a-canvas.key:${HOME}`, "right");
  await assert.rejects(session({ fetch: shared }).openLink("revoked"), /no longer valid/);
  assert.equal(stored.size, 1);
});
