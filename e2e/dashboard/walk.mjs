// Finds every page by its links, and checks each in every look.
import { complain, enter, go, open, phone, site, wide } from './browser.mjs'
import { inspect, look, openAll, tabThrough } from './inspect.mjs'
import { measure } from './figures.mjs'

const { ROUTES, SHOTS, SHORT, STORE } = process.env
const patterns = ROUTES.split(/\s+/).filter(Boolean)
const matchers = patterns
  .map((pattern) =>
    (
      {
        pattern,
          path: new RegExp(
            `^${pattern.replace('{$}', '').replaceAll(/\{[^}]*\.\.\.\}/g, '.+').replaceAll(/\{[^}]*\}/g, '[^/]+')}$`),
              places: (pattern.match(/\{\w/g) ?? []).length }))
  .sort((a, b) => a.places - b.places)

// patternOf is the pattern of a page's address, with the names of its parameters: pages of one pattern are alike.
export function patternOf(address) {
  const url = new URL(address, site)
  return matchers.find(({ path }) => path.test(url.pathname))?.pattern ?? url.pathname
}

function kindOf(address) {
  const names =
    [...new Set([...new URL(address, site).searchParams].filter(([, value]) => value).map(([name]) => name))].sort()
      .join('&')
  return patternOf(address) + (names && `?${names}`)
}

const linksOf = (page) => page.evaluate(() =>
  [...document.querySelectorAll('a[href]')].filter((link) => !link.hasAttribute('download')).map((link) => link.href))

// follow opens the pages that can be reached by links from the home page, two of each kind, and calls visit for each.
// It returns their paths. Pages with known content come first.
async function follow(page, seeded, visit) {
  const found = new Map() // kind: paths
  // scripts put these two in place of the links to them
  const queue = ['/', '/attention', '/trends', ...knownPaths(seeded)]
  const seen = new Set(queue)
  while (queue.length > 0) {
    const path = queue.shift()
    const kind = kindOf(path)
    const alike = found.get(kind) ?? []
    const pattern = kind.split('?')[0]
    // parameters combine in very many ways
    const asked = [...found.keys()].filter((other) => other.startsWith(`${pattern}?`)).length
    if (alike.length >= (kind.includes('?') || SHORT ? 1 : 2) || (kind.includes('?') && asked >= (SHORT ? 1 : 3)))
      continue
    const response = await go(page, path)
    if (!response || !(response.headers()['content-type'] ?? '').startsWith('text/html')) continue // a download
    found.set(kind, [...alike, path])
    for (const href of await linksOf(page)) {
      const url = new URL(href)
      const next = url.pathname + url.search
      if (url.origin !== site) {
        if (!/^https?:$/.test(url.protocol) && url.protocol !== 'mailto:')
          complain(`${path} leads to ${href.slice(0, 200)}`)
      } else if (!seen.has(next) && !url.pathname.startsWith('/api/')) {
        seen.add(next)
        queue.push(next)
      }
    }
    await visit(path)
  }
  for (const pattern of patterns) {
    if (!partsAndDownloads.test(pattern) && STORE === 'small'
      && ![...found.keys()].some((kind) => kind.split('?')[0] === pattern)) complain(`no link leads to ${pattern}`)
  }
  return [...found.values()].flat()
}

// partsAndDownloads are GET routes that are not pages: data of pictures, parts that scripts fetch, previews and
// downloads.
const partsAndDownloads = /\/(data|names|found|preview|similar|download|content|shown|merge)$|^\/graph\/memories\//

// knownPaths are the pages with the most content.
function knownPaths({ user_id, memory, project, file }) {
  const paths = []
  if (memory) paths.push(`/memories/${memory}`)
  if (project) paths.push(`/projects/${user_id}/${encodeURIComponent(project)}`)
  if (file && patterns.includes('/files/{id}')) paths.push(`/files/${file}`)
  return paths
}

// walk checks every page of a store, as a user sees it: in the short form in one look only, which for hostile texts is
// the phone.
export async function walk(seeded) {
  const first = SHORT && STORE === 'hostile' ? phone : wide
  const page = await open(first)
  await enter(page, seeded.user)
  const client = await page.context().newCDPSession(page)
  await client.send('Network.enable')
  await client.send('Network.setCacheDisabled', { cacheDisabled: true })
  let small
  if (!SHORT) {
    small = await open(phone)
    await enter(small, seeded.user)
  }
  const titles = new Map()
  const paths = await follow(page, seeded, async (path) => {
    const name = `${STORE} ${path}`.slice(0, 120)
    const pattern = patternOf(path)
    const { title } = await inspect(page, name)
    const alike = titles.get(title) ?? pattern
    if (alike !== pattern && STORE !== 'hostile') complain(`${name} has the title of ${alike}: ${title}`)
    titles.set(title, pattern)
    await measure(page, path, pattern)
    await shoot(page, path, first === phone ? 'phone' : 'light')
    await openAll(page)
    if (!SHORT || STORE !== 'empty') await look(page, name, { touch: first === phone })
    if (!SHORT) {
      await inDark(page, path, name)
      await onPhone(small, path, name)
    }
  })
  console.log(`${STORE}: ${paths.length} pages of ${new Set(paths.map(patternOf)).size} kinds`)
  if (STORE === 'small' || (STORE !== 'large' && !SHORT)) await withoutScripts(seeded, paths)
  await nowhere(page)
  await page.context().close()
  await small?.context().close()
  return paths
}

async function inDark(page, path, name) {
  await page.emulateMedia({ colorScheme: 'dark' })
  await look(page, `${name} (dark)`, { touch: false })
  await shoot(page, path, 'dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await tabThrough(page, name)
}

async function onPhone(page, path, name) {
  await go(page, path)
  await inspect(page, name)
  await shoot(page, path, 'phone')
  await openAll(page)
  await look(page, `${name} (phone)`, { touch: true })
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 375, height: 812 })
  await look(page, `${name} (phone, light)`, { touch: true })
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.setViewportSize(phone.viewport)
}

const shot = new Set()
async function shoot(page, path, name) {
  const file = `${STORE}-${patternOf(path).replaceAll(/[^a-z]+/gi, '-').replaceAll(/^-|-$/g, '') || 'overview'}-${name}`
  if (!SHOTS || shot.has(file)) return
  shot.add(file)
  await page.screenshot({ path: `${SHOTS}/${file}.png`, fullPage: name !== 'phone' || STORE !== 'hostile' })
}

// withoutScripts checks that each form can be sent, and that nothing visible needs a script.
async function withoutScripts(seeded, paths) {
  const page = await open(wide, { javaScriptEnabled: false })
  page.scriptless = true
  await enter(page, seeded.user)
  for (const path of paths.filter((path, i) => paths.findIndex((other) => patternOf(other) === patternOf(path)) === i))
    {
    await go(page, path)
    await inspect(page, `${STORE} ${path} (no scripts)`)
    const wrong = await page.evaluate(() => [
      ...[...document.forms].filter((form) =>
        ![...form.elements].some((field) => field.matches('button:not([type=button]), input[type=submit]')))
          .map((form) => `no button sends ${form.outerHTML.slice(0, 160)}`),
      ...[...document.querySelectorAll('form[method=post] button, form:not([method=post]) button')].filter(
        (button) => button.type === 'submit' && button.form && !button.form.getAttribute('action')
          && !button.hasAttribute('formaction') && button.form.method === 'post')
        .map((button) => `a form without an action: ${button.outerHTML.slice(0, 160)}`),
      ...[...document.querySelectorAll(
        'button[type=button], [hx-get]:not(a[href], form, form *), [hx-post]:not(form, form *)')]
        .filter((element) => element.checkVisibility() && !element.closest('form')
          && element.matches('button')).map((element) =>
            `does nothing without scripts: ${element.outerHTML.slice(0, 160)}`),
    ])
    for (const text of wrong) complain(`${STORE} ${path} (no scripts): ${text}`)
  }
  await page.context().close()
}

// nowhere checks that missing objects get a page that says so.
async function nowhere(page) {
  for (const path of ['/nowhere', '/memories/00000000-0000-7000-8000-000000000000']) {
    await go(page, path, 404)
    await inspect(page, path)
    await look(page, path, { touch: false })
  }
}
