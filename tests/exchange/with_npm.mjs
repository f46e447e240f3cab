// What @huggingface/hub reads in .safetensors files: node with_npm.mjs FOLDER FILE...
// prints the header of each as JSON on a line of its own, null for a file that it refuses. FOLDER is where npm has installed
// the package. The hub it asks is this machine: its fetch is answered from the file.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [folder, ...files] = process.argv.slice(2);
const { parseSafetensorsMetadata } = createRequire(path.join(path.resolve(folder), "package.json"))("@huggingface/hub");

function fetchFrom(bytes) {
  return async (_, options) => {
    const [, first, last] = /bytes=(\d+)-(\d+)/.exec(new Headers(options?.headers).get("range") ?? "") ?? [];
    const begin = Number(first ?? 0), end = Math.min(Number(last ?? bytes.length - 1), bytes.length - 1) + 1;
    return new Response(bytes.subarray(begin, end), {
      status: first === undefined ? 200 : 206,
      headers: { ETag: '"file"', "Content-Range": `bytes ${begin}-${end - 1}/${bytes.length}` },
    });
  };
}

for (const file of files) {
  try {
    const { header } = await parseSafetensorsMetadata({
      repo: "attune/model", path: "model.safetensors", fetch: fetchFrom(readFileSync(file)),
    });
    console.log(JSON.stringify(header));
  } catch (error) {
    console.error(`${error}`);
    console.log("null");
  }
}
