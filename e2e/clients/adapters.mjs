// The clients that everything.mjs tests, behind one interface: the older and the newer SDK in TypeScript and the
// command line of the Inspector, each over HTTP with a token and over the streams of a program that it starts.

import { execFile } from "node:child_process";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OlderStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OlderHTTP } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

export const newest = "2026-07-28";
const us = { name: "e2e", version: "1" };
const pages = { tools: "listTools", resources: "listResources", resourceTemplates: "listResourceTemplates",
  prompts: "listPrompts" };

// A place is where a client finds the server: {url, token} or {command, args}.
const headers = (place) => ({ requestInit: { headers: { Authorization: `Bearer ${place.token}` } } });

// An SDK's client as everything.mjs uses it.
const through = (client, revision) => ({
  revision,
  close: () => client.close(),
  page: async (kind, cursor) => {
    const result = await client[pages[kind]](cursor && { cursor });
    return { items: result[kind], next: result.nextCursor };
  },
  call: (name, args) => client.callTool({ name, arguments: args }),
  read: async (uri) => (await client.readResource({ uri })).contents,
  prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages,
  complete: async (ref, name, value) => (await client.complete({ ref, argument: { name, value } })).completion,
});

// older asks for a revision as the SDK did when that was the newest.
export async function older(place, revision) {
  const transport = place.url ? new OlderHTTP(new URL(place.url), headers(place)) : new OlderStdio(place);
  const send = transport.send.bind(transport);
  let agreed;
  transport.send = (message, options) => send(message.method === "initialize"
    ? { ...message, params: { ...message.params, protocolVersion: revision } } : message, options);
  transport.setProtocolVersion = ((set) => (version) => { agreed = version; set?.(version);
    })(transport.setProtocolVersion?.bind(transport));
  const client = new OlderClient(us);
  await client.connect(transport);
  return through(client, agreed);
}

export async function newer(place, revision) {
  const transport = place.url ? new StreamableHTTPClientTransport(new URL(place.url), headers(place))
    : new StdioClientTransport(place);
  const options = revision === newest ? { versionNegotiation: { mode: { pin: newest } } }
    : { versionNegotiation: { mode: "legacy" }, supportedProtocolVersions: [revision] };
  const client = new Client(us, options);
  await client.connect(transport);
  return through(client, client.getNegotiatedProtocolVersion());
}

// inspector starts a new Inspector for each request.
export async function inspector(place, revision) {
  const where = place.url ? ["--server-url", place.url, "--transport", "http", "--header",
    `Authorization: Bearer ${place.token}`, "--stored-auth-only"] : [place.command, ...place.args];
  const ask = (method, ...more) => new Promise((resolve, reject) => {
    const args = ["node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli", ...where,
      "--protocol-era", revision === newest ? "modern"
        : "legacy", "--format", "json", "-q", "--method", method, ...more];
    execFile(process.execPath, args,
      { maxBuffer: 1 << 26, timeout: 60_000, env: { ...process.env, HOME: process.cwd() } },
        (failed, stdout, stderr) => {
      if (stdout.startsWith("{")) resolve(JSON.parse(stdout).result);
      else reject(new Error(stderr || String(failed)));
    });
  });
  const pairs = (flag, args) => Object.entries(args ?? {}).flatMap(([key, value]) => [flag, `${key}=${value}`]);
  const { protocolVersion } = await ask("initialize");
  return {
    revision: protocolVersion,
    close: async () => {},
    page: async (kind) =>
      ({ items: (await ask(kind === "resourceTemplates" ? "resources/templates/list" : `${kind}/list`))[kind] }),
    call: (name, args) => ask("tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args)),
    read: async (uri) => (await ask("resources/read", "--uri", uri)).contents,
    prompt: async (name, args) => (await ask("prompts/get", "--prompt-name", name, ...pairs("--prompt-args", args)))
      .messages,
    looksFirst: true, // it requests the list of tools, and calls none that is not on it
  };
}
