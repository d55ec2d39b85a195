// @ts-check
/** Reads server-sent events from a fetch response. EventSource cannot send headers or a body. */

/**
 * @typedef {{id: string|null, event: string, data: string}} ServerEvent
 */

/** @param {Response} response */
export const isEventStream = (response) => response.headers.get("Content-Type")?.startsWith("text/event-stream") ?? false;

/**
 * The events of a stream, decoded as they arrive. A comment counts as a sign of life, and gives no event.
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} [alive]  called for everything that arrives
 * @returns {AsyncGenerator<ServerEvent, void, void>}
 */
export async function* serverEvents(body, alive) {
  for await (const block of serverBlocks(body, alive)) {
    const event = parseEvent(block);
    if (event) {
      yield event;
    }
  }
}

/**
 * The blocks of a stream, comments included, each without the empty line at its end.
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} [alive]  called for everything that arrives
 * @returns {AsyncGenerator<string, void, void>}
 */
export async function* serverBlocks(body, alive = () => {}) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      alive();
      const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      yield* blocks;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/**
 * @param {string} block
 * @returns {ServerEvent|null}  null for a block without data
 */
export function parseEvent(block) {
  /** @type {ServerEvent} */
  const event = { id: null, event: "message", data: "" };
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "data") {
      data.push(value ?? "");
    } else if (field === "id" || field === "event") {
      event[field] = value ?? "";
    }
  }
  return data.length ? { ...event, data: data.join("\n") } : null;
}
