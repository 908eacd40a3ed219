// Tests the pages of a newly started server on an empty store. See ../pages.sh.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const { BROWSER, LISTENING, SETUP, SHOTS } = process.env
const site = new URL(SETUP).origin
const callback = 'https://app.example/callback' // where there is nothing: the address is what counts
const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const browser = await chromium.launch({
  executablePath: BROWSER,
  args: ['--no-sandbox', `--host-resolver-rules=MAP memory.test:80 ${new URL(LISTENING).host}`],
})
const looks = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1100, height: 800 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1100, height: 800 } },
  { name: 'phone', colorScheme: 'light', viewport: { width: 375, height: 812 } },
  { name: 'phone-dark', colorScheme: 'dark', viewport: { width: 320, height: 640 } },
]

// Errors in the browser itself, such as a violation of a page's policy.
const complaints = []
async function open(look = looks[0], more = {}) {
  const context = await browser.newContext({ ...look, javaScriptEnabled: false, ...more })
  const page = await context.newPage()
  page.on('console', (message) => {
    if (!/the server responded with a status of 4|Autofocus processing was blocked/.test(message.text()))
      complaints.push(`${page.url()}: ${message.text()}`)
  })
  page.on('requestfailed', (request) => {
    if (request.failure()?.errorText === 'net::ERR_ABORTED') return // the page was left before it had loaded
    if (!request.url().startsWith(callback)) complaints.push(`${request.url()} did not load`)
  })
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== site && !request.isNavigationRequest())
      complaints.push(`${request.url()} is loaded from elsewhere`)
  })
  return page
}

// inspect checks a page with axe, in every look, and takes screenshots. Its scripts run in a copy of the page, since
// the page itself allows none.
const css = await (await fetch(`${LISTENING}/static/souvenir.css`)).text()
const copies = []
for (const look of looks) copies.push([look.name, await (await browser.newContext(look)).newPage()])
async function inspect(name, page) {
  await page.waitForLoadState() // after a click the page may have arrived only in part
  const html = (await page.content()).replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${css}</style>`)
    .replace(/<link rel="icon"[^>]*>/, '')
  for (const [look, copy] of copies) {
    await copy.setContent(html)
    if (SHOTS) await copy.screenshot({ path: `${SHOTS}/${name}-${look}.png`, fullPage: true })
    await copy.evaluate(() => document.querySelectorAll('details')
      .forEach((details) => details.removeAttribute('name')))
    await copy.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)))
    // guarded buttons are dim at first
    await copy.evaluate(() => document.getAnimations().forEach((animation) => animation.finish()))
    await copy.evaluate(axe)
    const { violations } = await copy.evaluate(() => globalThis.axe.run())
    for (const { id, help, nodes } of violations)
      complaints.push(`${name} (${look}): ${id}: ${help}: ${nodes.map((node) => node.html).join(' ')}`)
    const wide = await copy.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    if (wide > 0) complaints.push(`${name} (${look}) is ${wide} pixels too wide`)
    const small = await copy.evaluate(() =>
      [...document.querySelectorAll('button, summary, input:not([type=hidden], [hidden]), select, nav a')]
        .map((element) => [(element.closest('label') ?? element).getBoundingClientRect().height, element.outerHTML])
        .filter(([height]) => height < 36),
    )
    for (const [height, element] of small)
      complaints.push(`${name} (${look}): ${height} pixels are little for a finger: ${element}`)
  }
}

const heading = (page) => page.textContent('h1')
async function fill(page, values) {
  for (const [name, value] of Object.entries(values)) await page.fill(`main [name=${name}]`, value)
}
const send = (page, text) => page.click(`main button:has-text("${text}")`)

// Set-up
const anna = await open()
await anna.goto(site)
assert.equal(await heading(anna), 'Sign in')
await inspect('login-empty', anna)
await anna.goto(SETUP)
await inspect('setup', anna)
await fill(anna, { username: 'anna/', email: 'anna@example.com', password: 'nine blue kettles' })
await send(anna, 'Create account')
assert.match(await anna.textContent('.wrong'), /slash/)
assert.equal(await anna.evaluate(() => document.activeElement.name), 'username')
await inspect('setup-wrong', anna)
await fill(anna, { username: 'anna', password: 'nine blue kettles' })
await send(anna, 'Create account')
assert.equal(await heading(anna), 'You are set up')
await inspect('connect', anna)

// A further person, by an invitation
await anna.click('nav summary') // the admins' part of the menu is folded
await anna.click('nav a[href$="/invitations"]')
await inspect('invitations', anna)
await fill(anna, { note: 'Ben, at home' })
await send(anna, 'Create link')
const link = (await anna.textContent('main code')).trim()
await inspect('invitation', anna)
const ben = await open(looks[2])
await ben.goto(link)
await inspect('invite', ben)
await fill(ben, { username: 'ben', password: 'ten red teapots' })
await send(ben, 'Create account')
assert.equal(await heading(ben), 'Welcome, ben')
await ben.goto(link)
assert.match(await ben.textContent('main'), /has been used/)
await inspect('error', ben)

// By keyboard alone, from the address to the start
const keys = await open()
await keys.goto(`${site}/profile`)
await keys.waitForFunction(() => document.activeElement.name === 'username') // the focus comes a moment after the page
await keys.keyboard.type('ben')
await keys.keyboard.press('Tab')
await keys.keyboard.type('a wrong password')
await keys.keyboard.press('Enter')
await keys.waitForSelector('main .problem, main .wrong[role=alert]')
assert.match(await keys.textContent('main .problem, main .wrong[role=alert]'), /Name or password is wrong/)
await inspect('login-wrong', keys)
await keys.bringToFront()
assert.equal(await keys.evaluate(() => document.activeElement.name), 'password')
await keys.locator(':focus').pressSequentially('ten red teapots')
await keys.keyboard.press('Enter')
await keys.waitForURL(`${site}/profile`, { timeout: 10_000 })
  .catch(async () => assert.fail(`not signed in: ${await keys.textContent('main')}`))
await keys.keyboard.press('Tab')
assert.equal(await keys.evaluate(() => document.activeElement.textContent), 'Skip to content')
await keys.keyboard.press('Enter')
assert.equal(await keys.evaluate(() => document.activeElement.id), 'main')

// The profile
await ben.goto(`${site}/profile`)
await inspect('profile', ben)
await fill(ben, { email: 'ben@example.com' })
await send(ben, 'Save')
assert.match(await ben.textContent('[role=status]'), /saved/)
await fill(ben, { old: 'wrong password', new: 'eleven green mugs' })
await send(ben, 'Change the password')
assert.match(await ben.textContent('.wrong'), /Old password/)
await inspect('profile-wrong', ben)
await fill(ben, { old: 'ten red teapots', new: 'eleven green mugs' })
await send(ben, 'Change the password')
assert.match(await ben.textContent('[role=status]'), /changed/)
await keys.reload()
assert.equal(await heading(keys), 'Sign in')
await ben.goto(`${site}/tokens`)
await ben.fill('main [name=name]', 'phone')
await send(ben, 'Create token')
assert.match(await ben.textContent('main'), /mcp_/)

// The start, applications and users
await anna.click('nav a:has-text("Overview")')
await inspect('start', anna)
await anna.click('nav a:has-text("Applications")')
await inspect('connected-none', anna)
const registered = await fetch(`${LISTENING}/oauth/register`, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ client_name: 'Notebook', redirect_uris: [callback], token_endpoint_auth_method: 'none' }),
})
const { client_id } = await registered.json()
const asked = new URLSearchParams({
  client_id, redirect_uri: callback, response_type: 'code', state: 'kept',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256',
})
await anna.goto(`${site}/oauth/authorize?${asked}`)
await inspect('consent', anna)
await anna.reload() // only Allow waits for the end of a double click, and looks so
const guarded = await anna.evaluate(() => ['deny', 'allow'].map((value) => {
  const button = document.querySelector(`button[value=${value}]`)
  button.getAnimations().forEach((animation) => { animation.pause(); animation.currentTime = 100 })
  const { pointerEvents, opacity } = getComputedStyle(button)
  button.getAnimations().forEach((animation) => animation.finish())
  return `${pointerEvents} ${opacity}`
}))
assert.deepEqual(guarded, ['auto 1', 'none 0.5'])
await anna.check('#some-projects')
await anna.click('button[value=allow]')
assert.match(await anna.textContent('main .problem, main .wrong[role=alert]'), /No project is selected/)
await inspect('consent-wrong', anna)
await anna.check('[name=projects][value=all]')
const [request] = await Promise.all([anna.waitForRequest((request) => request.url().startsWith(callback)),
  anna.click('button[value=allow]')])
const back = new URL(request.url())
await anna.waitForURL('chrome-error://**')
assert.equal(back.origin + back.pathname + back.searchParams.get('state'), `${callback}kept`)
const exchanged = await fetch(`${LISTENING}/oauth/token`, {
  method: 'POST',
  body: new URLSearchParams({
    grant_type: 'authorization_code', client_id, code: back.searchParams.get('code'), redirect_uri: callback,
    code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  }),
})
assert.equal(exchanged.status, 200)
await anna.goto(`${site}/connected`)
assert.match(await anna.textContent('main'), /Notebook/)
await inspect('connected', anna)
await send(anna, 'Revoke')
assert.match(await anna.textContent('[role=status]'), /Access revoked/)
await anna.click('nav summary')
await anna.click('nav a:has-text("Users")')
await inspect('users', anna)
await anna.click('main summary')
await send(anna, 'Disable')
assert.match(await anna.textContent('[role=status]'), /disabled/)
await ben.reload()
assert.equal(await heading(ben), 'Sign in')
await anna.click('header .signed-in button')
assert.match(await anna.textContent('[role=status]'), /signed out/)
await inspect('login', anna)

await browser.close()
if (complaints.length > 0) {
  console.error(complaints.join('\n'))
  process.exit(1)
}
console.log('the pages work in a browser, without scripts and by keyboard; axe finds nothing')
