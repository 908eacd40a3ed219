// What both SDKs of the Model Context Protocol leave to a client that signs in: storing its credentials, and opening a
// browser.

import assert from "node:assert/strict";
import { Person } from "./person.mjs";

export class Provider {
  kept = {};
  back; // where the browser was sent in the end
  asked = 0;

  // Choices are the fields that the person changes on the page, the first time and later; nothing: all stay as
  // preselected.
  constructor(clientName, redirectUrl, choices) {
    Object.assign(this, { clientName, redirectUrl, choices, person: new Person() });
  }

  get clientMetadata() {
    return {
      client_name: this.clientName, redirect_uris: [this.redirectUrl],
        grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"], token_endpoint_auth_method: "none",
    };
  }

  state() { return (this.kept.state = `state of ${this.clientName} ${Math.random()}`); }
  clientInformation() { return this.kept.client; }
  saveClientInformation(client) { this.kept.client = client; }
  tokens() { return this.kept.tokens; }
  saveTokens(tokens) { this.kept.tokens = tokens; }
  codeVerifier() { return this.kept.verifier; }
  saveCodeVerifier(verifier) { this.kept.verifier = verifier; }
  discoveryState() { return this.kept.discovery; }
  saveDiscoveryState(discovery) { this.kept.discovery = discovery; }

  invalidateCredentials(scope) {
    for (const name of scope === "all" ? Object.keys(this.kept) : [scope]) delete this.kept[name];
  }

  async redirectToAuthorization(address) {
    this.asked++;
    this.back = await this.person.answer(address, "allow", this.choices?.[this.asked - 1]);
    assert.ok(this.back.href.startsWith(this.redirectUrl), this.back.href);
    assert.equal(this.back.searchParams.get("state"), this.kept.state);
  }
}
