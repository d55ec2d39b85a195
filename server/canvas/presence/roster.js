// @ts-check
/** Who is in a conversation, as the server tells it, and as the page shows it. Pure. */

import { TEXT } from "../strings.js";

/**
 * @typedef {{artifactId: string, version: number, start: number, end: number}} Place  of a cursor, or of a selection
 * @typedef {{name: string, guest: boolean, colour: string, cursors: (Place & {window: string})[]}} Person
 * @typedef {{people: Person[], more: number, agents: (Place & {taskId: string, colour: string})[]}} Roster
 *
 * A cursor or a selection of somebody else. `look` is the class of the colour.
 * @typedef {{name: string, look: string, start: number, end: number}} PersonMark
 */

/** The colours of people that a server names; style/tokens.css has each for light and for dark. */
const COLOURS = [
  "#b3261e", "#a8400a", "#7d5700", "#556300", "#2e6b1f", "#006b5b", "#00677d", "#1f5fa8", "#4b55b8", "#7648b5", "#94388f", "#a8325f",
];

/** The class of a colour. @param {string} colour */
export const lookOf = (colour) => `person person-${Math.max(0, COLOURS.indexOf(colour))}`;

/** @param {Person} person */
export const nameOf = ({ name, guest }) => (guest ? TEXT.guest : name || TEXT.someone);

/** @param {Person} person */
export function initialOf(person) {
  const [first = "?"] = nameOf(person);
  return first.toUpperCase();
}

/**
 * Where others are in a document.
 * @param {Roster|null} roster
 * @param {string} artifactId
 * @param {string} ownWindow
 * @returns {PersonMark[]}
 */
export function marksIn(roster, artifactId, ownWindow) {
  return (roster?.people ?? []).flatMap((person) =>
    person.cursors
      .filter((cursor) => cursor.artifactId === artifactId && cursor.window !== ownWindow)
      .map(({ start, end }) => ({ name: nameOf(person), look: lookOf(person.colour), start, end })),
  );
}
