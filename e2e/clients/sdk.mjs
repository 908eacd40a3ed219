// @modelcontextprotocol/sdk, the SDK of the revisions up to 2025-11-25: from a 401 to a tool call, knowing only the
// address.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Provider } from "./provider.mjs";
import { done, url, useTools } from "./person.mjs";

const provider = new Provider("The older SDK", "http://127.0.0.1:33418/");
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: provider });
  const client = new Client({ name: "e2e", version: "1" });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    return { transport };
  }
  return { client, transport };
};

const { transport, client: early } = await connect();
assert.equal(early, undefined, "without a token it does not connect");
await transport.finishAuth(provider.back.searchParams.get("code"));
const { client, transport: connected } = await connect();
await useTools(client, "older");
assert.equal(provider.kept.tokens.scope, "memory:read memory:write files:read files:write");

// An expired token is refreshed without asking the user again.
const before = provider.kept.tokens;
provider.kept.tokens = { ...before, access_token: "worthless" };
await client.callTool({ name: "list_collections", arguments: {} });
assert.notEqual(provider.kept.tokens.refresh_token, before.refresh_token);
assert.equal(provider.asked, 1);
await client.close();
await connected.close();
done(`@modelcontextprotocol/sdk, protocol ${connected.protocolVersion}`);
