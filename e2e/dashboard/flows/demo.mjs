// The demonstration, as a new user sees it: signed in by its link, with a story on every page.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { phone, wide } from '../browser.mjs'
import { look } from '../inspect.mjs'

// demonstration starts one on an address of its own, and returns the page of a user who has followed its link, which is
// for one sign-in.
async function demonstration(someone, see) {
  const demo = spawn(process.env.SOUVENIR, ['demo', '--no-open', '--listen', '127.0.0.1:0'],
    { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const link = await new Promise((resolve, reject) => {
      let printed = ''
      demo.stdout.on('data', (part) => {
        printed += part
        const found = /http:\/\/\S+\/sign-in\?key=\S+/.exec(printed)
        if (found) resolve(found[0])
      })
      demo.on('exit', () => reject(new Error(`the demonstration has ended: ${printed}`)))
    })
    const page = await someone(null)
    page.home = new URL(link).origin
    await page.go(link)
    await see(page, async (path, status) => page.go(`${page.home}${path}`, status), link)
  } finally {
    demo.kill('SIGINT')
  }
}

export const theDemonstrationTellsAStory = (someone) => demonstration(someone, async (page, go) => {
  assert.match(await page.main(), /Hello, demo/)
  for (const waits of [/1 invitation to shared projects/, /near-duplicate memories/,
    /proposals about memories that contradict/]) assert.match(await page.innerText('#attention'), waits)
  await page.waitForSelector('#trends .trends')
  assert.match(await page.innerText('#trends'), /Clients on a day\s+3/)
  await go('/activity')
  assert.deepEqual((await page.locator('.uses a').allTextContents()).sort(), ['Claude', 'Claude Code', 'Cursor'])
  assert.match(await page.main(), /Cursor updated the text of “Deploy window” in berth/)
  await go('/projects')
  await page.locator('.projects a', { hasText: 'berth' }).first().click()
  await page.settle()
  assert.match(await page.main(), /3 of 7 tasks done/)
  assert.match(await page.main(), /the booking engine we sell to ferry operators/)
  const project = new URL(page.url()).pathname
  await go(`${project}/conversations`)
  assert.match(await page.main(), /Can we move the winter release/)
  await go(`${project}/members`)
  assert.match((await page.locator('li', { hasText: 'priya' }).first().innerText()).replaceAll(/\s+/g, ' '),
    /priya writer pending/)
  await go('/memories?q=who+pulled+the+plug+of+the+primary')
  assert.match(await page.main(), /standby-measured\.eml/)
  await go('/files')
  assert.match(await page.innerText('#files'), /standby-measured\.eml/)
  await go('/tokens')
  assert.doesNotMatch(await page.main(), /not used yet|does not expire/)
})

// A link that was used says what happened, and what to do.
export const itsLinkWorksOnce = (someone) => demonstration(someone, async (page, go, link) => {
  const path = link.slice(page.home.length)
  for (const how of [wide, phone]) {
    await page.setViewportSize(how.viewport)
    await page.emulateMedia(how)
    await go(path, 404)
    assert.match(await page.main(), /used already.*You are signed in as demo/s)
    await look(page, 'a used link, signed in', { touch: how === phone })
  }
  await page.follow('Go to the overview')
  assert.match(await page.main(), /Hello, demo/)
  await page.context().clearCookies()
  for (const how of [wide, phone]) {
    await page.setViewportSize(how.viewport)
    await page.emulateMedia(how)
    await go(path, 404)
    assert.match(await page.main(), /used already.*Sign in with your name and password/s)
    await look(page, 'a used link', { touch: how === phone })
  }
  await page.follow('Sign in')
  assert.equal(await page.heading(), 'Sign in')
})

// drawn waits until a picture is drawn.
async function drawn(page) {
  await page.waitForFunction(() => document.querySelector('#stage canvas') && document.getElementById('drawing').hidden)
  await page.waitForFunction(() => document.querySelectorAll('#cluster-list button').length > 2)
  await page.settle()
}

// Clusters have names, memories without links are folded into them, connections have reasons, and a map is kept once it
// is arranged.
export const itsPicturesSayWhatTheyShow = (someone) => demonstration(someone, async (page, go) => {
  const listed = () => page.locator('#near .hits li').allInnerTexts()
  await go('/graph')
  await drawn(page)
  assert.match(await page.innerText('#summary'),
    /\d+ links? and \d+ similar pairs?\. \d+ memories have no connections: the numbers after \+ count them/)
  const clusters = page.locator('#cluster-list button')
  for (const name of await clusters.allInnerTexts())
    assert.match(name, /\p{L}{3,}.*\d/su, `a cluster is called ${name}`)
  assert.ok((await page.locator('#cluster-labels span').allInnerTexts()).some((name) => /\+\d+/.test(name)),
    'no label counts the folded ones')
  const connected = page.locator('#near button')
  const reasons = []
  for (let i = 0; i < 4; i++) {
    await connected.nth(i).click()
    await page.waitForFunction(() => /Connected with/.test(document.getElementById('near').innerText))
    const why = (await listed()).map((text) => text.replaceAll(/\s+/g, ' '))
    for (const one of why) assert.match(one, /\d+% similar|linked|links here/, `a connection does not say why: ${one}`)
    reasons.push(...why)
    await page.focus('#stage')
    await page.keyboard.press('Escape')
    await page.waitForFunction(() => /Most connected/.test(document.getElementById('near').innerText))
  }
  for (const kind of [/\d+% similar: \p{L}+/u, /link/])
    assert.ok(reasons.some((one) => kind.test(one)), `no connection says ${kind}`)

  await go('/map')
  await drawn(page)
  await page.waitForFunction(() => !/still being computed/.test(document.getElementById('summary').textContent))
  const places = () =>
    page.evaluate(async () => { const { ids, places, arranging } = await (await fetch('/map/data')).json();
      return JSON.stringify([ids, places, arranging]) })
  const kept = await places()
  assert.equal(await places(), kept, 'the map is arranged again')
  const all = Number(/: ([\d,]+) stored/.exec(await page.textContent('#times'))[1])
  await page.focus('#until')
  await page.keyboard.press('Home')
  await page.keyboard.press('PageUp')
  const some = Number(/: ([\d,]+) stored/.exec(await page.textContent('#times'))[1])
  assert.ok(some >= 1 && some < all, `the slider shows ${some} of ${all}`)
})
