// Ctrl+K (or Cmd+K) opens a search over every page, and ? shows the keys.

const base = document.querySelector('.brand').getAttribute('href').replace(/\/$/, '')
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  element.append(...children)
  return element
}

function dialogOf(id, label, ...children) {
  const dialog = make('dialog', { id, class: 'over', 'aria-label': label }, ...children)
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close() // beside it
  })
  document.body.append(dialog)
  return dialog
}

let palette
function openPalette() {
  if (!palette) {
    const field = make('input', { type: 'search', 'aria-label': 'Go to a page, a project, a memory or a file',
      placeholder: 'Go to…', autocomplete: 'off' })
    const pages = make('ul', { class: 'go' })
    const found = make('div', { 'aria-live': 'polite' })
    palette = Object.assign(dialogOf('palette', 'Go to', field, make('div', { class: 'found' }, pages, found)),
      { field, pages, found })
    let timer
    field.addEventListener('input', () => {
      pending = true
      entered = false
      listPages()
      clearTimeout(timer)
      timer = setTimeout(ask, 120)
    })
    palette.addEventListener('keydown', walk)
  }
  palette.field.value = ''
  pending = true
  entered = false
  listPages()
  ask()
  palette.showModal()
}

// nameOf returns the text of a link of the menu, without its icon and its count.
const nameOf = (link) => [...link.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)
  .map((node) => node.textContent).join('').trim()

// listPages lists the pages of the menu, and two more, that match the input.
function listPages() {
  const sought = palette.field.value.trim().toLowerCase()
  const places = [...document.querySelectorAll('.menu nav a')].map((link) => [nameOf(link), link.href])
  places.push(['New memory', `${base}/memories/new`], ['Near duplicates', `${base}/memories/duplicates`])
  palette.pages.replaceChildren(...places.filter(([name]) => sought !== '' && name.toLowerCase().includes(sought))
    .slice(0, 5).map(([name, href]) => make('li', {}, make('a', { href }, name))))
}

let asked
let pending = false // the results shown may be for an earlier text
let entered = false // Enter was pressed meanwhile
async function ask() {
  asked?.abort()
  asked = new AbortController()
  try {
    const answer = await fetch(`${base}/find?${new URLSearchParams({ q: palette.field.value })}`,
      { headers: { 'HX-Request': 'true' }, signal: asked.signal })
    if (new URL(answer.url).pathname !== `${base}/find`) location.reload() // the session has ended
    palette.found.innerHTML = await answer.text()
    pending = false
    if (entered && palette.open) palette.querySelector('a')?.click()
  } catch (error) {
    if (error.name !== 'AbortError') palette.found.textContent = 'The server does not answer.'
  }
}

function walk(event) {
  const links = [...palette.querySelectorAll('a')]
  const at = links.indexOf(document.activeElement)
  if (event.key === 'Enter' && document.activeElement === palette.field) {
    entered = pending && !palette.pages.contains(links[0] ?? null)
    if (!entered) links[0]?.click()
  } else if (event.key === 'Escape') palette.close() // not the text of its field first
  else if (event.key === 'ArrowDown') links[Math.min(at + 1, links.length - 1)]?.focus()
  else if (event.key === 'ArrowUp') (links[at - 1] ?? palette.field).focus()
  else return
  event.preventDefault()
}

const keys = [['/', 'Search'], ['Ctrl K', 'Go to a page, a project, a memory or a file'], ['↑ ↓', 'Go through results'],
  ['Alt ↑ ↓', 'Move a task'], ['Ctrl Enter', 'Save a memory'], ['Esc', 'Close, or back to the search'],
    ['?', 'These keys']]
let help
function openHelp() {
  if (!help) {
    const list = make('dl', { class: 'keys' })
    for (const [key, does] of keys)
      list.append(make('dt', {}, ...key.split(' ').flatMap((one) => [make('kbd', {}, one), ' '])), make('dd', {}, does))
    const close = make('button', { class: 'small', type: 'button', autofocus: '' }, 'Close')
    help = dialogOf('keys-help', 'Keys', make('h2', {}, 'Keys'), list, close)
    close.addEventListener('click', () => help.close())
  }
  help.showModal()
}

addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault()
    if (palette?.open) palette.close()
    else openPalette()
  } else if (event.key === '?' && !event.ctrlKey && !event.metaKey && !event.altKey
    && !event.target.closest?.('input, textarea, select, [contenteditable], dialog')) {
    event.preventDefault()
    openHelp()
  }
})
