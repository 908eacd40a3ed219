// The conformance suite of the Model Context Protocol: its scenarios for servers, in each revision that has some, and
// its scenarios for authorization servers. A check may fail only if it is in the baseline, for the reason given there;
// one in the baseline that does not fail for that reason must be removed.
//
//   node conformance.mjs BASELINE
//
// The suite sends no token, so a proxy in front of the server adds one. It takes from the environment where the server
// is (SOUVENIR_AT), a token (TOKEN), the program (SOUVENIR), its file (DB), and a person (PERSON_NAME,
// PERSON_PASSWORD).

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { Person, url } from "./person.mjs";

const suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
const revisions = ["2025-06-18", "2025-11-25", "2026-07-28"];

// listens starts a server on a free port.
const listens = (server) =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));

// proxy forwards everything unchanged, with the token.
function proxy() {
  const to = new URL(url);
  return createServer((incoming, answer) => {
    const passed = request({ host: to.hostname, port: to.port, method: incoming.method, path: incoming.url,
      headers: { ...incoming.headers, authorization: `Bearer ${process.env.TOKEN}` } }, (got) => {
      answer.writeHead(got.statusCode, got.rawHeaders);
      got.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    incoming.pipe(passed);
  });
}

// run runs the suite, prints its lines, and returns the checks: scenario, id, status and message. They say more than
// its exit status.
async function run(args, hears = () => {}) {
  const results = mkdtempSync("results-");
  const child = spawn(process.execPath, [suite, ...args, "--output-dir", results],
    { stdio: ["ignore", "pipe", "inherit"] });
  let rest = "";
  child.stdout.on("data", (some) => {
    const lines = (rest + some).split("\n");
    rest = lines.pop();
    lines.forEach(hears);
  });
  await new Promise((resolve) => child.on("close", resolve));
  return readdirSync(results).flatMap((folder) => {
    const scenario = folder.replace(/^(server|authorization-server)-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    return JSON.parse(readFileSync(`${results}/${folder}/checks.json`)).map((check) => ({
      scenario, id: check.id, status: check.status,
        said: `${check.errorMessage ?? ""} ${JSON.stringify(check.details ?? {})}`,
    }));
  });
}

// baseline holds the lines SCENARIO CHECK REASON. REASON is the message that the suite must give for the check.
const baseline = readFileSync(process.argv[2], "utf8").split("\n").filter((line) => line
  && !line.startsWith("#")).map((line) => {
  const [, scenario, id, reason] = line.match(/^(\S+)\s+(\S+)\s+(.+)$/)
    ?? assert.fail(`the baseline has the line ${line}`);
  return { scenario, id, reason, failed: 0 };
});

const complaints = [];
const front = proxy();
const port = await listens(front);
for (const revision of revisions) {
  const checks = await run(["server", "--url", `http://127.0.0.1:${port}/mcp`, "--suite", "all", "--spec-version",
    revision]);
  let passed = 0, excused = 0;
  for (const { scenario, id, status, said } of checks) {
    const entry = baseline.find((one) => one.scenario === scenario && one.id === id);
    if (status === "SUCCESS") {
      passed++;
      if (entry) complaints.push(`${revision} ${scenario} ${id} passes, and must be taken out of the baseline`);
    } else if (status === "FAILURE" || status === "WARNING") {
      if (entry && said.includes(entry.reason)) excused = (entry.failed++, excused + 1);
      else complaints.push(`${revision} ${scenario} ${id} ${status}: ${said}`);
    }
  }
  if (passed < 20) complaints.push(`${revision}: only ${passed} checks passed`);
  console.log(`${revision}: ${passed} checks passed, ${excused} need what a real server does not have`);
}
front.close();
for (const { scenario, id, failed } of baseline) if (!failed)
  complaints.push(`${scenario} ${id} never failed, and must be taken out of the baseline`);

// A public client: the suite sends no secret to a server that accepts clients without one. oauth4webapi.mjs tests the
// other ways.
execFileSync(process.env.SOUVENIR, ["client", "add", "--db", process.env.DB, "--user", process.env.PERSON_NAME, "--id",
  "conformance", "--public", "--redirect-uri", "http://127.0.0.1/callback"]);
const spare = createServer();
const callback = await listens(spare);
await new Promise((resolve) => spare.close(resolve));
let asked;
const checks = await run(["authorization", "--url", url, "--client-id", "conformance", "--resource", `${url}/mcp`,
  "--port", String(callback)], (line) => {
  if (line.startsWith(`${url}/oauth/authorize?`))
    asked = new Person().answer(line).then((back) => fetch(back))
      .catch((error) => complaints.push(`authorization: ${error.message}`));
});
await asked;
for (const id of ["authorization-server-metadata", "authorization-server-metadata-cimd", "authorization-code-grant"]) {
  if (!checks.some((check) => check.id === id)) complaints.push(`authorization ${id} was not checked`);
}
for (const { scenario, id, status, said } of checks) if (status !== "SUCCESS")
  complaints.push(`authorization ${scenario} ${id} ${status}: ${said}`);
console.log(`authorization: ${checks.filter(({ status }) => status === "SUCCESS").length} checks passed`);

if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exit(1);
}
console.log("ok conformance suite");
