// @ts-check
/** Holds the state, and tells its listeners of changes: at most once per frame, however many actions there were. */

/**
 * @template S, A
 * @typedef {object} Store
 * @property {S} state
 * @property {(action: A) => void} dispatch
 * @property {(listener: (state: S, previous: S) => void) => () => void} subscribe  returns what ends the subscription
 */

/**
 * @template S, A
 * @param {S} initial
 * @param {(state: S, action: A) => S} reduce
 * @param {(run: () => void) => void} [schedule]  runs a function soon; before the next frame, or soon in a hidden tab
 * @returns {Store<S, A>}
 */
export function createStore(initial, reduce, schedule = nextFrame) {
  /** @type {Set<(state: S, previous: S) => void>} */
  const listeners = new Set();
  let notified = initial;
  let scheduled = false;
  const store = {
    state: initial,
    /** @param {A} action */
    dispatch(action) {
      store.state = reduce(store.state, action);
      if (store.state !== notified && !scheduled) {
        scheduled = true;
        schedule(tell);
      }
    },
    /** @param {(state: S, previous: S) => void} listener */
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  function tell() {
    scheduled = false;
    const previous = notified;
    notified = store.state;
    for (const listener of listeners) {
      listener(notified, previous);
    }
  }
  return store;
}

/** @param {() => void} run */
function nextFrame(run) {
  // A hidden tab has no frames, and is told later.
  if (document.visibilityState === "visible") {
    requestAnimationFrame(run);
  } else {
    setTimeout(run, 100);
  }
}
