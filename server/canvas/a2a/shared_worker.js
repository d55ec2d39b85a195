// @ts-check
/** The shared worker of all windows of this page in a browser. Its address has no credentials: they come in messages. */

import { createRelay, serveWindow } from "./relay.js";

const relay = createRelay((...given) => fetch(...given));
addEventListener("connect", (event) => serveWindow(relay, /** @type {MessageEvent} */ (event).ports[0]));
