// @ts-check
/** How the writers of annotations are called. Pure. */

import { TEXT } from "../strings.js";
import { plainName } from "../words.js";

/** The users of a link, and the user whom all who have the server's token are. */
const GUEST = "guest";
const EVERYBODY = "shared";

/** @param {State} state @param {{author: string, by?: string}} writer */
export function writerOf(state, { author, by = "" }) {
  if (author === "agent") {
    return TEXT.agent;
  }
  if (isMine(state, { author, by })) {
    return TEXT.you;
  }
  return by === GUEST ? TEXT.guest : plainName(by);
}

/** Whether the user has written something; where nobody has a name, that is not known, and taken for so. @param {State} state @param {{author: string, by?: string}} writer */
export function isMine({ identity }, { author, by = "" }) {
  const user = identity ? identity.user || GUEST : "";
  return author === "user" && (by === "" || by === EVERYBODY || (identity !== null && by === user));
}

/** Whether the user may take an annotation away: docs/annotations.md, `withdraw`. @param {State} state @param {{author: string, by?: string}} writer */
export const mayWithdraw = (state, writer) => state.shared === null || (state.shared.level !== "read" && isMine(state, writer));
