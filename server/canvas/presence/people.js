// @ts-check
/**
 * Who is here: pictures of the others in the head of the document, their cursors and selections in it, and this window's own
 * for them. While nobody else is there, nothing is sent.
 */

import { fill, h } from "../dom.js";
import { randomId } from "../a2a/ids.js";
import { TEXT, say } from "../strings.js";
import { createMoves } from "./moves.js";
import { initialOf, lookOf, marksIn, nameOf } from "./roster.js";

/** So many pictures fit; the others are a number. */
const SHOWN = 5;

/** @param {App} app */
export function createPeople(app) {
  const { store, client } = app;
  const ownWindow = randomId();
  const element = h("ul", { class: "people", role: "list", hidden: true, "aria-label": TEXT.peopleHere });
  const moves = createMoves(({ contextId, ...place }) => client.move(contextId, { window: ownWindow, ...place }));
  /** Where the user's cursor is, told or not. @type {import("./moves.js").Move|null} */
  let own = null;
  let drawn = "";

  store.subscribe((state, previous) => {
    if (state.contextId !== previous.contextId) {
      withdraw();
      own = null;
    }
    if (state.presence !== previous.presence || state.watchers !== previous.watchers) {
      draw(state);
      tell();
    }
  });
  addEventListener("pagehide", withdraw);
  return { element, moved, marks };

  /** The user has moved the cursor, or no longer has one. @param {import("./roster.js").Place|null} place */
  function moved(place) {
    const { contextId } = store.state;
    const before = own;
    own = contextId === null ? null : { contextId, ...place };
    (place || before?.artifactId) && tell();
  }

  function tell() {
    const { presence, watchers } = store.state;
    own && presence && watchers > 1 && moves.move(own);
  }

  function withdraw() {
    const contextId = moves.shownIn();
    contextId && client.move(contextId, { window: ownWindow }, { keepalive: true }).catch(() => {});
  }

  /** Where others are in a document. @param {string} artifactId */
  function marks(artifactId) {
    return marksIn(store.state.presence, artifactId, ownWindow);
  }

  /** @param {State} state */
  function draw({ presence, watchers }) {
    const people = watchers > 1 ? (presence?.people ?? []) : [];
    const more = people.length - SHOWN + (presence?.more ?? 0);
    const key = JSON.stringify([people.map(({ name, guest, colour }) => [name, guest, colour]), more]);
    if (key === drawn) {
      return;
    }
    drawn = key;
    element.hidden = people.length < 2;
    fill(
      element,
      people.slice(0, SHOWN).map((person) => {
        const look = `people-one ${lookOf(person.colour)}`;
        return h("li", { class: look, title: nameOf(person) }, h("span", { "aria-hidden": "true" }, initialOf(person)), h("span", { class: "visually-hidden" }, nameOf(person)));
      }),
      more > 0 && h("li", { class: "people-more", title: say(TEXT.morePeople, { count: more }) }, `+${more}`),
    );
  }
}
