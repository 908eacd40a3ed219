// The checks that hold for every page.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import { complain, still } from './browser.mjs'

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// inspect checks the elements of a page as it is now.
export async function inspect(page, name) {
  const found = await page.evaluate(() => ({
    title: document.title,
    headings: [...document.querySelectorAll('h1')].map((heading) => heading.textContent.trim()),
    language: document.documentElement.lang,
    mains: document.querySelectorAll('main').length,
    ran: globalThis.ran,
    active: [...document.querySelectorAll(
      '[style], [onload], [onerror], [onclick], [onfocus], iframe, object, embed, base, script:not([src]):not([type="application/json"])')]
      .filter((element) => !element.closest('svg, canvas, .sigma, [data-drawn]'))
      .map((element) => element.outerHTML.slice(0, 120)),
    current: document.querySelectorAll('.menu [aria-current=page]').length,
    broken: [...document.images].filter((image) => image.complete && image.naturalWidth === 0
      && image.loading !== 'lazy').map((image) => image.src),
    ids: [...document.querySelectorAll('[id]')].map((element) => element.id)
      .filter((id, i, all) => all.indexOf(id) !== i),
  }))
  if (!/^\S.* · Souvenir$/s.test(found.title) || found.title.length > 200)
    complain(`${name}: the title is ${JSON.stringify(found.title)}`)
  if (found.headings.length !== 1 || !found.headings[0])
    complain(`${name} has ${found.headings.length} headings of the first level`)
  if (found.language !== 'en' || found.mains !== 1)
    complain(`${name} has the language ${found.language} and ${found.mains} elements main`)
  if (found.current > 1) complain(`${name}: the menu says ${found.current} times that it is here`)
  if (found.ran !== undefined) complain(`${name}: stored text has run: ${found.ran}`)
  for (const element of found.active) complain(`${name} has ${element}`)
  for (const source of found.broken) complain(`${name}: no picture is at ${source}`)
  for (const id of found.ids) complain(`${name} has the id ${id} twice`)
  return found
}

// look checks what depends on the look of a page: contrast and everything else that axe checks, its width, and room for
// fingers.
export async function look(page, name, { touch } = {}) {
  touch ??= await page.evaluate(() => matchMedia('(pointer: coarse)').matches)
  const { width } = page.viewportSize()
  // axe takes the content of a closed element for hidden, but beside a wide page the menu is shown all the same.
  if (!touch)
    await page.evaluate(() => document.querySelectorAll('header details:not([open])')
      .forEach((details) => { details.open = details.dataset.opened = true }))
  // the look may just have changed
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
  await still(page)
  const wide = await page.evaluate((width) => {
    if (document.documentElement.scrollWidth <= width) return ''
    const outside = [...document.body.querySelectorAll('*')].filter((element) => {
      if (element.getBoundingClientRect().right <= width + 1) return false
      for (let above = element.parentElement; above; above = above.parentElement)
        if (getComputedStyle(above).overflowX !== 'visible') return false
      return true
    })
    const last = outside.slice(-3).map((element) => element.outerHTML.slice(0, 160)).join(' … ')
    return `${document.documentElement.scrollWidth - width} pixels too wide: ${last}`
  }, width)
  if (wide) complain(`${name} at ${width} is ${wide}`)
  if (touch) {
    const small = await page.evaluate(() =>
      [...document.querySelectorAll('button, summary, input:not([type=hidden]), select, textarea, nav a, a.button')]
        .filter((element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
          && !element.closest('.visually-hidden, .skip'))
        .map((element) =>
          [
            Math.max(...[element, element.closest('label'), ...(element.labels ?? [])].map(
              (one) => one?.getBoundingClientRect().height ?? 0)), element.outerHTML.slice(0, 160)])
        .filter(([height]) => height < 35.5))
    for (const [height, element] of small)
      complain(`${name} at ${width}: ${height} pixels are little for a finger: ${element}`)
  }
  const client = await page.context().newCDPSession(page)
  const { result, exceptionDetails } = await client.send('Runtime.evaluate', {
    expression: `${axe}; (${rulesBroken})().then(JSON.stringify)`, awaitPromise: true, returnByValue: true,
  })
  await client.detach()
  await page.evaluate(() => document.querySelectorAll('header details[data-opened]')
    .forEach((details) => { delete details.dataset.opened; details.open = false }))
  if (exceptionDetails) throw new Error(`axe failed at ${name}: ${exceptionDetails.exception?.description}`)
  for (const { id, help, impact, nodes } of JSON.parse(result.value)) {
    const where = nodes.slice(0, 3).map((node) =>
      `${node.html} (${node.any[0]?.message ?? node.all[0]?.message ?? ''})`).join(' … ')
    complain(`${name} at ${width}: ${impact} ${id}: ${help}: ${where}`)
  }
}

// rulesBroken runs in the page. Authors of stored texts choose the levels of their headings.
async function rulesBroken() {
  const { violations } = await globalThis.axe.run({ resultTypes: ['violations'] })
  return violations
    .map((rule) =>
      ({ ...rule, nodes: rule.nodes.filter(({ target }) => rule.id !== 'heading-order'
        || !document.querySelector(target[0])?.closest('.markdown')) }))
    .filter(({ nodes }) => nodes.length > 0)
}

// openAll opens folded parts, since their content is checked, too.
export async function openAll(page) {
  await page.evaluate(() => document.querySelectorAll('main details').forEach((details) => {
    details.removeAttribute('name')
    details.open = true
  }))
}

// tabThrough moves through a page with the Tab key: every focused element must show its focus, and be in sight.
export async function tabThrough(page, name) {
  await page.evaluate(() => document.activeElement?.blur())
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab')
    const focus = await page.evaluate(() => {
      const element = document.activeElement
      if (!element || element === document.body) return null
      // The focus may be shown on an element drawn over this one, or on the card around it.
      const places = [element, element.parentElement, element.parentElement?.parentElement,
        element.parentElement?.parentElement?.parentElement].filter(Boolean)
      const styles = [...places.map((place) => getComputedStyle(place)), getComputedStyle(element, '::after'),
        getComputedStyle(element, '::before')]
      const box = element.getBoundingClientRect()
      return {
        html: element.outerHTML.slice(0, 160),
          shown: styles.some((style) => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0),
        seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
      }
    })
    if (!focus) break
    if (!focus.shown) complain(`${name}: the focus is not shown on ${focus.html}`)
    if (!focus.seen) complain(`${name}: the focus is out of view, on ${focus.html}`)
  }
}
