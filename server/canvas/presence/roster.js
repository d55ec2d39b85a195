// @ts-check
/** Who is in a conversation, as the server tells it, and as the page shows it. Pure. */

import { TEXT } from "../strings.js";

/**
 * @typedef {{artifactId: string, version: number, start: number, end: number}} Place  of a cursor, or of a selection
 * @typedef {{name: string, guest: boolean, colour: string, cursors: (Place & {window: string})[]}} Person
 * @typedef {{people: Person[], more: number, agents: (Place & {taskId: string, colour: string})[]}} Roster
 *
 * A cursor or a selection of somebody else, or a passage that an agent rewrites. `look` is the class of the colour.
 * @typedef {{name: string, look: string, agent: boolean, start: number, end: number}} PersonMark
 */

/** The colours of people that a server names; style/tokens.css has each for light and for dark. */
const COLOURS = [
  "#b3261e", "#a8400a", "#7d5700", "#556300", "#2e6b1f", "#006b5b", "#00677d", "#1f5fa8", "#4b55b8", "#7648b5", "#94388f", "#a8325f",
];

/** The class of a colour. @param {string} colour */
export const lookOf = (colour) => `person person-${Math.max(0, COLOURS.indexOf(colour))}`;

/** @param {Person} person */
export const nameOf = ({ name, guest }) => (guest ? TEXT.guest : name || TEXT.someone);

/** @param {string} name */
export function initialOf(name) {
  const [first = "?"] = name;
  return first.toUpperCase();
}

/**
 * The documents that agents work on, each once, with the task that writes it.
 * @param {Roster|null} roster
 */
export function worksIn(roster) {
  const works = new Map((roster?.agents ?? []).map((each) => [each.artifactId, each]));
  return [...works.values()].map(({ artifactId, colour }) => ({ artifactId, look: lookOf(colour) }));
}

/**
 * Where others are in a document: the cursors of people, and the passages that agents rewrite. The end of a document that
 * is being written is where its text grows, and needs no mark.
 * @param {Roster|null} roster
 * @param {string} artifactId
 * @param {string} ownWindow
 * @param {string} agent  its name
 * @returns {PersonMark[]}
 */
export function marksIn(roster, artifactId, ownWindow, agent) {
  const cursors = (roster?.people ?? []).flatMap((person) =>
    person.cursors.filter(({ window }) => window !== ownWindow).map((cursor) => ({ ...cursor, name: nameOf(person), colour: person.colour, agent: false })),
  );
  const passages = (roster?.agents ?? []).filter(({ start, end }) => start < end).map((place) => ({ ...place, name: agent, agent: true }));
  return [...cursors, ...passages]
    .filter((place) => place.artifactId === artifactId)
    .map(({ name, colour, agent: isAgent, start, end }) => ({ name, look: lookOf(colour), agent: isAgent, start, end }));
}
