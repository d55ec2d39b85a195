export { python as language } from "@codemirror/lang-python";
