// Shared by all pages for signed-in users. Pages work without it; this makes them nicer.

document.documentElement.classList.add('scripted')

// The menu is closed on small screens until it is asked for; Escape closes it.
addEventListener('keydown', (event) => {
  const menu = document.querySelector('.menu[open]')
  if (event.key === 'Escape' && menu && menu.contains(document.activeElement)) {
    menu.open = false
    menu.querySelector('summary').focus()
  }
})

// If a browser cannot show the content of a closed element, the menu beside a wide page is opened.
if (!CSS.supports('selector(::details-content)') && matchMedia('(min-width: 52rem)').matches)
  document.querySelector('.menu')?.setAttribute('open', '')

// The theme changes at once, and input on the page stays. The server keeps it for the next one.
addEventListener('submit', (event) => {
  const form = event.target.closest?.('.themes')
  const theme = event.submitter?.value
  if (!form || !theme) return
  event.preventDefault()
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  for (const button of form.querySelectorAll('button'))
    button.setAttribute('aria-pressed', String(button === event.submitter))
  dispatchEvent(new Event('souvenir:theme'))
  fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form, event.submitter)),
    redirect: 'manual' })
    .catch(() => problem('The server does not answer, so the theme is not kept. Check your connection.'))
})

// If tabs have to be scrolled, the open one is in sight.
document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })

// Times in the reader's own zone.
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' })
function localize(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime)
    if (Number.isNaN(at.getTime()) || at.getFullYear() < 1900) continue
    time.title = exact.format(at)
    if (time.classList.contains('exact')) time.textContent = full.format(at)
  }
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  for (const input of root.querySelectorAll('input[data-zone]')) input.value = zone
}

// The server learns in which zone the reader lives, so that days begin and end there. See zone.js.
{
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const brand = document.querySelector('.brand')
  if (zone && brand && !document.cookie.includes(`souvenir_zone=${zone}`)) {
    const secure = location.protocol === 'https:' ? '; secure' : ''
    document.cookie =
      `souvenir_zone=${zone}; path=${brand.getAttribute('href')}; max-age=31536000; samesite=lax${secure}`
  }
}

// "/" leads to the search: of this page, or of the memories.
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey
    || event.target.closest?.('input, textarea, select, [contenteditable]')) return
  event.preventDefault()
  const search = document.querySelector('main input[type=search]')
  if (search) {
    search.focus()
    search.select()
  } else {
    location.href = document.querySelector('.menu a[href$="/memories"]').href + '#search'
  }
})
if (location.hash === '#search') document.querySelector('main input[type=search]')?.focus()

// <button data-copy="ID"> copies the text of an element.
addEventListener('click', async (event) => {
  const button = event.target.closest?.('button[data-copy]')
  if (!button) return
  const source = document.getElementById(button.dataset.copy)
  const text = (source.value ?? source.textContent).trim()
  const label = button.textContent
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
    announce('Copied')
  } catch {
    // Without TLS browsers allow no clipboard: the text is chosen instead.
    const range = document.createRange()
    range.selectNodeContents(source)
    getSelection().removeAllRanges()
    getSelection().addRange(range)
    button.textContent = document.execCommand('copy') ? 'Copied' : 'Selected: press Ctrl+C'
  }
  setTimeout(() => (button.textContent = label), 2000)
})

// <form data-confirm="…"> asks before an action that cannot be undone.
addEventListener('submit', (event) => {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm
  if (question && !confirm(question)) event.preventDefault()
}, true)

// announce makes screen readers read a text.
export function announce(text) {
  let region = document.getElementById('announcements')
  if (!region) {
    region = document.createElement('p')
    region.id = 'announcements'
    region.className = 'visually-hidden'
    region.setAttribute('role', 'status')
    document.body.append(region)
  }
  region.textContent = text
}

function problem(text) {
  const place = document.getElementById('problems')
  const p = document.createElement('p')
  p.className = 'problem'
  p.textContent = text
  place.replaceChildren(p)
}
// Without a connection nothing is sent: the browser would show an error page in place of the input.
const offlineText = 'You are offline. What you typed stays here; send it when you are connected again.'
function offline() {
  const place = document.getElementById('offline')
  if (navigator.onLine) return place?.remove()
  if (place) return
  const p = document.createElement('p')
  p.id = 'offline'
  p.className = 'note'
  p.setAttribute('role', 'status')
  p.textContent = offlineText
  document.getElementById('main').prepend(p)
}
addEventListener('offline', offline)
addEventListener('online', offline)
offline()
addEventListener('submit', (event) => {
  if (navigator.onLine || event.target.matches('.themes')) return
  event.preventDefault()
  event.stopImmediatePropagation()
  problem(offlineText)
  document.getElementById('problems').scrollIntoView({ block: 'nearest' })
}, true)

// What a page requests after it is shown (class late) ends with a sentence in its place, if that fails.
const lateTime = 60_000 // milliseconds
function lateOf(event) {
  const place = (event.detail.requestConfig ?? event.detail).elt
  return place?.classList.contains('late') ? place : undefined
}
function failLate(place, why, next = 'Try again') {
  const link = document.createElement('a')
  link.href = place.getAttribute('hx-get')
  link.textContent = next
  const text = place.matches('p') ? place : place.querySelector('p')
  text.replaceChildren(`${why} `, link)
  place.classList.remove('late')
  if (!text.closest('[role=status], [aria-live]')) announce(text.textContent)
}
addEventListener('htmx:configRequest', (event) => {
  if (lateOf(event)) event.detail.timeout = lateTime
})
addEventListener('htmx:beforeSwap', (event) => {
  const { xhr } = event.detail
  const place = lateOf(event)
  // An error that belongs to the part is shown as the part is.
  if (!place || xhr.status < 400 || xhr.getResponseHeader('HX-Reswap') === null
    && xhr.getResponseHeader('Vary')?.includes('HX-Request')) return
  event.detail.shouldSwap = false
  if (xhr.status === 401) failLate(place, 'Your session has ended.', 'Sign in again')
  else if (xhr.status === 429) failLate(place, 'This could not be loaded, since there were too many requests.')
  else if (xhr.status >= 502) failLate(place, 'This could not be loaded: the server is not available at the moment.')
  else failLate(place, xhr.status < 500 && reasonIn(xhr.responseText) || 'This could not be loaded.')
})
function reasonIn(page) {
  return new DOMParser().parseFromString(page, 'text/html').querySelector('.problem')?.textContent.trim()
}

addEventListener('htmx:afterSwap', (event) => {
  const { xhr, target } = event.detail // a list of results announces their number
  if (lateOf(event)?.matches('[role=status]') && xhr.status < 400 && target.id !== 'results') announce('Loaded')
})
addEventListener('htmx:sendError', (event) => {
  const place = lateOf(event)
  if (place) failLate(place, 'This could not be loaded: the server does not answer.')
  else problem(navigator.onLine ? 'The server does not answer. Check your connection, and try again.' : offlineText)
})
addEventListener('htmx:timeout', (event) => {
  const place = lateOf(event)
  if (place) failLate(place, 'This could not be loaded: the server took too long to answer.')
  else problem('The server took too long to answer. Try again.')
})
addEventListener('htmx:beforeRequest', () => document.getElementById('problems').replaceChildren())

addEventListener('htmx:load', (event) => localize(event.detail.elt.parentElement ?? event.detail.elt))
localize(document)
