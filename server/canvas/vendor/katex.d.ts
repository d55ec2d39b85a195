export { default } from "katex";
export const sheet: string;
