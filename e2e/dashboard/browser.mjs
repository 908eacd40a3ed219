// A browser that reports errors in a page, violations of its policy, and files loaded from elsewhere.
import { chromium } from 'playwright-core'

const { BROWSER, LISTENING } = process.env
export const site = 'http://memory.test' // a name without TLS, where browsers allow least
export const password = 'nine blue kettles'

export const patience = Number(process.env.E2E_PATIENCE ?? 1) // factor for all times on a busy machine

export const complaints = []
export function complain(text) {
  const line = text.replaceAll(/\s+/g, ' ')
  const short = line.length > 700 ? `${line.slice(0, 700)}…` : line
  if (!complaints.includes(short)) {
    complaints.push(short)
    console.error(`  ✗ ${short}`)
  }
}

export const browser = await chromium.launch({
  executablePath: BROWSER,
  args: ['--no-sandbox', `--host-resolver-rules=MAP memory.test:80 ${new URL(LISTENING).host}`],
})

export const wide = { colorScheme: 'light', viewport: { width: 1440, height: 900 } }
export const phone = { colorScheme: 'dark', viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true,
  deviceScaleFactor: 2 }

// open opens a separate browser without a session. Statuses that the test names are expected.
export async function open(look = wide, more = {}) {
  const context = await browser.newContext({ ...look, ...more })
  context.setDefaultTimeout(10_000 * patience)
  context.setDefaultNavigationTimeout(30_000 * patience)
  const page = await context.newPage()
  watch(page)
  return page
}

// watch makes a page report errors. page.expected holds the statuses that the test expects; page.transfers the files
// loaded since it was emptied; page.away the origin of an application that the test expects to be sent to; page.home
// the origin of another server under test.
export function watch(page) {
  page.expected = []
  page.away = ''
  page.transfers = []
  page.waiting = new Set()
  page.on('console', (message) => {
    const text = message.text()
    // pictures are drawn without a graphics card
    if ((message.type() !== 'error' && message.type() !== 'warning') || /GL Driver Message/.test(text)) return
    // a search that was given up for the next one, as htmx tells it
    if (/^htmx:(sendAbort|afterRequest),/.test(text)) return
    const status = /the server responded with a status of (\d+)/.exec(text)
    if (status && page.expected.includes(Number(status[1]))) return
    if (/^Response Status Error Code \d+ from|Autofocus processing was blocked/.test(text)
      && page.expected.length + /Autofocus/.test(text) > 0) return
    complain(`${page.url()}: ${text}`)
  })
  page.on('pageerror', (error) => complain(`${page.url()}: ${error.stack}`))
  page.on('crash', () => complain(`${page.url()} has crashed`))
  page.on('request', (request) => {
    page.waiting.add(request)
    const url = new URL(request.url())
    if (url.origin !== (page.home ?? site) && !['data:', 'blob:'].includes(url.protocol)
      && !(url.origin === page.away && request.isNavigationRequest())) complain(
        `${page.url()}: ${request.url()} is loaded from elsewhere`)
  })
  page.on('requestfinished', async (request) => {
    page.waiting.delete(request)
    page.transfers.push(request)
  })
  page.on('requestfailed', (request) => {
    page.waiting.delete(request)
    const why = request.failure()?.errorText
    if (why === 'csp' && page.scriptless) return // a script that a page announces
    // which is given up for a newer one, or is a download
    if (why !== 'net::ERR_ABORTED' && new URL(request.url()).origin !== page.away)
      complain(`${request.url()} did not load: ${why}`)
  })
}

// settle waits until a page has loaded all its files, including those that its scripts load later. It does not wait for
// polling.
export async function settle(page) {
  await page.waitForLoadState('load')
  for (let quiet = 0, tries = 0; quiet < 3 && tries < 100; tries++) {
    await page.waitForTimeout(40)
    quiet = page.waiting.size > 0 ? 0 : quiet + 1
  }
  await still(page)
}

// still waits for the end of animations, since colours are wrong during them; at most a second, by the clock of the
// test: with scripts off, a page has none.
export const still = (page) => Promise.race([
  page.evaluate(() => Promise.allSettled(document.getAnimations().map((animation) => animation.finished))
    .then(() => {})).catch(() => {}),
  new Promise((resolve) => setTimeout(resolve, 1000)),
])

// go opens an address and waits until the page is complete. It returns the answer, or null when it is a download.
export async function go(page, path, status = 200) {
  page.transfers = []
  page.expected = status >= 400 ? [status] : []
  let response
  try {
    response = await page.goto(new URL(path, site).href)
  } catch (error) {
    if (/Download is starting/.test(error.message)) return null
    throw error
  }
  if (response && response.status() !== status) complain(`${path} is answered with ${response.status()}`)
  await settle(page)
  return response
}

const cookies = new Map() // of the users who have signed in
const signedIn = new Map() // when

// enter opens a page with an earlier session, unless that is so old that the server would ask for the password again.
export async function enter(page, name) {
  if (performance.now() - (signedIn.get(name) ?? -Infinity) > 8 * 60_000) {
    const other = await browser.newPage()
    watch(other)
    await signIn(other, name)
    cookies.set(name, await other.context().cookies())
    signedIn.set(name, performance.now())
    await other.context().close()
  }
  await page.context().addCookies(cookies.get(name))
}

// signIn signs a user in through the form.
export async function signIn(page, name) {
  await go(page, '/login')
  await page.fill('main [name=username]', name)
  await page.fill('main [name=password]', password)
  await page.click('main button[type=submit]')
  await page.waitForURL((url) => !url.pathname.startsWith('/login'), { timeout: 10_000 * patience })
  await settle(page)
}
