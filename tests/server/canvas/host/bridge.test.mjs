import assert from "node:assert/strict";
import { test } from "node:test";
import { createBridge } from "../../../../server/canvas/host/bridge.js";

/** A host, and what it was sent. */
function framed(listeners = {}) {
  const sent = [];
  const host = { postMessage: (message) => sent.push(message) };
  let hear;
  globalThis.addEventListener = (_, listener) => (hear = listener);
  const bridge = createBridge(listeners, host);
  return { bridge, sent, say: (data, source = host) => hear({ source, data }) };
}

test("it introduces itself, and says so when the host has answered", async () => {
  const { bridge, sent, say } = framed();
  assert.deepEqual([sent[0].method, sent[0].params.protocolVersion], ["ui/initialize", "2026-01-26"]);
  say({ jsonrpc: "2.0", id: sent[0].id, result: { hostContext: { theme: "dark" } } });
  assert.equal((await bridge.opened).hostContext.theme, "dark");
  assert.equal(sent.at(-1).method, "ui/notifications/initialized");
});

test("an answer belongs to its request, and an error is one", async () => {
  const { bridge, sent, say } = framed();
  const [one, two] = [bridge.request("tools/call", { name: "a" }), bridge.request("tools/call", { name: "b" })];
  const ids = sent.slice(-2).map(({ id }) => id);
  say({ jsonrpc: "2.0", id: ids[1], result: "b" });
  say({ jsonrpc: "2.0", id: ids[0], error: { code: 1, message: "No." } });
  assert.equal(await two, "b");
  await assert.rejects(one, /No\./);
});

test("notifications reach their listeners, and requests of the host are answered", () => {
  const heard = [];
  const { sent, say } = framed({ "ui/notifications/tool-input": (params) => heard.push(params) });
  say({ jsonrpc: "2.0", method: "ui/notifications/tool-input", params: { arguments: 1 } });
  assert.deepEqual(heard, [{ arguments: 1 }]);
  say({ jsonrpc: "2.0", id: 7, method: "ui/resource-teardown" });
  assert.deepEqual(sent.at(-1), { jsonrpc: "2.0", id: 7, result: {} });
  say({ jsonrpc: "2.0", id: 8, method: "tools/list" });
  assert.equal(sent.at(-1).error.code, -32601);
});

test("nobody else is heard", () => {
  const heard = [];
  const { say } = framed({ "ui/notifications/tool-input": (params) => heard.push(params) });
  say({ jsonrpc: "2.0", method: "ui/notifications/tool-input", params: {} }, { postMessage() {} });
  say({ method: "ui/notifications/tool-input", params: {} });
  say(null);
  assert.deepEqual(heard, []);
});
