// @ts-check
/**
 * What runs in the frame of a program, before it: takes its text from the page, becomes its document, and tells the page what
 * goes wrong in it. The program can do all that this can, so the page believes nothing of what comes from here.
 */

const page = window.parent;

/** A loop that fails tells no more than this. */
const MOST = 50;
const LONGEST = 500;

let told = 0;

/** @param {string} error */
function tell(error) {
  if (told++ < MOST) {
    page.postMessage({ error: error.slice(0, LONGEST) }, "*");
  }
}

/** @param {any} value */
function wordsOf(value) {
  try {
    return value instanceof Error ? `${value.name}: ${value.message}` : typeof value === "object" ? JSON.stringify(value) : String(value);
  } catch {
    return typeof value;
  }
}

function watch() {
  addEventListener("error", ({ message, lineno }) => tell(lineno ? `${message} (line ${lineno})` : message));
  addEventListener("unhandledrejection", ({ reason }) => tell(`Unhandled rejection: ${wordsOf(reason)}`));
  document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => tell(`Not allowed here: ${blockedURI} (${effectiveDirective})`));
  const { error } = console;
  console.error = (...values) => {
    error(...values);
    tell(values.map(wordsOf).join(" "));
  };
}

/** @param {MessageEvent} event */
function take({ source, data }) {
  if (source === page && typeof data?.program === "string") {
    // It takes all listeners away, these included.
    document.open();
    watch();
    document.write(data.program);
    document.close();
  }
}

// For browsers that know neither the policy's `webrtc` nor Connection-Allowlist.
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) {
  Reflect.deleteProperty(window, name);
}
addEventListener("message", take);
page.postMessage({ ready: true }, "*");
