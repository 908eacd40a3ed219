// The list of memories: addresses without empty parameters, and the number of chosen memories.

// An address has no empty parameters, and each value once.
addEventListener('htmx:configRequest', (event) => {
  const parameters = event.detail.formData
  for (const name of [...parameters.keys()]) {
    const values = parameters.getAll(name).filter((value) => value !== '')
    parameters.delete(name)
    for (const value of new Set(values)) parameters.append(name, value)
  }
})

// Folded memories are not chosen with all.
const boxes = () => [...document.querySelectorAll('input[form=bulk][name=id]')].filter((box) => box.checked
  || !box.closest('details:not([open])'))

function count() {
  const place = document.getElementById('chosen')
  if (!place) return
  const all = boxes()
  const chosen = all.filter((box) => box.checked).length
  const everything = document.getElementById('all')?.checked
  place.textContent = everything ? 'All selected' : chosen ? `${chosen} selected` : 'None selected'
  const here = document.getElementById('all-here')
  if (here) {
    here.checked = all.length > 0 && chosen === all.length
    here.indeterminate = chosen > 0 && chosen < all.length
  }
  document.getElementById('bulk').classList.toggle('on', chosen > 0 || Boolean(everything))
}

let last
addEventListener('click', (event) => {
  const box = event.target
  if (!box.matches?.('input[form=bulk][name=id]')) return
  const all = boxes()
  if (event.shiftKey && last && all.includes(last)) { // everything between this one and the one before
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b)
    for (const other of all.slice(from, to + 1)) other.checked = box.checked
  }
  last = box
})
addEventListener('change', (event) => {
  if (event.target.id === 'all-here') for (const box of boxes()) box.checked = event.target.checked
  if (event.target.id === 'all-here' || event.target.closest('#bulk') || event.target.getAttribute('form') === 'bulk')
    count()
})
addEventListener('click', (event) => {
  if (event.target.id !== 'none') return
  for (const box of boxes()) box.checked = false
  const all = document.getElementById('all')
  if (all) all.checked = false
  count()
  document.getElementById('all-here')?.focus()
})

// A new search shows the best matches first, in place of the order of the list.
const search = document.getElementById('q')
let sought = search?.value.trim() !== ''
search?.addEventListener('input', () => {
  const now = search.value.trim() !== ''
  if (now !== sought) document.getElementById('sort').value = ''
  sought = now
})

// The arrow keys go through the results, and Escape back to the search.
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !search) return
  const links = [...document.querySelectorAll('#results .what > a, #results .reading .open, #weaker > summary')].filter(
    (link) => link.checkVisibility())
  const at = links.indexOf(document.activeElement)
  const inSearch = document.activeElement === search
  if (at < 0 && !inSearch) return
  if (event.key === 'Escape' && at >= 0) search.focus()
  else if (event.key === 'ArrowDown' && links.length > 0) links[Math.min(at + 1, links.length - 1)].focus()
  else if (event.key === 'ArrowUp' && at >= 0) (links[at - 1] ?? search).focus()
  else return
  event.preventDefault()
})

// A menu closes when something else is clicked, and with Escape.
addEventListener('click', (event) => {
  for (const open of document.querySelectorAll('details.tools[open]')) if (!open.contains(event.target))
    open.open = false
})
addEventListener('keydown', (event) => {
  const open = document.querySelector('details.tools[open]')
  if (event.key !== 'Escape' || !open) return
  open.open = false
  open.querySelector('summary').focus()
})

// Announces to screen readers how many were found.
let announced
addEventListener('htmx:afterSettle', (event) => {
  if (event.detail.target?.id !== 'results') return
  count()
  const found = document.querySelector('#results .problem, #found')?.textContent ?? ''
  if (found !== announced) document.getElementById('found-status').textContent = announced = found
})
count()

// On the page that merges memories: begins with the text of one of them.
addEventListener('click', (event) => {
  const source = event.target.dataset?.take
  if (!source) return
  const field = document.getElementById('content')
  field.value = document.getElementById(source).textContent
  field.focus()
})
