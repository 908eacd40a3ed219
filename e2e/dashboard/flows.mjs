// Runs the users' tasks, each in a browser of its own. One that fails does not stop the others.
import fs from 'node:fs'
import { complain, enter, go, open, patience, phone, settle, wide } from './browser.mjs'

const { STORE, SHOTS, ONLY, SHORT, LOOK, FLOW } = process.env

// The default look of a flow. Flows change the store, so they run on a phone with a store of its own, except those that
// name the phone themselves.
const usual = LOOK === 'phone' ? phone : wide
const namesThePhone = /\b(phone|looks)\b/

// The flows of the short form: at least one for each kind of page.
const main = [
  'administration: what an admin did is in the audit log which is verified',
  'connect: a client is connected and its first call is seen',
  'files: files are dropped looked at and linked',
  'frame: slash leads to the search',
  'memories: many are deleted and come back',
  'memories: near duplicates are made one and come apart',
  'memories: search answers as one types',
  'memories: the list works without scripts',
  'memory: a memory is edited and its history tells how',
  'memory: who saves a memory second loses nothing',
  'overview: the activity is filtered',
  'pictures: the graph is drawn and read',
  'projects: a task is ticked in place and without scripts',
  'projects: who saves second is shown both texts',
  'proposals: one is accepted another edited and both undone',
  'states: a paused application is shown where one connects',
  'states: consent guards allow alone',
  'states: what is missing is a whole page',
  'transfer: an export is brought in again',
  'upkeep: a backup is downloaded',
  'upkeep: a token is made used and ended',
]

// flows runs the files of the folder flows that are for the store. Each has functions named after their task. A file
// runs on the stores that it exports as stores, by default on the small one.
export async function flows(seeded) {
  const left = new Set(SHORT && STORE === 'small' && !ONLY ? main : [])
  for (const file of fs.readdirSync(new URL('flows', import.meta.url)).sort()) {
    const { stores = ['small'], ...steps } = await import(`./flows/${file}`)
    if (!stores.includes(STORE) || (ONLY && !ONLY.split(',').includes(file.replace('.mjs', '')))) continue
    for (const [name, step] of Object.entries(steps)) {
      const title = `${file.replace('.mjs', '')}: ${words(name)}`
      if (SHORT && !ONLY && !main.includes(title)) continue
      if (LOOK === 'phone' && namesThePhone.test(step)) continue
      if (FLOW && !title.includes(FLOW)) continue
      left.delete(title)
      const began = performance.now()
      const opened = []
      const someone = async (user, look = usual, more = {}) => {
        const page = await open(look, more)
        opened.push(page)
        if (user) await enter(page, user)
        return person(page)
      }
      try {
        await within(60 * patience, step(someone, seeded))
        console.log(`  ✓ ${title} (${((performance.now() - began) / 1000).toFixed(1)} s)`)
      } catch (error) {
        const page = opened.at(-1)
        if (SHOTS && page)
          await page.screenshot({ path: `${SHOTS}/failed-${file}-${name}.png`, fullPage: true }).catch(() => {})
        const problem = page && (await page.locator('.wrong, .problem, [role=alert]').allTextContents().catch(() => []))
          .join(' ').trim()
        complain(
          `${file}: ${words(name)}: ${error.message}${problem ? ` The page says: ${problem}` : ''} at ${page?.url()} ${error.stack.split('\n').find((line) => line.includes('/flows/')) ?? ''}`)
      }
      for (const page of opened) await page.context().close()
    }
  }
  for (const title of left) complain(`there is no flow "${title}"`)
}

// within limits the time in seconds: a hanging browser must not block everything.
function within(seconds, promise) {
  let timer
  const late = new Promise((_, reject) =>
    (timer = setTimeout(() => reject(new Error(`it took more than ${seconds} s`)), seconds * 1000)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

const words = (name) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

// unfold opens the menu if a phone has collapsed it.
async function unfold(page) {
  const folded = page.locator('.menu:not([open]) > summary')
  if (await folded.isVisible()) await folded.click()
}

// person is a page with the actions of a user.
function person(page) {
  return Object.assign(page, {
    unfold: () => unfold(page),
    go: (path, status) => go(page, path, status),
    settle: () => settle(page),
    heading: async () => (await page.textContent('h1')).trim(),
    main: () => page.innerText('main'),
    // send presses a button, named by its text, and waits for the result.
    send: async (text, within = 'main') => {
      if (within !== 'main') await unfold(page)
      await page.locator(within).getByRole('button', { name: text }).first().click()
      await settle(page)
    },
    follow: async (text, within = 'main') => {
      if (within !== 'main') await unfold(page)
      await page.locator(within).getByRole('link', { name: text, exact: within === '.menu' }).first().click()
      await settle(page)
    },
    notice: async () => ((await page.locator('main [role=status]').allTextContents()).join(' ')),
    focused: () => page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute('name')
      || document.activeElement?.textContent.trim()),
  })
}
