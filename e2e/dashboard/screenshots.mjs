// Takes the pictures of docs/dashboard.md of a demonstration that runs at an address: light, dark and on a phone, as
// WebP. See ../screenshots.sh.
import fs from 'node:fs'
import { chromium } from 'playwright-core'

const { BROWSER, LINK, FOLDER } = process.env
const most = 150_000 // bytes of a picture
const site = new URL(LINK).origin
const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox'] })
const desk = { viewport: { width: 1280, height: 960 } }
const phone = { viewport: { width: 360, height: 720 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }

const first = await browser.newContext(desk)
const entry = await first.newPage()
await entry.goto(LINK)
if (await entry.locator('main form button').count()) {
  await Promise.all([entry.waitForNavigation().catch(() => {}), entry.locator('main form button').first().click()])
}
const cookies = await first.cookies()
const canvas = await (await browser.newContext()).newPage()

async function settled(page) {
  await page.waitForLoadState('networkidle').catch(() => {})
  await page.waitForTimeout(700)
}

// take takes one picture; ONLY names those to take, all if it is empty.
async function take(name, path, look, scheme, act) {
  if (process.env.ONLY && !process.env.ONLY.split(',').includes(name)) return
  const context = await browser.newContext(
    { ...look, colorScheme: scheme, timezoneId: 'Europe/Berlin', locale: 'en-GB' })
  await context.addCookies(cookies)
  const page = await context.newPage()
  await page.goto(new URL(path, site).href)
  await settled(page)
  await act?.(page)
  await settled(page)
  const png = (await page.screenshot()).toString('base64')
  for (let quality = 0.86; quality > 0.3; quality -= 0.1) {
    const data = await canvas.evaluate(async ([source, quality]) => {
      const image = new Image()
      image.src = `data:image/png;base64,${source}`
      await image.decode()
      const ground = document.createElement('canvas')
      ground.width = image.naturalWidth
      ground.height = image.naturalHeight
      ground.getContext('2d').drawImage(image, 0, 0)
      return ground.toDataURL('image/webp', quality)
    }, [png, quality])
    const bytes = Buffer.from(data.slice(data.indexOf(',') + 1), 'base64')
    if (bytes.length > most) continue
    fs.writeFileSync(`${FOLDER}/${name}.webp`, bytes)
    console.log(`${name}.webp: ${bytes.length} bytes`)
    break
  }
  if (process.env.PNG) fs.writeFileSync(`${process.env.PNG}/${name}.png`, Buffer.from(png, 'base64'))
  await context.close()
}

const search = (text) => async (page) => page.fill('#q', text)

await take('overview', '/', desk, 'light')
await take('overview-dark', '/', desk, 'dark')
await take('trends-phone', '/', phone, 'light', (page) =>
  page.locator('#trends').evaluate((element) => element.scrollIntoView()))
await take('memories', '/memories', desk, 'light', search('when do we deploy'))
await take('memory-phone', '/memories?q=deploy+window', phone, 'dark', async (page) => {
  await page.locator('main a[href*="/memories/0"]').first().click()
})
await take('new-memory', '/memories/new', desk, 'light', async (page) => {
  await page.fill('#content',
    '## Deploy window\n\nWe deploy on **Thursdays**, after the nightly tests:\n\n- the branch `main` is green\n- someone is on call')
  await page.fill('#tags', 'deploy, berth')
  await page.locator('#content').dispatchEvent('input')
  await settled(page)
  await page.evaluate(() => scrollTo(0, 0))
})
await take('todo-dark', '/projects', desk, 'dark', async (page) => {
  await page.locator('.projects a').first().click()
  await settled(page)
  await page.locator('.tabs').getByRole('link', { name: /To-do/ }).click()
})
await take('activity', '/activity', desk, 'light')
await take('graph', '/graph', desk, 'light', async (page) => {
  await page.locator('main select[name=project]').selectOption({ label: 'berth' })
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await settled(page)
  await page.getByLabel('Colour by').selectOption({ label: 'Type' })
  await page.waitForTimeout(4000)
})
await take('map-dark', '/map', desk, 'dark', async (page) => {
  await page.locator('main select[name=project]').selectOption({ label: 'berth' })
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await settled(page)
  await page.getByLabel('Colour by').selectOption({ label: 'Type' })
  await page.waitForSelector('#cluster-list button', { timeout: 60_000 }) // the map has been arranged
  await page.waitForTimeout(2000)
})
await take('connect-phone', '/connect', phone, 'light')
await take('duplicates', '/memories/duplicates', desk, 'light')
await browser.close()
