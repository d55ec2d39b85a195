// @ts-check
/** The text of a view in which its user changes one place at a time: what is shown, with changes that are not saved yet. */

/** @typedef {{start: number, end: number, text: string}} Change */

/**
 * @param {object} options
 * @param {string} options.text  as it is on the server
 * @param {() => boolean} options.isEditing  the user has opened a place
 * @param {(text: string) => void} options.show  shows this text; sets `text` if it can
 * @param {(shown: string, change: Change) => Promise<unknown>} [options.onChange]  the user has changed a place of what is shown;
 *     it is saved, or could not be, once this resolves
 */
export function createEditedText({ text: latest, isEditing, show, onChange }) {
  let saving = 0;
  let queue = Promise.resolve();
  const edited = {
    /** What is shown. */
    text: "",
    /** The text is another one on the server. @param {string} next */
    update(next) {
      latest = next;
      edited.catchUp();
    },
    /** Places may have moved under one that is edited or saved: until that is done, the view stays as it is. */
    catchUp() {
      saving === 0 && !isEditing() && latest !== edited.text && show(latest);
    },
    /** @param {Change} change */
    change(change) {
      const shown = edited.text;
      edited.text = shown.slice(0, change.start) + change.text + shown.slice(change.end);
      saving++;
      queue = queue.then(() => onChange?.(shown, change)).then(() => {
        saving--;
        edited.catchUp();
      });
    },
  };
  return edited;
}
