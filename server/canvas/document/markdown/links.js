// @ts-check
/**
 * What a document names within its conversation: its headings and footnotes, other documents, pictures among them. The sanitizer has
 * left the names in `data-to`, and no address that the browser would follow.
 */

import { pictureOf } from "../files/preview.js";

/** @typedef {{all: () => Record<string, ArtifactView>, open: (artifactId: string) => void}} Documents  of the conversation */

/**
 * @param {Documents} documents
 * @param {() => Element} root  what shows the document, all of it
 */
export function createLinks(documents, root) {
  /** @type {Map<ArtifactView, Map<string, string>>} */
  const pictures = new Map();
  return { dress, follow, end: () => pictures.forEach((each) => each.forEach((address) => URL.revokeObjectURL(address))) };

  /** Makes links and pictures of the names that mean something. @param {ParentNode} made */
  function dress(made) {
    for (const element of made.querySelectorAll("[data-to]")) {
      const name = element.getAttribute("data-to") ?? "";
      if (element.tagName === "IMG") {
        const address = pictureAddress(name);
        address ? element.setAttribute("src", address) : element.classList.add("document-missing");
      } else if (name.startsWith("#") || documentNamed(documents.all(), name)) {
        element.className = "document-link";
        element.setAttribute("role", "link");
        element.setAttribute("tabindex", "0");
      }
    }
  }

  /** One address for a picture, so that what is rendered again is the same. @param {string} name */
  function pictureAddress(name) {
    const artifact = documentNamed(documents.all(), name);
    const file = fileNamed(name);
    const known = artifact && pictures.get(artifact)?.get(file);
    const picture = artifact && !known ? pictureOf(artifact, file) : null;
    if (!artifact || !picture) {
      return known;
    }
    const address = URL.createObjectURL(picture);
    pictures.set(artifact, (pictures.get(artifact) ?? new Map()).set(file, address));
    return address;
  }

  /** @param {EventTarget|null} target @returns {boolean}  whether it was a link of the document */
  function follow(target) {
    const link = target instanceof Element ? target.closest(".document-link") : null;
    const name = link?.getAttribute("data-to") ?? "";
    const artifact = name.startsWith("#") ? null : documentNamed(documents.all(), name);
    artifact && documents.open(artifact.artifactId);
    if (name.startsWith("#")) {
      placeNamed(root(), name.slice(1))?.scrollIntoView({ block: "start" });
    }
    return link !== null;
  }
}

/** The file that an address names. @param {string} address */
function fileNamed(address) {
  const name = address.replace(/#.*/s, "").replace(/^(?:\.\/)+/, "");
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** @param {Record<string, ArtifactView>} all @param {string} address @returns {ArtifactView|null} */
export function documentNamed(all, address) {
  const name = fileNamed(address);
  const has = (/** @type {ArtifactView} */ each) => each.name === name || each.others.some((part) => "filename" in part && part.filename === name);
  return all[name] ?? Object.values(all).find(has) ?? null;
}

/** A heading, as other programs call it in an address, or a footnote. @param {Element} root @param {string} name */
function placeNamed(root, name) {
  if (name.startsWith("^")) {
    return [...root.querySelectorAll(".document-note")].find((each) => each.getAttribute("data-note")?.toUpperCase() === name.slice(1));
  }
  const wanted = slugOf(fileNamed(name));
  const headings = [...root.querySelectorAll("h1, h2, h3, h4, h5, h6")];
  const slugs = numberRepeats(headings.map((each) => slugOf(each.textContent ?? "")));
  return headings[slugs.indexOf(wanted)];
}

/** @param {string} text */
export function slugOf(text) {
  return text.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M} _-]/gu, "").replaceAll(" ", "-");
}

/** The second of a name is `name-1`. @param {string[]} names */
export function numberRepeats(names) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  return names.map((name) => {
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return count === 0 ? name : `${name}-${count}`;
  });
}
