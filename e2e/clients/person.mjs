// A person in front of a browser without scripts: signs in, decides, and follows redirects until they leave the server.

import assert from "node:assert/strict";

export const url = process.env.SOUVENIR_AT;
export const name = process.env.PERSON_NAME;
export const password = process.env.PERSON_PASSWORD;

const entities = { amp: "&", lt: "<", gt: ">", quot: '"', "#34": '"', "#39": "'", "#43": "+" };
const plain = (text) => text.replace(/&(#?\w+);/g, (whole, entity) => entities[entity] ?? whole);

// hidden returns the hidden fields of a page's form.
function hidden(page) {
  const fields = new URLSearchParams();
  for (const [input] of page.matchAll(/<input [^>]*type="hidden"[^>]*>/g)) {
    fields.append(plain(input.match(/name="([^"]*)"/)[1]), plain(input.match(/value="([^"]*)"/)[1]));
  }
  return fields;
}

// Person keeps the cookies of one browser.
export class Person {
  #cookies = new Map();
  pages = []; // the pages shown, in order

  async #fetch(address, options = {}) {
    const headers = { ...options.headers };
    if (this.#cookies.size > 0) headers.cookie = [...this.#cookies].map(([k, v]) => `${k}=${v}`).join("; ");
    const answer = await fetch(address, { ...options, headers, redirect: "manual" });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, key, value] = cookie.match(/^([^=]+)=([^;]*)/);
      if (value === "") this.#cookies.delete(key);
      else this.#cookies.set(key, value);
    }
    return answer;
  }

  // answer opens the address that a client sends a browser to, signs in if asked to, and decides. It returns the
  // address, outside the server, to which the browser is sent at the end. Choices are fields of the form; without any,
  // it stays as preselected.
  async answer(address, decision = "allow", choices = {}) {
    let response = await this.#fetch(address);
    for (let step = 0; step < 10; step++) {
      if (response.status === 303) {
        const next = new URL(response.headers.get("location"), response.url);
        await response.body?.cancel();
        if (next.origin !== new URL(url).origin) return next;
        response = await this.#fetch(next);
        continue;
      }
      const page = await response.text();
      assert.equal(response.status, 200, page);
      const action = new URL(plain(page.match(/<form[^>]* action="([^"]*)"/)[1]), response.url);
      const form = hidden(page);
      if (page.includes('name="password"')) {
        this.pages.push("sign-in");
        form.set("username", name);
        form.set("password", password);
      } else {
        this.pages.push("consent");
        form.set("decision", decision);
        for (const [field, values] of Object.entries(choices)) for (const value of [values].flat())
          form.append(field, value);
      }
      response = await this.#fetch(action, { method: "POST", body: form });
    }
    assert.fail(`the browser goes in circles: ${this.pages}`);
  }
}

// storeSomething calls the tool that stores something, and finds it again, over an MCP client of either SDK.
export async function useTools(client, mark) {
  const { tools } = await client.listTools();
  assert.ok(tools.some((tool) => tool.name === "memory"), "the tool memory is offered");
  const stored = await client.callTool(
    { name: "memory", arguments: { action: "store", content: `The ${mark} client was here.` } });
  assert.ok(!stored.isError, JSON.stringify(stored));
  const found = await client.callTool(
    { name: "memory", arguments: { action: "search", query: `which client was here: ${mark}?` } });
  assert.ok(JSON.stringify(found).includes(`The ${mark} client was here.`), JSON.stringify(found));
}

export function done(...said) {
  console.log("ok", ...said);
}
