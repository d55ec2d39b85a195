// @ts-check
/** Documents that come from files, and those that are saved: one, or all as a ZIP file. */

import { sentence } from "../../errors.js";
import { iconButton } from "../../controls.js";
import { openMenu } from "../../dialogs.js";
import { h } from "../../dom.js";
import { mountDrop } from "../../drop.js";
import { mayEdit, shownContent } from "../../state/reducer.js";
import { DOWNLOAD_AS, fileName, kindOf } from "./kinds.js";
import { download } from "./preview.js";
import { formatsOf } from "../../passage/actions.js";
import { TEXT } from "../../strings.js";

/**
 * @param {App} app
 * @param {HTMLElement} pane  where files can be dropped
 * @param {(more: HTMLElement) => import("../../dialogs.js").MenuItem[]} unseen  what has no button of its own on a narrow screen
 * @returns {HTMLElement}  the button of the menu
 */
export function createFiles(app, pane, unseen) {
  const { store } = app;
  const add = (/** @type {File[]} */ files) => app.upload(files);
  const picker = h("input", { type: "file", multiple: true, hidden: true, onchange: () => (add([...picker.files]), (picker.value = "")) });
  const more = iconButton("more", TEXT.more, open, { "aria-haspopup": "menu" });
  mountDrop(pane, TEXT.dropToAdd, add);
  pane.append(picker);
  return more;

  function open() {
    const { artifacts, server } = store.state;
    const several = Object.keys(artifacts).length > 1;
    openMenu(more, [
      ...(matchMedia("(max-width: 480px)").matches ? unseen(more) : []),
      { text: TEXT.download, sign: "download", run: save },
      ...formats().map((format) => ({ text: DOWNLOAD_AS[format], sign: "download", run: () => saveAs(format) })),
      ...(server?.canvas && several ? [{ text: TEXT.downloadAll, sign: "download", run: () => fetchAndSave(store.state.contextId ?? "") }] : []),
      ...(mayEdit(store.state) ? [{ text: TEXT.addDocuments, sign: "upload", run: () => picker.click() }] : []),
    ]);
  }

  /** The formats into which the server converts the shown document. */
  function formats() {
    const artifact = shownContent(store.state);
    const markdown = artifact !== null && kindOf(artifact).name === "markdown";
    return markdown ? formatsOf(store.state.server?.card).filter((format) => format in DOWNLOAD_AS) : [];
  }

  /** @param {string} format */
  function saveAs(format) {
    const { contextId, version } = store.state;
    return fetchAndSave(contextId ?? "", shownContent(store.state)?.artifactId, format, version);
  }

  function save() {
    const { contextId, version } = store.state;
    const artifact = shownContent(store.state);
    if (artifact && artifact.text !== null && !artifact.cut) {
      download(new Blob([artifact.text], { type: artifact.mediaType || "text/plain" }), fileName(artifact, kindOf(artifact)));
    } else if (artifact && version === null && store.state.server?.canvas) {
      fetchAndSave(contextId ?? "", artifact.artifactId);
    } else if (artifact?.cut) {
      app.notify("error", TEXT.downloadTooLarge);
    } else if (artifact) {
      download(new Blob([JSON.stringify(artifact.others, null, 2)], { type: "application/json" }), `${artifact.name}.json`);
    }
  }

  /**
   * An address alone would be asked for without a key.
   * @param {string} contextId
   * @param {string} [artifactId]
   * @param {string} [format]
   * @param {number|null} [version]
   */
  async function fetchAndSave(contextId, artifactId, format, version) {
    try {
      const file = await app.client.download(contextId, artifactId, format, version);
      download(file, file.name);
    } catch (error) {
      app.notify("error", sentence(error));
    }
  }
}
