// oauth4webapi, which makes all checks that a client may make: discovery, registration, PKCE, resource indicators, the
// issuer in answers, refreshing, revoking, and each method of client authentication.

import assert from "node:assert/strict";
import * as oauth from "oauth4webapi";
import { Person, done, url } from "./person.mjs";

const http = { [oauth.allowInsecureRequests]: true };
const callback = "https://app.example/callback";
const resource = new URL(`${url}/mcp`);

// A client begins with a 401.
const refused = await fetch(resource, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
assert.equal(refused.status, 401);
const metadata = refused.headers.get("www-authenticate").match(/resource_metadata="([^"]+)"/)[1];
assert.equal(metadata, `${url}/.well-known/oauth-protected-resource/mcp`);

const described = await oauth.processResourceDiscoveryResponse(resource,
  await oauth.resourceDiscoveryRequest(resource, http));
assert.deepEqual(described.authorization_servers, [url]);
const issuer = new URL(described.authorization_servers[0]);
const as = await oauth.processDiscoveryResponse(issuer,
  await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...http }));
const alias = await oauth.processDiscoveryResponse(issuer,
  await oauth.discoveryRequest(issuer, { algorithm: "oidc", ...http }));
assert.deepEqual(alias, as);
assert.equal(as.issuer, url);

async function register(method) {
  const answer = await oauth.dynamicClientRegistrationRequest(
    as,
    { client_name: `oauth4webapi with ${method}`, redirect_uris: [callback], token_endpoint_auth_method: method,
      grant_types: ["authorization_code", "refresh_token"] },
    http,
  );
  return oauth.processDynamicClientRegistrationResponse(answer);
}

async function authorize(client, person,
  { scope = "memory:read memory:write offline_access", decision = "allow", choices } = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const address = new URL(as.authorization_endpoint);
  address.search = new URLSearchParams({
    client_id: client.client_id, redirect_uri: callback, response_type: "code", scope, state, resource: resource.href,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
  });
  const back = await person.answer(address, decision, choices);
  assert.ok(back.href.startsWith(callback), back.href);
  return { verifier, parameters: oauth.validateAuthResponse(as, client, back, state) }; // looks at state and iss
}

async function exchange(client, authentication, { verifier, parameters }) {
  const answer = await oauth.authorizationCodeGrantRequest(as, client, authentication, parameters, callback, verifier,
    { additionalParameters: { resource: resource.href }, ...http });
  return oauth.processAuthorizationCodeResponse(as, client, answer);
}

async function call(token, body = { name: "list_collections", arguments: {} }) {
  return oauth.protectedResourceRequest(token, "POST", new URL(`${url}/tools/call`),
    new Headers({ "content-type": "application/json" }), JSON.stringify(body), http);
}

async function rejects(promise, error, why) {
  await assert.rejects(promise, (e) => (e.error ?? e.cause?.error) === error
    || assert.fail(`${why}: ${e} ${JSON.stringify(e.cause)}`), why);
}

const person = new Person();
for (const [method, show] of [["none", () => oauth.None()],
  ["client_secret_basic", (c) => oauth.ClientSecretBasic(c.client_secret)],
    ["client_secret_post", (c) => oauth.ClientSecretPost(c.client_secret)]]) {
  const client = await register(method);
  const authentication = show(client);
  const given = await authorize(client, person);
  const tokens = await exchange(client, authentication, given);
  assert.equal(tokens.scope, "memory:read memory:write");
  assert.equal((await call(tokens.access_token)).status, 200);

  const again = await oauth.processRefreshTokenResponse(as, client,
    await oauth.refreshTokenGrantRequest(as, client, authentication, tokens.refresh_token,
      { additionalParameters: { resource: resource.href }, ...http }));
  assert.notEqual(again.refresh_token, tokens.refresh_token);
  assert.equal((await call(again.access_token)).status, 200);

  await oauth.processRevocationResponse(
    await oauth.revocationRequest(as, client, authentication, again.refresh_token, http));
  await assert.rejects(call(again.access_token), /401|unauthorized|challenge/i, "a revoked grant's access token");
  await rejects(oauth.processRefreshTokenResponse(as, client,
    await oauth.refreshTokenGrantRequest(as, client, authentication, again.refresh_token, http)), "invalid_grant",
      "a revoked refresh token");

  // A code that is used twice revokes its tokens.
  const twice = await authorize(client, person);
  const first = await exchange(client, authentication, twice);
  await rejects(exchange(client, authentication, twice), "invalid_grant", "a code that is used twice");
  await assert.rejects(call(first.access_token), /401|unauthorized|challenge/i,
    "the tokens of a code that was used twice");
}

// Scopes that the person leaves out are not granted, and a denied request gets none.
const client = await register("none");
const less = await exchange(client, oauth.None(),
  await authorize(client, new Person(), { choices: { scope: ["memory:read"], projects: "all" } }));
assert.equal(less.scope, "memory:read");
await assert.rejects(call(less.access_token, { name: "memory", arguments: { action: "store", content: "x" } }),
  /403|insufficient|challenge/i, "a scope that was not ticked");
await rejects(authorize(client, person, { decision: "deny" }), "access_denied", "a no");
await rejects(authorize(client, person, { scope: "everything" }), "invalid_scope", "an unknown scope");
assert.deepEqual(new Set(person.pages), new Set(["sign-in", "consent"]));
assert.equal(person.pages.filter((page) => page === "sign-in").length, 1, "one signs in once");

done("oauth4webapi: discovery, registration, PKCE, iss, refresh, revocation, three kinds of clients");
