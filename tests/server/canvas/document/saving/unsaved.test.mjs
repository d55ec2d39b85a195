import "../page.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";

const { applyChanges } = await import("../../../../../server/canvas/state/text.js");
const { changesBetween, threeWay } = await import("../../../../../server/canvas/document/saving/merging.js");
const unsaved = await import("../../../../../server/canvas/document/saving/unsaved.js");
const { fromStored, isReady, isSaved, mapToShown, open, pieces, toStored } = unsaved;

const edited = (state, text) => unsaved.type(state, changesBetween(state.text, text), text);
const merged = (parts) => parts.map((piece) => piece.text ?? `<${piece.current}|${piece.yours}>`).join("");

// --- merging

test("what each side has changed is in the result", () => {
  assert.equal(merged(threeWay("one two three", "ONE two three", "one two THREE")), "ONE two THREE");
});

test("where both have changed the same words, both forms are there", () => {
  assert.equal(merged(threeWay("Make the fetch now", "Make the load now", "Make the download now")), "Make the <load|download> now");
});

test("where the server has found a conflict, both forms are there, too", () => {
  const texts = ["one two three four", "ONE two three four", "one two three FOUR"];
  assert.equal(merged(threeWay(...texts, [{ start: 0, end: 3 }])), "<ONE|one> two three FOUR");
  assert.equal(merged(threeWay(...texts, [{ start: 0, end: 18 }])), "<ONE two three four|one two three FOUR>");
  assert.equal(merged(threeWay(...texts, [{ start: 4, end: 7 }])), "ONE two three FOUR");
});

test("what both have made alike counts once", () => assert.equal(merged(threeWay("a b c", "a X c", "a X c")), "a X c"));

// --- one step at a time

test("what comes from elsewhere moves what was typed", () => {
  const typed = edited(open(1, "one two three"), "one two three!");
  const { state, changes } = unsaved.takeVersion(typed, 2, "zero one two three");
  assert.equal(state.text, "zero one two three!");
  assert.equal(applyChanges("one two three!", changes), state.text);
  assert.equal(state.version, 2);
});

test("while a put is on its way, nothing is taken over; its version has what was typed", () => {
  const sent = unsaved.send(edited(open(1, "one two"), "one two!"), "m1");
  const more = edited(sent, "one two!?");
  const held = unsaved.takeVersion(more, 3, "zero one two!").state;
  assert.equal(held.text, "one two!?");
  const { state } = unsaved.acknowledge(held, 3);
  assert.deepEqual([state.text, state.version, state.sent], ["zero one two!?", 3, null]);
  assert.ok(isReady(state));
});

test("a put that nobody came before leaves what is shown as it is", () => {
  const sent = unsaved.send(edited(open(1, "a"), "ab"), "m1");
  const { state, changes } = unsaved.takeVersion(unsaved.acknowledge(sent, 2).state, 2, "ab");
  assert.equal(changes, null);
  assert.ok(isSaved(state));
});

test("the same words changed by both stay with their base, until the server has refused them", () => {
  const typed = edited(open(1, "the fetch of it"), "the download of it");
  const behind = unsaved.takeVersion(typed, 2, "the load of it").state;
  assert.deepEqual([behind.text, behind.version], ["the download of it", 1]);
  assert.equal(pieces(behind), null);
  const refused = unsaved.refuse(unsaved.send(behind, "m1"), 2).state;
  assert.equal(merged(pieces(refused)), "the <load|download> of it");
  assert.ok(!isReady(refused) && !isSaved(refused));
  const { state, changes } = unsaved.resolve(refused, "the load and download of it");
  assert.deepEqual([state.text, state.version, isReady(state)], ["the load and download of it", 2, true]);
  assert.equal(applyChanges("the download of it", changes), state.text);
});

test("what the server has refused, the user decides, even where both sides do not touch", () => {
  const sent = unsaved.send(unsaved.takeVersion(edited(open(1, "one two"), "one TWO"), 2, "ONE two").state, "m1");
  const behind = unsaved.send(edited(open(1, "one two"), "one TWO"), "m1");
  assert.equal(sent.text, "ONE TWO");
  const held = unsaved.refuse(unsaved.takeVersion(behind, 2, "ONE two").state, 2, [{ start: 0, end: 7 }]).state;
  assert.equal(merged(pieces(held)), "<ONE two|one TWO>");
  assert.equal(merged(pieces(unsaved.takeVersion(fromStored(JSON.parse(JSON.stringify(toStored(held)))), 2, "ONE two").state)), "<ONE two|one TWO>");
});

test("what was typed since a put, into what the put was merged with, is decided by the user", () => {
  const sent = unsaved.send(edited(open(1, "one two three"), "one two three!"), "m1");
  const more = edited(sent, "one twofold three!");
  const { state } = unsaved.takeVersion(unsaved.acknowledge(more, 3).state, 3, "one twice three!");
  assert.equal(merged(pieces(state)), "one <twice|twofold> three!");
});

test("what was not made is sent again with what came after it", () => {
  const more = edited(unsaved.send(edited(open(1, "a"), "ab"), "m1"), "abc");
  const { state } = unsaved.failed(more);
  assert.deepEqual([state.text, state.sent, isReady(state)], ["abc", null, true]);
});

test("places of the server's text are found in what is shown", () => {
  const typed = edited(open(1, "one two"), "zero one two");
  assert.deepEqual(mapToShown(typed, 1, { start: 4, end: 7 }), { start: 9, end: 12 });
  assert.equal(mapToShown(typed, 2, { start: 4, end: 7 }), null);
});

test("it is the same after it was stored", () => {
  const more = edited(unsaved.send(edited(open(1, "a\r\nb"), "a\r\nbc"), "m1"), "a\r\nbcd");
  const back = fromStored(JSON.parse(JSON.stringify(toStored(more))));
  assert.deepEqual([back.text, back.sent.text, back.sent.id, back.version], [more.text, more.sent.text, "m1", 1]);
});

// --- in any order

/** Pseudo-random numbers, the same in each run. */
function randoms(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A server: versions, those that were current in order, and merging puts that are known by their id. */
function createServer(text) {
  const versions = [];
  const history = [];
  const made = new Map();
  const add = (next) => history.push(versions.push(next));
  add(text);
  return {
    history,
    get version() {
      return history[history.length - 1];
    },
    textOf: (version) => versions[version - 1],
    get text() {
      return versions[this.version - 1];
    },
    change: add,
    undo: (steps) => history.push(Math.max(1, history[history.length - 1] - steps)),
    put(id, base, yours) {
      if (!made.has(id)) {
        const parts = threeWay(versions[base - 1], this.text, yours);
        if (parts.some((piece) => !("text" in piece))) {
          made.set(id, { refused: this.version });
        } else {
          add(parts.map((piece) => piece.text).join(""));
          made.set(id, { made: this.version });
        }
      }
      return made.get(id);
    },
  };
}

for (let seed = 1; seed <= 400; seed++) {
  test(`whatever happens in whatever order, all is saved and nothing is lost (${seed})`, () => {
    const random = randoms(seed);
    const server = createServer("The tide goes out.\n\nSnails cling to the rock, and wait.\n\nThen it comes back.\n");
    let state = open(1, server.text);
    let editor = state.text;
    let told = 1;
    let answer = null;
    let number = 0;
    const inserted = [];
    const undone = seed % 2 === 0;
    const take = ({ state: next, changes }) => {
      editor = changes ? applyChanges(editor, changes) : editor;
      state = next;
      assert.equal(editor, state.text, "the editor shows the state's text");
    };
    const withToken = (text, who) => {
      const token = ` ${who}${++number}${who} `;
      inserted.push(token.trim());
      const at = random(text.length + 1);
      const clean = inserted.find((each) => text.indexOf(each) !== -1 && at > text.indexOf(each) && at < text.indexOf(each) + each.length);
      const place = clean ? text.indexOf(clean) : at;
      return text.slice(0, place) + token + text.slice(place);
    };
    const tell = () => {
      if (told < server.history.length) {
        // Where a connection was lost, versions between are not told.
        told += random(4) ? 1 : 1 + random(server.history.length - told);
        const version = server.history[told - 1];
        take(unsaved.takeVersion(state, version, server.textOf(version)));
      }
    };
    const send = () => {
      if (isReady(state)) {
        state = unsaved.send(state, `m${++number}`);
      }
      if (state.sent && !answer) {
        answer = { id: state.sent.id, ...server.put(state.sent.id, state.version, state.sent.text) };
      }
    };
    const hear = () => {
      if (answer && answer.id === state.sent?.id) {
        take(answer.made ? unsaved.acknowledge(state, answer.made) : unsaved.refuse(state, answer.refused));
      }
      answer = null;
    };
    const decide = () => {
      const parts = pieces(state);
      parts && take(unsaved.resolve(state, parts.map((piece) => piece.text ?? `${piece.current} ${piece.yours}`).join("")));
    };
    const steps = [
      () => state.refused || ((editor = withToken(editor, "y")), (state = edited(state, editor))),
      () => server.change(withToken(server.text, "s")),
      tell,
      send,
      hear,
      () => (answer = null), // the answer is lost
      decide,
      () => {
        take({ state: fromStored(JSON.parse(JSON.stringify(toStored(state)))), changes: null });
        told = server.history.length;
        take(unsaved.takeVersion(state, server.version, server.text));
      },
      () => undone && server.undo(1 + random(2)),
    ];
    for (let step = 0; step < 60; step++) {
      steps[random(steps.length)]();
    }
    for (let round = 0; round < 200 && !(isSaved(state) && told === server.history.length); round++) {
      tell(), send(), hear(), decide();
      if (state.sent?.made && told === server.history.length) {
        take(unsaved.acknowledge(state, state.sent.made, true));
      } else if (state.refused && !pieces(state) && told === server.history.length) {
        take(unsaved.failed(state));
      }
    }
    assert.equal(editor, server.text);
    for (const token of undone ? [] : inserted) {
      assert.ok(editor.includes(token), `${token} is in ${JSON.stringify(editor)}`);
    }
  });
}
