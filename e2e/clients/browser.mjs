// A real browser: sign-in and consent by keyboard, with scripts and without, in a window that an application has
// opened, and over plain HTTP under a name of the local network, where browsers reveal less about the origin of a form.
//
//   BROWSER=/usr/bin/chromium node browser.mjs [--short | FOLDER-FOR-SCREENSHOTS]

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { chromium } from "playwright-core";
import * as oauth from "oauth4webapi";
import { done, name, password, url } from "./person.mjs";

const short = process.argv[2] === "--short";
const pictures = short ? undefined : process.argv[2];
// public URL of a second server on the file, such as http://memory.test
const houseName = process.env.SOUVENIR_IN_THE_HOUSE;
const houseAt = process.env.SOUVENIR_IN_THE_HOUSE_AT; // where it really listens

// An application with a page that opens a window, and a callback that tells the page the outcome.
const application = createServer((request, response) => {
  response.setHeader("content-type", "text/html");
  const to = new URL(request.url, "http://localhost");
  response.end(to.pathname === "/callback"
    ? `<title>Back</title><script>opener?.postMessage(location.search, "*")</script>`
    : `<title>App</title><script>addEventListener("message", (m) => document.title = m.data); const go = () => open(${JSON.stringify(to.searchParams.get("open"))}, "_blank", "popup")</script><button onclick="go()">Connect</button>`);
});
await new Promise((resolve) => application.listen(0, "127.0.0.1", resolve));
const at = `http://127.0.0.1:${application.address().port}`;
const callback = `${at}/callback`;

async function asks(server, reachedAt = server, more = {}) {
  const registered = await fetch(`${reachedAt}/oauth/register`, {
    method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_name: "Field notes", redirect_uris: [callback], token_endpoint_auth_method: "none" }),
  });
  assert.equal(registered.status, 201);
  const { client_id } = await registered.json();
  const parameters = { client_id, redirect_uri: callback, response_type: "code", state: "of the browser",
    code_challenge_method: "S256", ...more };
  parameters.code_challenge = await oauth.calculatePKCECodeChallenge(oauth.generateRandomCodeVerifier());
  return `${server}/oauth/authorize?${new URLSearchParams(parameters)}`;
}

const browser = await chromium.launch({
  executablePath: process.env.BROWSER,
    args: ["--no-sandbox",
      ...(houseName ? [`--host-resolver-rules=MAP ${new URL(houseName).host}:80 ${new URL(houseAt).host}`] : [])],
});
const complaints = [];

async function newPage(options = {}) {
  const context = await browser.newContext({ locale: "en-GB", ...options });
  context.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  context.on("weberror", (error) => complaints.push(String(error.error())));
  return context.newPage();
}

// signIn types name and password into the fields that have the focus.
async function signIn(page) {
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").press("End");
  await page.keyboard.type(password);
  await page.keyboard.press("Enter");
}

function arrived(address) {
  const answer = new URL(address);
  assert.ok(address.startsWith(callback), address);
  assert.equal(answer.searchParams.get("state"), "of the browser");
  return answer.searchParams;
}

async function picture(page, file) {
  if (pictures) await page.screenshot({ path: `${pictures}/${file}.png`, fullPage: true });
}

// With scripts and without, by keyboard alone.
for (const javaScriptEnabled of short ? [false] : [true, false]) {
  const page = await newPage({ javaScriptEnabled });
  await page.goto(await asks(url));
  await signIn(page);
  await page.waitForURL(/\/oauth\/authorize\?/);
  assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1);
  await picture(page, `consent-${javaScriptEnabled ? "scripts" : "plain"}`);
  await page.getByLabel("Upload, change and delete files").focus();
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Allow", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL((address) => address.href.startsWith(callback));
  assert.ok(arrived(page.url()).get("code"));

  // Already signed in, and this time the user denies it.
  await page.goto(await asks(url));
  await page.getByRole("button", { name: "Deny" }).click();
  await page.waitForURL((address) => address.href.startsWith(callback));
  assert.equal(arrived(page.url()).get("error"), "access_denied");

  // Going back loads a new page, on which the user may decide differently.
  await page.goBack();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForURL((address) => address.href.startsWith(callback));
  assert.ok(arrived(page.url()).get("code"));
  await page.context().close();
}

// In a window of an application, which gets the outcome when the browser is back there.
{
  const page = await newPage();
  await page.goto(`${at}/?open=${encodeURIComponent(await asks(url))}`);
  const [popup] = await Promise.all([page.waitForEvent("popup"), page.getByRole("button").click()]);
  await signIn(popup);
  await popup.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForFunction(() => document.title.startsWith("?"));
  assert.ok(new URLSearchParams(await page.title()).get("code"));
  await page.context().close();
}

// Over plain HTTP under a name that is not localhost.
if (houseName) {
  const page = await newPage();
  await page.goto(await asks(houseName, houseAt));
  await signIn(page);
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForURL((address) => address.href.startsWith(callback));
  assert.equal(arrived(page.url()).get("iss"), houseName);
  await page.context().close();
}

// A page of another site cannot show a page of the server in a frame, nor send its form.
if (!short) {
  const page = await newPage();
  await page.goto(await asks(url));
  await signIn(page);
  const consent = await page.locator("form").evaluate((form) => [...new FormData(form)]);
  const evil =
    `<form method="post" action="${url}/oauth/authorize">${[...consent, ["decision", "allow"]].map(([k, v]) => `<input name="${k}" value="${v.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}">`).join("")}</form><script>document.forms[0].submit()</script>`;
  await page.route("http://evil.test/", (route) => route.fulfill({ contentType: "text/html", body: evil }));
  const [answer] = await Promise.all(
    [page.waitForResponse((r) => r.request().method() === "POST"), page.goto("http://evil.test/").catch(() => {})]);
  assert.equal(answer.status(), 403);
  const framed = await newPage();
  await framed.route("http://evil.test/", (route) =>
    route.fulfill({ contentType: "text/html", body: `<iframe src="${url}/login"></iframe>` }));
  await framed.goto("http://evil.test/");
  assert.equal(await framed.frames()[1]?.locator("form").count(), 0, "a frame shows the page");
  complaints.length = 0; // the expected ones
}

if (pictures) {
  for (const [file, options] of Object.entries({
    light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 375, height: 740 }, deviceScaleFactor: 2 },
      "phone-dark": { viewport: { width: 375, height: 740 }, colorScheme: "dark" },
  })) {
    const page = await newPage(options);
    await page.goto(await asks(url, url, { scope: "memory:read memory:write files:read files:write admin" }));
    await signIn(page);
    await page.getByLabel("Only these").check();
    await picture(page, `consent-${file}`);
    await page.getByRole("button", { name: "Allow", exact: true }).click();
    await picture(page, `consent-${file}-problem`);
    await page.context().close();
  }
  complaints.length = 0;
}

assert.deepEqual(complaints, [], "the browser complains");
await browser.close();
application.close();
done(
  `a browser (${browser.version()}): keyboard, no scripts, a window of an application${houseName ? ", plain HTTP in the house" : ""}, other sites kept out`);
