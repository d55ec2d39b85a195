// An agent of the JavaScript SDK: `node js_agent.mjs` says its address, and serves until its input ends. It does what
// `Weather` in test_other_servers.py does.

import { Role, TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";

const { TASK_STATE_WORKING, TASK_STATE_INPUT_REQUIRED, TASK_STATE_COMPLETED, TASK_STATE_CANCELED } = TaskState;
const text = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" });

class Weather {
  async execute(context, bus) {
    const { taskId, contextId } = context;
    const about = (fields) => ({ taskId, contextId, metadata: undefined, ...fields });
    const says = (words) =>
      about({ messageId: crypto.randomUUID(), role: Role.ROLE_AGENT, parts: [text(words)], extensions: [], referenceTaskIds: [] });
    const status = (state, words) => ({ state, message: words && says(words), timestamp: new Date().toISOString() });
    const tell = (state, words) => bus.publish(AgentEvent.statusUpdate(about({ status: status(state, words) })));
    const said = context.userMessage.parts.map((part) => part.content?.value ?? "").join("");
    const first = { id: taskId, contextId, artifacts: [], history: [context.userMessage], metadata: undefined };
    bus.publish(AgentEvent.task(context.task ?? { ...first, status: status(TaskState.TASK_STATE_SUBMITTED) }));
    tell(TASK_STATE_WORKING, `Looking at ${said}…`);
    if (said === "ask") {
      tell(TASK_STATE_INPUT_REQUIRED, "Which city?");
    } else {
      for (const [number, piece] of ["Rain ", "and ", "wind."].entries()) {
        const named = { artifactId: "report", name: "report.md", description: "", metadata: undefined, extensions: [] };
        const artifact = { ...named, parts: [text(piece)] };
        bus.publish(AgentEvent.artifactUpdate(about({ artifact, append: number > 0, lastChunk: number === 2 })));
      }
      tell(TASK_STATE_COMPLETED, `It rains in ${said}.`);
    }
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: "", status: { state: TASK_STATE_CANCELED } }));
    bus.finished();
  }
}

const app = express();
const listener = app.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${listener.address().port}`;
  const at = (path, protocolBinding, protocolVersion) => ({ url: url + path, protocolBinding, protocolVersion, tenant: "" });
  const card = {
    name: "Weather",
    description: "Says whether it rains.",
    version: "1",
    supportedInterfaces: [at("/", "JSONRPC", "1.0"), at("/rest", "HTTP+JSON", "1.0"), at("/", "JSONRPC", "0.3")],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Weather());
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } };
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/rest", restHandler(options));
  app.use("/", jsonRpcHandler(options));
  console.log(url);
});
process.stdin.on("end", () => process.exit()).resume();
