// Runs what people do, each in a browser of its own; one that fails does not keep the others from running.
import fs from 'node:fs'
import { complain, enter, go, open, settle } from './browser.mjs'

const { STORE, SHOTS, ONLY } = process.env

// flows runs the files of the folder flows that are for the store. Each has functions named after what they do; a file that exports
// stores says on which it runs, and otherwise it is the small one.
export async function flows(seeded) {
  for (const file of fs.readdirSync(new URL('flows', import.meta.url)).sort()) {
    const { stores = ['small'], ...steps } = await import(`./flows/${file}`)
    if (!stores.includes(STORE) || (ONLY && !ONLY.split(',').includes(file.replace('.mjs', '')))) continue
    for (const [name, step] of Object.entries(steps)) {
      const began = performance.now()
      const opened = []
      const someone = async (user, look, more) => {
        const page = await open(look, more)
        page.setDefaultTimeout(10_000)
        opened.push(page)
        if (user) await enter(page, user)
        return person(page)
      }
      try {
        await step(someone, seeded)
        console.log(`  ✓ ${file.replace('.mjs', '')}: ${words(name)} (${((performance.now() - began) / 1000).toFixed(1)} s)`)
      } catch (error) {
        const page = opened.at(-1)
        if (SHOTS && page) await page.screenshot({ path: `${SHOTS}/failed-${file}-${name}.png`, fullPage: true }).catch(() => {})
        const problem = page && (await page.locator('.wrong, .problem, [role=alert]').allTextContents().catch(() => [])).join(' ').trim()
        complain(`${file}: ${words(name)}: ${error.message}${problem ? ` The page says: ${problem}` : ''} at ${page?.url()} ${error.stack.split('\n').find((line) => line.includes('/flows/')) ?? ''}`)
      }
      for (const page of opened) await page.context().close()
    }
  }
}

const words = (name) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

// person is a page with what people do to it.
function person(page) {
  return Object.assign(page, {
    go: (path, status) => go(page, path, status),
    settle: () => settle(page),
    heading: async () => (await page.textContent('h1')).trim(),
    main: () => page.innerText('main'),
    // send presses a button, by what is on it, and waits for what comes of it.
    send: async (text, within = 'main') => {
      await page.locator(within).getByRole('button', { name: text }).first().click()
      await settle(page)
    },
    follow: async (text, within = 'main') => {
      await page.locator(within).getByRole('link', { name: text }).first().click()
      await settle(page)
    },
    notice: async () => ((await page.locator('main [role=status]').allTextContents()).join(' ')),
    focused: () => page.evaluate(() => document.activeElement?.id || document.activeElement?.getAttribute('name') || document.activeElement?.textContent.trim()),
  })
}
