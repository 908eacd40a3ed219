// Breaks a page in every way that the checks cover, and verifies that each is noticed.
import assert from 'node:assert/strict'
import { complaints, enter, go, open, phone, settle } from './browser.mjs'
import { inspect, look } from './inspect.mjs'

export async function selfcheck({ user }) {
  const page = await open(phone)
  await enter(page, user)
  await go(page, '/profile')
  const [before, tell] = [complaints.length, console.error]
  console.error = () => {}
  await page.evaluate(() => {
    const main = document.querySelector('main')
    main.insertAdjacentHTML('beforeend',
      `<h1>Second</h1><p id="main">x</p><img src="/static/none.png"><img alt="" src="http://elsewhere.test/x.png"><button id="flat">x</button><p id="pale">Pale text</p><div id="broad">x</div><p style="color: red">styled</p>`)
    document.getElementById('flat').style.cssText = 'min-height: 0; height: 10px'
    document.getElementById('pale').style.cssText = 'color: #777; background: #888'
    document.getElementById('broad').style.width = '2000px'
    document.title = 'No name'
    globalThis.ran = 'something'
    setTimeout(() => { throw new Error('thrown on purpose') })
    console.error('said on purpose')
  })
  await settle(page)
  await inspect(page, 'broken')
  await look(page, 'broken', { touch: true })
  console.error = tell
  const found = complaints.splice(before).join('\n')
  for (const part of [
    'headings of the first level', 'the id main twice', 'none.png', 'elsewhere.test/x.png is loaded from elsewhere',
      'little for a finger', 'color-contrast', 'image-alt',
    'pixels too wide', 'the title is', 'stored text has run', 'thrown on purpose', 'said on purpose',
      'Content Security Policy', 'broken has <p style',
  ]) assert.ok(found.includes(part), `the checks have not noticed: ${part}; only:\n${found}`)
  await page.context().close()
}
