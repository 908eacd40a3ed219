// The graph and the map: drawn, searched, and left by a click on a chosen memory.
import assert from 'node:assert/strict'
import { patience, phone, wide } from '../browser.mjs'
import { call } from '../client.mjs'
import { figure } from '../figures.mjs'
import { look } from '../inspect.mjs'

export const stores = ['small', 'large']
const { STORE } = process.env

// drawn waits until a picture is drawn and returns how long that took, from the request for its page on.
async function drawn(page, path) {
  const began = performance.now()
  await page.goto(new URL(path, 'http://memory.test').href, { waitUntil: 'commit' })
  await page.waitForFunction(() => document.querySelector('#stage canvas')
    && document.getElementById('drawing').hidden, null, { timeout: 60_000 * patience })
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

// After a change the graph has the connections of before at once, and the new ones in a moment.
export async function theGraphTakesInChanges(someone, { user, token }) {
  for (const [how, metal] of [[wide, 'brass'], [phone, 'pewter']]) {
    const page = await someone(user, how)
    // exact waits for an exact graph, and returns how many pairs are similar, and how many memories have no connections
    const exact = async () => {
      for (;;) {
        const { arranging, similar, folded } = await page.evaluate(async () => (await fetch('/graph/data')).json())
        if (!arranging) return [similar.filter((each) => each > 0).length, folded.length]
        await page.waitForTimeout(300)
      }
    }
    await drawn(page, '/graph')
    await exact()
    const ids = []
    for (const end of ['.', '!'])
      ids.push((await call(token, 'memory',
        { action: 'store', content: `The ${metal} gong of the galley is struck at dawn${end}` })).id)
    await drawn(page, '/graph')
    const [pairs, alone] = await exact()
    await page.waitForFunction(([pairs, alone]) => {
      const text = document.getElementById('summary').textContent.replaceAll(',', '')
      return text.includes(` ${pairs} similar pair`) && text.includes(` ${alone} memories have no connections`)
    }, [pairs, alone], { timeout: 20_000 * patience })
    await look(page, 'the graph with new connections', { touch: how === phone })
    for (const id of ids) await call(token, 'memory', { action: 'delete', id })
  }
}

export async function theMapIsDrawnAndColouredByType(someone, { user }) {
  const page = await someone(user)
  await drawn(page, '/map')
  assert.match(await page.textContent('#summary'), /Near means similar/)
  await page.selectOption('#colour', 'type')
  await page.waitForURL('**colour=type**')
  assert.match(await page.textContent('#legend'), /decision/)
}

// lasso draws around the whole stage, with the mouse or as a finger does.
async function lasso(page) {
  await page.click('#lasso-on')
  const box = await page.locator('#lasso').boundingBox()
  const at = (x, y) =>
    ({ clientX: box.x + x * box.width, clientY: box.y + y * box.height, pointerId: 1, bubbles: true })
  const line = [[0.01, 0.01], [0.99, 0.01], [0.99, 0.99], [0.01, 0.99]].map(([x, y]) => at(x, y))
  if (await page.evaluate(() => matchMedia('(pointer: coarse)').matches)) {
    await page.evaluate((line) => {
      const canvas = document.getElementById('lasso')
      canvas.setPointerCapture = () => {} // there is no finger
      const send = (kind, one) => canvas.dispatchEvent(new PointerEvent(kind, { ...one, pointerType: 'touch' }))
      send('pointerdown', line[0])
      for (const one of line) send('pointermove', one)
      send('pointerup', line.at(-1))
    }, line)
    return
  }
  await page.mouse.move(line[0].clientX, line[0].clientY)
  await page.mouse.down()
  for (const { clientX, clientY } of line) await page.mouse.move(clientX, clientY)
  await page.mouse.up()
}

const picked = async (page) => Number(/^[\d,]+/.exec(await page.textContent('#picked'))?.[0].replace(',', '') ?? 0)

export async function manyAreSelectedWithALassoAndTagged(someone, { user }) {
  if (STORE !== 'small') return
  for (const size of [wide, { ...phone, viewport: { width: 360, height: 740 } }]) {
    const page = await someone(user, size)
    await drawn(page, '/map')
    await lasso(page)
    const all = await picked(page)
    assert.ok(all > 20, `${all} are selected`)
    await page.click('#pick-none')
    assert.equal(await picked(page), 0)
    await page.focus('#stage')
    await page.keyboard.press('a')
    assert.equal(await picked(page), all)
    await page.click('#pick-none')
    await page.locator('#cluster-list button').first().click()
    // it is in sight
    await page.waitForFunction(() => document.getElementById('stage').getBoundingClientRect().bottom > 200)
    await page.locator('#near button', { hasText: 'Select all' }).click()
    const some = await picked(page)
    assert.ok(some > 1 && some < all, `${some} of ${all} are of the first cluster`)
    await looked(page)
    await page.fill('#bulk-tag', 'chosen')
    await page.send('Add tag')
    assert.match(await page.main(), new RegExp(`${some} memories`))
    await page.send('Undo')
  }
}

// looked returns the findings of axe and the other checks about the page as it is now.
async function looked(page) {
  const coarse = await page.evaluate(() => matchMedia('(pointer: coarse)').matches)
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme })
    await look(page, `the map with a selection (${colorScheme})`, { touch: coarse })
  }
}

export async function theTimeSliderAndTheLabelsOfTheGraph(someone, { user }) {
  if (STORE !== 'small') return
  for (const size of [wide, { ...phone, viewport: { width: 360, height: 740 } }]) {
    const page = await someone(user, size)
    await drawn(page, '/graph')
    // No label covers another one.
    await page.waitForTimeout(500) // labels are placed when the picture has been drawn
    const boxes = await page.evaluate(() => [...document.querySelectorAll('#cluster-labels span')].map((label) => {
      const { left, top, right, bottom } = label.getBoundingClientRect()
      return { left, top, right, bottom, text: label.textContent }
    }))
    if (size === wide) assert.ok(boxes.length > 0, `no label in ${await page.textContent('#clusters')}`)
    for (const a of boxes) {
      for (const b of boxes) {
        if (a !== b)
          assert.ok(a.right <= b.left || b.right <= a.left || a.bottom <= b.top
            || b.bottom <= a.top, `${a.text} covers ${b.text}`)
      }
    }
    if (await page.locator('.times').isVisible()) {
      await page.focus('#until')
      await page.keyboard.press('Home')
      const [, shown] = /: ([\d,]+) stored/.exec(await page.textContent('#times'))
      assert.ok(Number(shown) >= 1)
      await page.keyboard.press('End')
    }
    await page.locator('#near button').first().click()
    await page.waitForFunction(() => /similar|link/.test(document.getElementById('near').textContent))
  }
}

// Clusters contain clusters, with discs of several sizes. Names are beside them, and cover none.
export async function namesOfClustersCoverNoMemories(someone, { user }) {
  if (STORE !== 'small') return
  for (const size of [wide, { ...phone, viewport: { width: 360, height: 740 } }]) {
    const page = await someone(user, size)
    await drawn(page, '/map')
    const [names, covered] = await page.evaluate(async () => {
      const { label } = await import(performance.getEntriesByType('resource')
        .find(({ name }) => name.includes('/clusters.js')).name)
      const { width, height, left, top } = document.getElementById('cluster-labels').getBoundingClientRect()
      const places = Array.from({ length: 90 }, (_, i) =>
        ({ x: ((i * 61.803) % 100) / 100 * width, y: ((i * 41.421) % 100) / 100 * height, radius: 3 + (i % 4) * 3 }))
      const clusters = [0, 1, 2].map((number) =>
        ({ name: 'ferry, pier', number, folded: 0, drawn: places.map((_, i) => i).filter((i) => i % 3 === number) }))
      label(clusters, (i) => places[i], () => {})
      const boxes = [...document.querySelectorAll('#cluster-labels span')].map((one) => one.getBoundingClientRect())
      const meets = (box, { x, y, radius }) =>
        Math.hypot(x - Math.max(box.left - left, Math.min(x, box.right - left)),
          y - Math.max(box.top - top, Math.min(y, box.bottom - top))) < radius
      return [boxes.length, places.filter((place) => boxes.some((box) => meets(box, place)))]
    })
    assert.ok(names > 0, 'there are no names')
    assert.deepEqual(covered, [])
  }
}

// In every part of a picture, titles and names cover no memory, no other text and no button.
export async function titlesAndNamesCoverNothing(someone, { user }) {
  for (const size of [wide, { ...wide, viewport: { width: 900, height: 800 } },
    { ...phone, viewport: { width: 390, height: 844 } }]) {
    const page = await someone(user, size)
    for (const kind of ['graph', 'map']) {
      await drawn(page, `/${kind}`)
      await page.waitForFunction(() => document.querySelector('#cluster-list button'))
      let texts = 0
      for (let step = 0; step < 5; step++) {
        await page.waitForTimeout(400) // zooming ends, and the texts find their places
        const [found, covered] = await page.evaluate(async () => {
          const { seen } = await import(document.querySelector('script[src*="/pictures.js"]').src)
          const { points, titles, names, buttons } = seen()
          const texts = [...titles.map((box) => ({ ...box, what: 'a title' })),
            ...names.map((box) => ({ ...box, what: box.text }))]
          const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
          const inside = (box, { x, y, radius }) =>
            Math.hypot(x - Math.max(box.left, Math.min(x, box.right)),
              y - Math.max(box.top, Math.min(y, box.bottom))) < radius - 0.5
          return [texts.length, texts.flatMap((one, i) => [
            ...points.filter((point) => inside(one, point)).map(() => `${one.what} covers a memory`),
            ...texts.slice(i + 1).filter((other) => meet(one, other))
              .map((other) => `${one.what} covers ${other.what}`),
            ...buttons.filter((button) => meet(one, button)).map(() => `${one.what} is under a button`),
          ])]
        })
        assert.deepEqual(covered, [], `${kind}, ${size.viewport.width} pixels wide, after zooming in ${step} times`)
        texts += found
        await page.focus('#stage')
        await page.keyboard.press('+')
      }
      assert.ok(texts > 0, `there are no titles or names on the ${kind}`)
    }
  }
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
