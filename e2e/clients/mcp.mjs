// All clients, transports and revisions, each with its own user.
//
//   node mcp.mjs [--short]
//
// It takes from the environment where the server is (SOUVENIR_AT), the program (SOUVENIR) and its file (DB).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { inspector, newer, newest, older } from "./adapters.mjs";
import { endsWithItsToken, everything, onlyReads, pagesOf, revisions } from "./everything.mjs";

const short = process.argv[2] === "--short";
const { SOUVENIR_AT: url, SOUVENIR: souvenir, DB: db } = process.env;
const program = (args, input) => execFileSync(souvenir, [...args, "--db", db], { input, encoding: "utf8" }).trim();

function user(name, scopes = "memory:read,memory:write,files:read,files:write") {
  program(["user", "add", name, "--password-stdin"], randomBytes(18).toString("base64"));
  return token(name, scopes);
}

const token = (name, scopes) => program(["token", "add", "--user", name, "--name", name, "--scope", scopes]);
const over = (given) => ({ url: `${url}/mcp`, token: given });
const streams = (name, ...more) =>
  ({ command: souvenir, args: ["mcp", "--db", db, "--user", name, "--toolsets", "memory,chatgpt", ...more] });

// tries runs one client.
async function tries(name, kind, place, revision, what) {
  const client = await kind(place, revision);
  try {
    assert.equal(client.revision, revision);
    await what(client);
  } catch (error) {
    throw new Error(`${name}: ${error.message}`, { cause: error });
  } finally {
    await client.close();
  }
}

const handshakes = revisions.filter((revision) => revision !== newest);
const matrix = [];
for (const [of, kind, speaks] of [["older", older, handshakes], ["newer", newer, revisions],
  ["inspector", inspector, [handshakes.at(-1), newest]]]) {
  for (const revision of speaks) {
    for (const transport of ["http", "stdio"]) {
      // The Inspector starts Node for each request; the short form does everything once with it.
      const leave = short && kind === inspector && (revision !== newest || transport !== "http");
      if (!leave) matrix.push({ name: `${of}-${transport}-${revision}`, kind, transport, revision });
    }
  }
}

async function whole({ name, kind, transport, revision }) {
  const [given, began] = [user(name), Date.now()];
  await tries(name, kind, transport === "http" ? over(given)
    : streams(name), revision, (client) => everything(client, name));
  console.log(`ok ${name}: every tool, resource and prompt, ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

// Two at a time, the slow ones first.
const waiting = matrix.toSorted((a, b) => (b.kind === inspector) - (a.kind === inspector));
await Promise.all([0, 1].map(async () => { while (waiting.length > 0) await whole(waiting.shift()); }));

const reader = user("reader", "memory:read");
const many = user("many");
const first = await newer(over(many), newest);
for (let i = 0; i < 110; i++) await first.call("memory", { action: "store", content: `Stone ${i}` });
await first.close();
for (const [of, kind, revision] of [["older", older, "2025-11-25"], ["newer", newer, "2025-11-25"],
  ["newer", newer, newest], ["inspector", inspector, "2025-11-25"]]) {
  const name = `${of}, ${revision}`;
  if (kind !== inspector) await tries(name, kind, over(many), revision, (client) => pagesOf(client, 112));
  await tries(name, kind, over(reader), revision, (client) => onlyReads(client, true));
  await tries(name, kind, streams("reader", "--read-only"), revision, (client) => onlyReads(client, false));
  const ending = token("many", "memory:read,memory:write");
  await tries(name, kind, over(ending), revision, (client) =>
    endsWithItsToken(client, () => program(["token", "delete", "--user", "many", ending.slice(0, 8)])));
  console.log(`ok ${name}: pages, a token that may only read, a server for reading, a token that ends`);
}
