// The list of memories: addresses without what is empty, and how many are chosen.

// An address says what is chosen, and nothing of what is not.
addEventListener('htmx:configRequest', (event) => {
  const parameters = event.detail.formData
  for (const name of [...parameters.keys()]) {
    const values = parameters.getAll(name).filter((value) => value !== '')
    parameters.delete(name)
    for (const value of new Set(values)) parameters.append(name, value)
  }
})

const boxes = () => [...document.querySelectorAll('input[form=bulk][name=id]')]

function count() {
  const place = document.getElementById('chosen')
  if (!place) return
  const all = boxes()
  const chosen = all.filter((box) => box.checked).length
  const everything = document.getElementById('all')?.checked
  place.textContent = everything ? 'All selected' : chosen ? `${chosen} selected` : 'None selected'
  const here = document.getElementById('all-here')
  here.checked = all.length > 0 && chosen === all.length
  here.indeterminate = chosen > 0 && chosen < all.length
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
  if (event.target.closest('#bulk') || event.target.getAttribute('form') === 'bulk') count()
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

// On the page that makes several memories one: the text of one of them to begin with.
addEventListener('click', (event) => {
  const source = event.target.dataset?.take
  if (!source) return
  const field = document.getElementById('content')
  field.value = document.getElementById(source).textContent
  field.focus()
})
