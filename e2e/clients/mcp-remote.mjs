// mcp-remote: the bridge for clients that support only standard input and output. It prints the address for the
// browser, listens for the answer on its own port, and forwards messages.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Person, done, url } from "./person.mjs";

const remote = spawn(process.execPath,
  ["node_modules/mcp-remote/dist/proxy.js", `${url}/mcp`, "--transport", "http-only"], {
  stdio: ["pipe", "pipe", "pipe"],
  env: { ...process.env, BROWSER: "none", HOME: process.cwd(), MCP_REMOTE_CONFIG_DIR: `${process.cwd()}/mcp-auth`,
    DISPLAY: "" },
});
const said = [];
const person = new Person();
const deadline = setTimeout(() => {
  console.error(said.join("\n"));
  remote.kill("SIGKILL");
  process.exitCode = 1;
}, 60_000);

createInterface({ input: remote.stderr }).on("line", async (line) => {
  said.push(line);
  const asks = line.trim().match(/^http\S+\/oauth\/authorize\?\S+$/);
  if (!asks) return;
  const back = await person.answer(asks[0]);
  assert.equal((await fetch(back)).status, 200, "mcp-remote takes the answer");
});

const waiting = new Map();
createInterface({ input: remote.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
});
let last = 0;
const send = (method, params) =>
  remote.stdin.write(
    `${JSON.stringify({ jsonrpc: "2.0", ...(method.startsWith("notifications/") ? {} : { id: ++last }), method, params })}\n`);
const ask = (method, params) => new Promise((resolve) => {
  send(method, params);
  waiting.set(last, resolve);
});

const begun = await ask("initialize",
  { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "e2e", version: "1" } });
assert.ok(begun.result?.serverInfo, JSON.stringify(begun));
send("notifications/initialized");
const { result } = await ask("tools/list", {});
assert.ok(result.tools.some((tool) => tool.name === "memory"));
const stored = await ask("tools/call",
  { name: "memory", arguments: { action: "store", content: "The remote client was here." } });
assert.ok(!stored.error && !stored.result.isError, JSON.stringify(stored));
assert.deepEqual(person.pages, ["sign-in", "consent"]);
clearTimeout(deadline);
remote.kill("SIGTERM");
done(`mcp-remote, protocol ${begun.result.protocolVersion}`);
process.exit();
