// Prints the program for a request: the first argument is "curl" or "python", the second a file with the request as JSON.
import { readFileSync } from "node:fs";
import { asCurl, asPython } from "../../../../server/canvas/developer/programs.js";

const [kind, file] = process.argv.slice(2);
process.stdout.write((kind === "curl" ? asCurl : asPython)(JSON.parse(readFileSync(file, "utf8"))));
