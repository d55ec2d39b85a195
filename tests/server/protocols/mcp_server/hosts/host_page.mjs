// The page of an MCP host with the bridge of MCP Apps: it frames the view of /mcp, behind this page's own address, as hosts do.
//
// The frame has an origin of its own, and may connect to what the resource names alone. The test calls `host`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const VIEW = "ui://canvas/artifact.html";
const known = { name: "Goose", version: "1" };
const client = new Client(known, { versionNegotiation: { mode: "auto" } });
await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));
const { tools } = await client.listTools();
const { contents: [view] } = await client.readResource({ uri: VIEW });
const { connectDomains } = view._meta.ui.csp;
const policy = `default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src ${connectDomains.join(" ")}`;

const frame = document.createElement("iframe");
frame.sandbox.add("allow-scripts");
const bridge = new AppBridge(client, known, { openLinks: {}, serverTools: {}, message: {} }, { hostContext: { theme: "light" } });
const messages = [], links = [];
bridge.onmessage = async ({ content }) => (messages.push(content[0].text), {});
bridge.onopenlink = async ({ url }) => (links.push(url), {});
const initialized = new Promise((resolve) => (bridge.oninitialized = resolve));
document.body.append(frame);
await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
frame.srcdoc = view.text.replace("<head>", `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`);
await initialized;

globalThis.host = {
  messages,
  links,
  viewOf: (name) => tools.find((tool) => tool.name === name)._meta?.ui?.resourceUri,
  write: (input) => bridge.sendToolInputPartial({ arguments: input }),
  async call(name, input) {
    await bridge.sendToolInput({ arguments: input });
    const result = await client.callTool({ name, arguments: input });
    await bridge.sendToolResult(result);
    return result.structuredContent;
  },
};
