// @ts-check
/** The last lines of the document that is being written, in the conversation: for screens on which only one of both is seen. */

import { button } from "../controls.js";
import { h, setText } from "../dom.js";
import { ask } from "../layout.js";
import { TEXT, say } from "../strings.js";
import { plainName } from "../words.js";

/** As much as fills the lines that are seen. */
const CHARACTERS = 400;

/** @param {App} app @returns {HTMLElement}  hidden while no document grows */
export function createGrowing(app) {
  const name = h("bdi", { class: "truncate" });
  const lines = h("span", {});
  let artifactId = "";
  const element = button([name, h("span", { class: "growing-lines", "aria-hidden": "true", dir: "auto" }, lines)], open, { class: "growing", hidden: true });
  app.store.subscribe(draw);
  draw(app.store.state);
  return element;

  /** @param {State} state */
  function draw(state) {
    const artifact = Object.values(state.artifacts).findLast((each) => each.open && each.text);
    element.hidden = !artifact;
    if (artifact) {
      artifactId = artifact.artifactId;
      setText(name, plainName(artifact.name));
      element.setAttribute("aria-label", say(TEXT.openNamed, { name: plainName(artifact.name) }));
      setText(lines, artifact.text?.slice(-CHARACTERS).replace(/\n\s*\n/g, "\n").trimEnd() ?? "");
    }
  }

  function open() {
    app.openArtifact(artifactId);
    ask(element, "show-document");
  }
}
