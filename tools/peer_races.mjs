// Runs wgsl_reflect's race detector. Usage: node peer_races.mjs FOLDER < cases.json > results.json
// A case has `text`, `entry`, `groups`, and `buffers` by binding in group 0. FOLDER is the package.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { detectRaces } = await import(pathToFileURL(`${process.argv[2]}/wgsl_reflect.module.js`).href);
console.log = console.warn = console.error = () => {};
const results = JSON.parse(readFileSync(0, "utf8")).map(({ text, entry, groups, buffers }) => {
    const bound = Object.fromEntries(Object.entries(buffers).map(([key, words]) => [key, new Uint32Array(words)]));
    const began = performance.now();
    let found = { races: [], errors: [] };
    try {
        found = detectRaces(text, entry, groups, { 0: bound });
    } catch (error) {
        found.errors = [String(error)];
    }
    const lines = found.races.flatMap(({ a, b }) => [a.line, b.line]);
    const seconds = (performance.now() - began) / 1000;
    return { races: found.races.length, lines: [...new Set(lines)], errors: found.errors ?? [], seconds };
});
process.stdout.write(JSON.stringify(results));
