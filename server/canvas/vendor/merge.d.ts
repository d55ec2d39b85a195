export * from "@codemirror/merge";
