// The graph and the map: drawn, searched, and left by a click for what is chosen.
import assert from 'node:assert/strict'
import { figure } from '../figures.mjs'

export const stores = ['small', 'large']
const { STORE } = process.env

// drawn waits until a picture is drawn and returns how long that took, from the request for its page on.
async function drawn(page, path) {
  const began = performance.now()
  await page.goto(new URL(path, 'http://memory.test').href, { waitUntil: 'commit' })
  await page.waitForFunction(() => document.querySelector('#stage canvas') && document.getElementById('drawing').hidden, null, { timeout: 60_000 })
  const took = performance.now() - began
  await page.settle()
  return took
}

export async function theGraphIsDrawnAndRead(someone, { user }) {
  const page = await someone(user)
  await drawn(page, '/graph')
  assert.match(await page.textContent('#summary'), /memories/)
  const first = page.locator('#near button').first()
  const label = (await first.textContent()).trim()
  await first.click()
  await page.waitForFunction(() => document.querySelector('#chosen a[href*="/memories/"]'))
  await page.settle()
  assert.ok(label)
  await page.locator('#chosen a[href*="/memories/"]').first().click()
  await page.waitForURL('**/memories/*')
  await page.goBack()
  await page.waitForFunction(() => document.querySelector('#stage canvas'))
  await page.fill('#find', 'tiles')
  await page.waitForFunction(() => document.querySelectorAll('#hits button').length > 0)
  await page.focus('#stage')
  for (const key of ['+', '-', 'ArrowLeft', '0', 'Escape']) await page.keyboard.press(key)
}

export async function theMapIsDrawnAndColouredByType(someone, { user }) {
  const page = await someone(user)
  await drawn(page, '/map')
  assert.match(await page.textContent('#summary'), /Near means similar/)
  await page.selectOption('#colour', 'type')
  await page.waitForURL('**colour=type**')
  assert.match(await page.textContent('#legend'), /decision/)
}

export async function fiveThousandNodesAreDrawnInTime(someone, { user }) {
  if (STORE !== 'large') return
  const page = await someone(user)
  for (const path of ['/graph', '/map']) {
    await drawn(page, `${path}?limit=5000`)
    const took = []
    for (let i = 0; i < 3; i++) took.push(await drawn(page, `${path}?limit=5000`))
    assert.match(await page.textContent('#summary'), /5,000/)
    figure(`${path} of 5,000 drawn`, took.sort((a, b) => a - b)[1] / 1000, 's', 2)
  }
}
