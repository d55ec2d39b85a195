// Types into the source view while its text changes elsewhere; returns what then is true.
async () => {
  const modules = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "document/");
  const { createEditor } = await import(modules + "editor/editor.js");
  const inputs = [];
  const make = (text) => {
    const editor = createEditor({ text, label: "Source", language: "", prose: true, onInput: ({ text }) => inputs.push(text) });
    document.body.append(editor.element);
    return editor;
  };
  const type = ({ view }, text) => view.dispatch({ ...view.state.replaceSelection(text), userEvent: "input.type" });
  const undo = ({ view }) => view.contentDOM.dispatchEvent(new KeyboardEvent("keydown", { key: "z", code: "KeyZ", keyCode: 90, ctrlKey: true, bubbles: true }));

  const editor = make("one\ntwo\nthree\n");
  editor.view.dispatch({ selection: { anchor: 8, head: 13 }, userEvent: "select" });
  editor.update("ONE MORE\ntwo\nthree\n");
  editor.update("ONE MORE\ntwo\nthree\nfour\n");
  const selected = editor.selection().text;
  type(editor, "3");
  editor.update("ONE MORE\nzwei\n3\nfour\n");
  undo(editor);
  const afterUndo = editor.text();

  const crlf = make("one\r\ntwo\r\n");
  crlf.view.dispatch({ selection: { anchor: 3 } });
  type(crlf, " and\nmore");
  const typed = crlf.text();
  crlf.view.dispatch({ changes: { from: crlf.text().indexOf("more") - 1, to: crlf.text().indexOf("more") }, userEvent: "delete.backward" });
  const joined = crlf.text();
  return { selected, afterUndo, typed, joined, inputs: inputs.slice(0, 1) };
};
