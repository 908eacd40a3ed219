// The demonstration, as who tries it sees it: signed in by its link, with a story on every page.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'

// The link is for one sign-in, on an address of its own.
export async function theDemonstrationTellsAStory(someone) {
  const demo = spawn(process.env.SOUVENIR, ['demo', '--no-open', '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] })
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
    const go = async (path) => page.go(`${page.home}${path}`)
    await page.go(link)
    assert.match(await page.main(), /Hello, demo/)
    for (const waits of [/1 invitation to shared projects/, /memories that say nearly the same/, /proposals about memories that contradict/]) assert.match(await page.innerText('#attention'), waits)
    await page.waitForSelector('#trends .trends')
    assert.match(await page.innerText('#trends'), /Clients on a day\s+3/)
    await go('/activity')
    assert.deepEqual((await page.locator('.uses a').allTextContents()).sort(), ['Claude', 'Claude Code', 'Cursor'])
    assert.match(await page.main(), /Cursor updated “Deploy window” in berth/)
    await go('/projects')
    await page.locator('.projects a', { hasText: 'berth' }).first().click()
    await page.settle()
    assert.match(await page.main(), /3 of 7 tasks done/)
    assert.match(await page.main(), /the booking engine we sell to ferry operators/)
    const project = new URL(page.url()).pathname
    await go(`${project}/conversations`)
    assert.match(await page.main(), /Can we move the winter release/)
    await go(`${project}/members`)
    assert.match((await page.locator('li', { hasText: 'priya' }).first().innerText()).replaceAll(/\s+/g, ' '), /priya writer pending/)
    await go('/memories?q=who+pulled+the+plug+of+the+primary')
    assert.match(await page.main(), /standby-measured\.eml/)
    await go('/graph')
    await page.waitForFunction(() => /\d+ (memories|clusters)/.test(document.querySelector('main').innerText))
    await go('/tokens')
    assert.doesNotMatch(await page.main(), /not used yet|does not expire/)
  } finally {
    demo.kill('SIGINT')
  }
}
