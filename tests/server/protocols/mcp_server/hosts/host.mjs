// A host built with a TypeScript SDK: `node host.mjs LIBRARY URL KEY`, LIBRARY client (2026-07-28) or sdk (2025-11-25).
//
// It lists the tools, writes a document, edits it from an old version, reads it, and prints what it got as JSON.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OlderTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [library, url, key] = process.argv.slice(2);
const requestInit = { headers: { Authorization: `Bearer ${key}` } };
const known = { name: "Code", version: "1" };
const [client, transport] =
  library === "client"
    ? [new Client(known, { versionNegotiation: { mode: "auto" } }), new StreamableHTTPClientTransport(new URL(url), { requestInit })]
    : [new OlderClient(known), new OlderTransport(new URL(url), { requestInit })];

await client.connect(transport);
const { tools } = await client.listTools();
const call = (name, args, options) => (library === "client" ? client.callTool({ name, arguments: args }, options) : client.callTool({ name, arguments: args }, undefined, options));
const made = await call("write_artifact", { name: "tide.md", text: "One two three.\n" });
const { id } = made.structuredContent;
await call("edit_artifact", { id, old: "One", new: "1", base_version: 1 });
const merged = await call("edit_artifact", { id, old: "three", new: "3", base_version: 1 });
const read = await call("read_artifact", { id });
const history = await call("history", { id });
const refused = await call("read_artifact", { id: "x/y" });
const labels = [];
const asked = await call("ask_agent", { text: "write report" }, { onprogress: ({ message }) => labels.push(message) });
const resource = await client.readResource({ uri: `canvas://${id}` });
await client.close();
const text = ({ content }) => content[0].text;
console.log(JSON.stringify({
  tools: tools.map(({ name }) => name),
  merged: text(merged), read: text(read), history: text(history), refused: [refused.isError, text(refused)],
  state: asked.structuredContent.state, labels, resource: resource.contents[0].text,
}));
