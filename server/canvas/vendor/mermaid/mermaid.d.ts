export { default } from "mermaid";
export function drawIn(stage: Document, policy: object): void;
