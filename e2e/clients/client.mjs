// @modelcontextprotocol/client, the SDK of 2026-07-28: from a 401 to a tool call, knowing only the address; in the
// newest revision and in one of those with initialize.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { Provider } from "./provider.mjs";
import { done, url, useTools } from "./person.mjs";

async function connect(provider, options) {
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: provider });
  const client = new Client({ name: "e2e", version: "1" }, options);
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    return { transport };
  }
  return { client, transport };
}

async function through(mark, options) {
  const provider = new Provider(`The newer SDK, ${mark}`, "http://localhost:8787/callback");
  const { transport, client: early } = await connect(provider, options);
  assert.equal(early, undefined, "without a token it does not connect");
  await transport.finishAuth(provider.back.searchParams);
  const { client } = await connect(provider, options);
  await useTools(client, mark);
  const before = provider.kept.tokens;
  provider.kept.tokens = { ...before, access_token: "worthless" };
  await client.callTool({ name: "list_collections", arguments: {} });
  assert.notEqual(provider.kept.tokens.refresh_token, before.refresh_token);
  assert.equal(provider.asked, 1);
  const revision = client.getNegotiatedProtocolVersion();
  await client.close();
  return revision;
}

// A scope that the person left out is requested when it is needed, and granted then.
async function stepUp() {
  const provider = new Provider("One that asks for more", "http://localhost:8787/callback",
    [{ scope: ["memory:read"], projects: "all" }, { scope: ["memory:read", "memory:write"], projects: "all" }]);
  const { transport } = await connect(provider);
  await transport.finishAuth(provider.back.searchParams);
  const { client, transport: second } = await connect(provider);
  assert.equal(provider.kept.tokens.scope, "memory:read");
  const store = () =>
    client.callTool({ name: "memory", arguments: { action: "store", content: "It asked for more." } });
  await assert.rejects(store(), UnauthorizedError);
  assert.match(provider.back.href, /code=/);
  await second.finishAuth(provider.back.searchParams);
  assert.equal(provider.kept.tokens.scope, "memory:read memory:write");
  assert.ok(!(await store()).isError);
  assert.equal(provider.asked, 2);
  await client.close();
}

await stepUp();
const revisions = [await through("newest", { versionNegotiation: { mode: "auto" } }),
  await through("legacy", { versionNegotiation: { mode: "legacy" } })];
done(`@modelcontextprotocol/client, protocols ${revisions.join(" and ")}, and a step up`);
