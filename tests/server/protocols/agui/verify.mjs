// Reads a JSON array of event sequences from stdin and holds each against what the AG-UI client itself checks:
// the schema of every event (what the client would strip is an error here), the order of events, and that every
// patch applies to the state it is for. Exits with 0, or prints what is wrong and exits with 1.

import { enforceEvents, verifyEvents } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import jsonpatch from "fast-json-patch";
import { Subject } from "rxjs";

function schemaChecker() {
  const source = new Subject();
  const complaints = [];
  source.pipe(enforceEvents()).subscribe({ error: (error) => complaints.push(error.message) });
  return (event) => {
    const warn = console.warn;
    console.warn = (...words) => complaints.push(words.join(" "));
    try {
      source.next(event);
    } finally {
      console.warn = warn;
    }
    return complaints;
  };
}

function orderChecker() {
  const source = new Subject();
  const complaints = [];
  source.pipe(verifyEvents()).subscribe({ error: (error) => complaints.push(error.message) });
  return (event) => {
    source.next(event);
    return complaints;
  };
}

function stateChecker() {
  let state;
  return (event) => {
    if (event.type === EventType.STATE_SNAPSHOT) {
      state = jsonpatch.deepClone(event.snapshot);
    } else if (event.type === EventType.STATE_DELTA && state === undefined) {
      return ["There is no STATE_SNAPSHOT before it."];
    } else if (event.type === EventType.STATE_DELTA) {
      try {
        state = jsonpatch.applyPatch(state, jsonpatch.deepClone(event.delta), true).newDocument;
      } catch (error) {
        return [error.message];
      }
    }
    return [];
  };
}

function check(sequence, name) {
  const checkers = [schemaChecker(), orderChecker(), stateChecker()];
  for (const [at, event] of sequence.entries()) {
    const complaints = checkers.flatMap((complain) => complain(event));
    if (complaints.length) {
      return [`${name}, event ${at} (${JSON.stringify(event).slice(0, 400)}): ${complaints.join(" ")}`];
    }
  }
  const last = sequence.at(-1)?.type;
  return last === EventType.RUN_FINISHED || last === EventType.RUN_ERROR ? [] : [`${name} ends with ${last}, not with its run.`];
}

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const sequences = JSON.parse(Buffer.concat(chunks).toString("utf8"));
const complaints = sequences.flatMap((sequence, number) => check(sequence, `Sequence ${number}`));
if (complaints.length) {
  console.log(complaints.join("\n"));
  process.exitCode = 1;
}
