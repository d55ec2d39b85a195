export { xml as language } from "@codemirror/lang-xml";
