// Pages in unusual states: missing, paused, refused, too many requests; and the day of the reader.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import { password, phone, site, wide } from '../browser.mjs'
import { inspect, look } from '../inspect.mjs'

const looks = [wide, phone] // light and dark
const callback = 'https://app.example/callback'

// register makes a client as an application does by itself, and returns the address of the page on which its user
// decides.
async function register(name, more = {}) {
  const answer = await fetch(`${process.env.LISTENING}/oauth/register`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: name, redirect_uris: [callback], token_endpoint_auth_method: 'none' }),
  })
  const { client_id } = await answer.json()
  const asked = { client_id, redirect_uri: callback, response_type: 'code', state: 'kept',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256', ...more }
  return { id: client_id, path: `/oauth/authorize?${new URLSearchParams(asked)}` }
}

// decide presses Allow or Deny, and returns where the application is sent.
async function decide(page, text) {
  page.away = new URL(callback).origin // where there is nothing: the address is what counts
  const [request] = await Promise.all(
    [page.waitForRequest((one) => one.url().startsWith(callback)),
      page.getByRole('button', { name: text, exact: true }).click()])
  await page.waitForURL('chrome-error://**')
  return new URL(request.url())
}

const redeem = (id, code) => fetch(`${process.env.LISTENING}/oauth/token`, {
  method: 'POST',
    body: new URLSearchParams({ grant_type: 'authorization_code', client_id: id, code, redirect_uri: callback,
      code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' }),
})

export async function whatIsMissingIsAWholePage(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    await page.go('/nowhere', 404)
    await inspect(page, 'a missing page')
    await look(page, 'a missing page', { touch: how === phone })
    const [menu, main] = [await page.locator('.menu').first().boundingBox(), await page.locator('main').boundingBox()]
    if (how === wide) assert.ok(menu.x + menu.width <= main.x && main.width > 600, 'the page is not beside the menu')
    assert.ok(main.x >= 0 && main.x + main.width <= how.viewport.width, `the page ends at ${main.x + main.width}`)
    await page.follow('Home')
    assert.equal(new URL(page.url()).pathname, '/')
  }
}

export async function aPausedApplicationIsShownWhereOneConnects(someone, { user }) {
  for (const how of looks) {
    const name = how === phone ? 'Lantern' : 'Notebook'
    const app = await register(name)
    const page = await someone(user, how)
    await page.go(app.path)
    const back = await decide(page, 'Allow')
    assert.equal((await redeem(app.id, back.searchParams.get('code'))).status, 200)
    await page.go('/connected')
    await page.send(`Pause ${name}`)
    assert.match(await page.notice(), /Paused/)
    await page.go('/connect')
    assert.match(await page.main(), new RegExp(`${name}[^]*paused`, 'i'))
    if (how === phone) await look(page, 'connect, with a paused application', { touch: true })
    await page.go(app.path)
    assert.match(await page.main(), /You have paused this application/)
    await look(page, 'consent for a paused application', { touch: how === phone })
    assert.equal((await decide(page, 'Deny')).searchParams.get('error'), 'access_denied')
    await page.go('/connected')
    await page.send(`Resume ${name}`)
    await page.go('/connect')
    assert.doesNotMatch(await page.main(), new RegExp(`${name}[^]*paused`, 'i'))
    page.once('dialog', (dialog) => dialog.accept())
    await page.go('/connected')
    await page.send('Revoke')
  }
}

// Allow is dim while a double click could press it; Deny never waits, and scopes beyond memories are not ticked.
export async function consentGuardsAllowAlone(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const app = await register('Kettle', { scope: 'memory:read memory:write files:read files:write account' })
    await page.go(app.path)
    await look(page, 'consent', { touch: how === phone })
    assert.equal(await page.locator('.apart input[name=scope][value=account]').isChecked(), false)
    assert.equal(await page.locator('fieldset:not(.apart) input[value="memory:read"]').isChecked(), true)
    await page.reload()
    const guarded = await page.evaluate(() => ['deny', 'allow'].map((value) => {
      const button = document.querySelector(`button[value=${value}]`)
      button.getAnimations().forEach((animation) => { animation.pause(); animation.currentTime = 100 })
      const { pointerEvents, opacity } = getComputedStyle(button)
      button.getAnimations().forEach((animation) => animation.finish())
      return `${pointerEvents} ${opacity}`
    }))
    assert.deepEqual(guarded, ['auto 1', 'none 0.5'])
    const back = await decide(page, 'Deny')
    assert.equal(back.searchParams.get('error'), 'access_denied')
  }
}

export async function theSignInNamesTheApplicationThatWaits(someone, { user }) {
  for (const how of looks) {
    const page = await someone(null, how)
    const app = await register('Lighthouse')
    await page.go(app.path)
    assert.equal(await page.heading(), 'Sign in')
    assert.match(await page.main(), /“Lighthouse” is waiting: after you sign in, you decide/)
    await look(page, 'the sign-in for an application', { touch: how === phone })
    await page.fill('main [name=username]', user)
    await page.fill('main [name=password]', 'nine blue kettles')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/oauth/authorize?**')
    assert.match(await page.main(), /Lighthouse/)
  }
}

// If something goes wrong on the way from an application, the page says what, and what to do next.
export async function aRefusedApplicationTellsThePersonWhatToDo(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const app = await register('Cursor', { redirect_uri: 'https://elsewhere.example/callback' })
    await page.go(app.path, 400)
    assert.match(await page.main(), /Go back to .+ and connect again\./)
    assert.doesNotMatch(await page.main(), /redirect_uri=|undefined|invalid_request/)
    await inspect(page, 'a refused application')
    await look(page, 'a refused application', { touch: how === phone })
  }
}

export async function tooManyTriesSaySoAndWhenToComeBack(someone) {
  for (const how of looks) {
    const page = await someone(null, how)
    await page.go('/login')
    page.expected = [401, 429]
    for (let i = 0; i < 12; i++) {
      await page.fill('main [name=username]', how === phone ? 'no-such-user' : 'no-one')
      await page.fill('main [name=password]', 'not the password')
      await page.click('main button[type=submit]')
      await page.settle()
      if (/too many/i.test(await page.main())) break
    }
    assert.match(await page.main(), /Too many failed attempts; wait \d+ (second|minute)s?, then try again/)
    assert.match(await page.inputValue('main [name=username]'), /^no-/)
    await look(page, 'too many tries', { touch: how === phone })
  }
}

// The other limited form of a person: after wrong old passwords one has to wait, and reads for how long.
export async function tooManyGuessesOfTheOldPasswordSaySo(someone, { other }) {
  for (const how of looks) {
    const page = await someone(other, how)
    const changed = async (from, to) => {
      await page.go('/profile')
      page.expected = [400, 401, 429]
      const form = page.locator('form', { has: page.locator('[name=old]') })
      await form.locator('[name=old]').fill(from)
      await form.locator('[name=new]').fill(to)
      await form.locator('button[type=submit]').click()
      await page.settle()
    }
    await page.go('/profile')
    for (let i = 0; i < 12 && !/Too many/.test(await page.main()); i++)
      await changed('not the password', 'ten green kettles')
    const [, wait, unit] = /Too many failed attempts; wait (\d+) (second|minute)s?, then try again/.exec(
      await page.main())
    assert.equal(unit, 'second')
    await look(page, 'too many guesses', { touch: how === phone })
    await page.waitForTimeout(1000 * Number(wait) + 500)
    for (const [from, to] of [[password, 'ten green kettles'], ['ten green kettles', password]]) {
      await changed(from, to)
      assert.match(await page.notice(), /[Pp]assword/)
    }
  }
}

// beside serves a copy of the store at an address of its own, as a user who may read it, or also write it. It returns
// the address, and a function that ends the server.
async function beside(writable, ...options) {
  const folder = fs.mkdtempSync(`${os.tmpdir()}/souvenir-beside-`)
  fs.chmodSync(folder, 0o755)
  const [program, db, root] = [`${folder}/souvenir`, `${folder}/souvenir.db`, process.getuid() === 0]
  fs.copyFileSync(process.env.SOUVENIR, program)
  fs.chmodSync(program, 0o755)
  fs.mkdirSync(`${folder}/backups`, { mode: 0o555 }) // into which nothing can be written
  execFileSync(program, ['backup', db, '--db', process.env.DB])
  if (!writable) fs.chmodSync(db, 0o444)
  if (!writable && !root) fs.chmodSync(folder, 0o555)
  if (writable && root) for (const path of [folder, db]) fs.chownSync(path, 65534, 65534)
  const server = spawn(program, ['serve', '--db', db, '--listen', '127.0.0.1:0', ...options],
    { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'], ...(root && { uid: 65534, gid: 65534 }) })
  const end = async () => {
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill()
    await ended
    fs.chmodSync(folder, 0o755)
    fs.rmSync(folder, { recursive: true })
  }
  const home = await new Promise((resolve, reject) => {
    server.stdout.on('data', (text) => { const found = /listening on (\S+)/.exec(text); if (found) resolve(found[1]) })
    server.once('exit', () => reject(new Error('the server beside ended')))
  })
  return { home, end }
}

// moveTo lets a page go to another server with its session.
async function moveTo(page, home) {
  const cookies = (await page.context().cookies(site)).map(({ name, value }) => ({ name, value, url: home }))
  await page.context().addCookies(cookies)
  page.home = home
}

export async function backupsThatFailNeedAttention(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const { home, end } = await beside(true, '--backup-to', 'backups')
    try {
      await moveTo(page, home)
      const item = page.locator('#attention li', { hasText: 'The last backup failed, and there is no earlier one' })
      for (let tries = 0; tries < 20; tries++) {
        await page.go(`${home}/`)
        await page.waitForSelector('#attention:not([hx-get])')
        if (await item.count() > 0) break
        await page.waitForTimeout(500)
      }
      await look(page, 'the overview after a backup that failed', { touch: how === phone })
      await item.getByRole('link').click()
      await page.settle()
      assert.equal(new URL(page.url()).pathname, '/backup')
    } finally {
      await end()
    }
  }
}

// A backup is late if the one that is due does not end, here because its folder does not answer.
export async function backupsThatAreLateNeedAttention(someone, { user }) {
  for (const how of looks) {
    const page = await someone(user, how)
    const folder = fs.mkdtempSync(`${os.tmpdir()}/souvenir-late-`)
    const answer = () => fs.closeSync(fs.openSync(`${folder}/.souvenir-backups-of`, 'r+'))
    fs.chmodSync(folder, 0o777)
    fs.writeFileSync(`${folder}/souvenir-20260102T030405Z.db`, '')
    execFileSync('mkfifo', ['-m', '666', `${folder}/.souvenir-backups-of`])
    const { home, end } = await beside(true, '--backup-to', folder)
    try {
      await moveTo(page, home)
      const item = page.locator('#attention li', { hasText: 'The newest backup is from 2 Jan 2026' })
      const attention = async (late) => {
        for (let tries = 0; tries < 20; tries++) {
          await page.go(`${home}/`)
          await page.waitForSelector('#attention:not([hx-get])')
          if ((await item.count() > 0) === late) return
          await page.waitForTimeout(500)
        }
        assert.fail(late ? 'a late backup is not shown' : 'a backup that was made is still shown as late')
      }
      await attention(true)
      await look(page, 'the overview while a backup is late', { touch: how === phone })
      await item.getByRole('link', { name: 'Back up' }).click()
      await page.settle()
      assert.equal(new URL(page.url()).pathname, '/backup')
      answer()
      await attention(false)
    } finally {
      answer()
      await end()
      fs.rmSync(folder, { recursive: true })
    }
  }
}

export async function aReadOnlyServerSaysSo(someone, { user, memory }) {
  for (const how of looks) {
    const page = await someone(user, how) // who has signed in before
    const { home, end } = await beside(false)
    try {
      await moveTo(page, home)
      for (const path of ['/', '/memories', `/memories/${memory}`, '/settings']) {
        await page.go(home + path)
        assert.match(await page.innerText('body'),
          /This server is read-only for now: you can look around, but not change anything\./, path)
        if (path === '/memories') await look(page, `${path}, read-only`, { touch: how === phone })
      }
      await page.go(`${home}/memories/${memory}/edit`)
      await page.fill('#content', 'Typed in vain, and still here.')
      page.expected = [403]
      await page.send('Save')
      assert.match(await page.innerText('body'), /read-only/)
      assert.equal(await page.inputValue('#content'), 'Typed in vain, and still here.')
    } finally {
      await end()
    }
  }
}

// Days are in the reader's time zone: a call made now is under its date there, and that day's filter finds it.
export async function daysAreThoseOfTheReader(someone, { user, token }) {
  for (const [how, timezoneId] of [[wide, 'Pacific/Kiritimati'], [phone, 'Pacific/Pago_Pago']]) { // 25 hours apart
    await fetch(`${process.env.LISTENING}/tools/call`, {
      method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'list_collections', arguments: {} }),
    })
    const page = await someone(user, { ...how, timezoneId })
    await page.go('/activity')
    await page.waitForFunction((zone) => document.querySelector('#activity')?.dataset.zone === zone, timezoneId)
    const local = new Intl.DateTimeFormat('sv', { timeZone: timezoneId }).format(new Date()) // 2026-11-26
    await page.go(`/activity?since=${local}&until=${local}&tool=list_collections`)
    assert.ok((await page.locator('.calls li').count()) > 0, `no call is of ${local} in ${timezoneId}`)
    const clock = new Intl.DateTimeFormat('en-GB', { timeZone: timezoneId, hour: '2-digit', minute: '2-digit' })
    const first = page.locator('.calls time').first()
    assert.equal((await first.textContent()).trim(), clock.format(new Date(await first.getAttribute('datetime'))))
  }
}
