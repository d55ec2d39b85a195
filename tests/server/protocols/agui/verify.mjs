// Reads JSON arrays of event sequences from stdin, one a line, and holds each sequence against what the AG-UI client
// itself checks: the schema of every event (what the client would strip is an error here), the order of events, and that
// every patch applies to the state it is for. Answers each line with a line: the JSON array of what is wrong.

import { createInterface } from "node:readline";

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

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(JSON.parse(line).flatMap((sequence, number) => check(sequence, `Sequence ${number}`))));
}
