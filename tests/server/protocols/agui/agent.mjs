// Runs AG-UI's own client against a server: `node agent.mjs PACKAGE URL THREAD MESSAGE…`. PACKAGE is the client: of the
// line 1.0 or 0.0. Each message is a run of its own; one that begins with "resume:" answers the interrupt of the run
// before it. Prints what the client has in the end as JSON: {messages, state, events}, or {error}.

const [client, url, threadId, ...said] = process.argv.slice(2);
const { HttpAgent } = await import(client);
const agent = new HttpAgent({ url, threadId });
const events = [];
let interrupts = [];

function input(text, number) {
  if (text.startsWith("resume:")) {
    return { resume: interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: text.slice(7) })) };
  }
  agent.messages = [...agent.messages, { id: `said-${number}`, role: "user", content: text }];
  return {};
}

console.error = () => {};
try {
  for (const [number, text] of said.entries()) {
    await agent.runAgent(input(text, number), { onEvent: ({ event }) => void events.push(event) });
    interrupts = events.at(-1).outcome?.interrupts ?? [];
  }
  console.log(JSON.stringify({ messages: agent.messages, state: agent.state, events }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message, events }));
}
