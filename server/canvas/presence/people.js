// @ts-check
/**
 * Who is here: pictures of people and of the agent at work in the head of the document, their cursors and passages in it, and
 * this window's own for the others. While nobody else is there, nothing is sent.
 */

import { fill, h } from "../dom.js";
import { randomId } from "../a2a/ids.js";
import { TEXT, say } from "../strings.js";
import { createMoves } from "./moves.js";
import { initialOf, lookOf, marksIn, nameOf, worksIn } from "./roster.js";

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
    return marksIn(store.state.presence, artifactId, ownWindow, agentName(store.state));
  }

  /** @param {State} state */
  function draw(state) {
    const { presence, watchers, artifacts } = state;
    const here = watchers > 1 ? (presence?.people ?? []) : [];
    const people = here.length > 1 ? here : [];
    const more = people.length - SHOWN + (presence?.more ?? 0);
    const pictures = people.slice(0, SHOWN).map((person) => ({ name: nameOf(person), title: nameOf(person), look: lookOf(person.colour) }));
    const name = agentName(state);
    const works = worksIn(presence).map(({ artifactId, look }) => {
      const title = say(TEXT.agentWorksOn, { name, what: artifacts[artifactId]?.name || artifactId });
      return { name, title, look: `people-agent ${look}` };
    });
    const key = JSON.stringify([pictures, works, more]);
    if (key === drawn) {
      return;
    }
    drawn = key;
    element.hidden = people.length + works.length === 0;
    fill(
      element,
      pictures.map(picture),
      more > 0 && h("li", { class: "people-more", title: say(TEXT.morePeople, { count: more }) }, `+${more}`),
      works.slice(0, SHOWN).map(picture),
    );
  }
}

/** @param {{name: string, title: string, look: string}} one */
const picture = ({ name, title, look }) =>
  h("li", { class: `people-one ${look}`, title }, h("span", { "aria-hidden": "true" }, initialOf(name)), h("span", { class: "visually-hidden" }, title));

/** @param {State} state */
const agentName = ({ server }) => server?.card.name || TEXT.agent;
