// The order of tasks: with Alt and the arrow keys, or dragged. The buttons beside each task work without this.

const card = (element) => element.closest('section[id^="card-"]')
const rowOf = (element) => element.closest?.('.boxes > li[data-mark]')
let again // the element that gets the focus when the section has been reloaded

// send moves a task: the form has the section, and the part of it that is shown.
function send(row, values) {
  const form = row.closest('form')
  const all = {
    ...Object.fromEntries(['csrf', 'section', 'show', 'part', 'board'].filter((name) => form.elements[name])
      .map((name) => [name, form.elements[name].value])), ...values }
  window.htmx.ajax('POST', form.getAttribute('action').replace(/tick$/, 'move'),
    { target: `#${card(row).id}`, swap: 'outerHTML', values: all })
}

addEventListener('keydown', (event) => {
  const row = rowOf(event.target)
  if (!row || !event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return
  event.preventDefault()
  again = { key: row.dataset.key, selector: 'input[type=checkbox]' }
  send(row, { move: `${event.key === 'ArrowUp' ? 'up' : 'down'}.${row.dataset.mark}` })
})
addEventListener('click', (event) => {
  const button = event.target.closest?.('.move button')
  if (!button) return
  event.preventDefault()
  again = { key: rowOf(button).dataset.key, selector: `.move button[value^="${button.value.split('.')[0]}"]` }
  send(rowOf(button), { move: button.value })
})
addEventListener('submit', (event) => {
  if (event.target.matches('.add-task')) again = { selector: '#task' }
})
addEventListener('htmx:afterSettle', () => {
  prepare()
  if (!again) return
  const { key, selector } = again
  again = undefined
  const row = key ? [...document.querySelectorAll('.boxes > li[data-key]')].find((other) => other.dataset.key === key)
    : document
  row?.querySelector(selector)?.focus()
})

// A mouse drags a task onto another one of the same depth, which makes room.
function prepare() {
  if (!matchMedia('(pointer: fine)').matches) return
  for (const row of document.querySelectorAll('.boxes > li[data-mark]')) row.draggable = true
}
let dragged
addEventListener('dragstart', (event) => {
  dragged = rowOf(event.target)
  if (!dragged) return
  event.dataTransfer.effectAllowed = 'move'
  event.dataTransfer.setData('text/plain', dragged.innerText.trim())
})
const target = (event) => {
  const row = rowOf(event.target)
  return dragged && row && row !== dragged && card(row) === card(dragged)
    && row.className.match(/depth-\d/)[0] === dragged.className.match(/depth-\d/)[0] ? row : undefined
}
addEventListener('dragover', (event) => {
  document.querySelector('.boxes .onto')?.classList.remove('onto')
  const row = target(event)
  if (!row) return
  event.preventDefault()
  row.classList.add('onto')
})
addEventListener('drop', (event) => {
  const row = target(event)
  if (!row) return
  event.preventDefault()
  again = { key: dragged.dataset.key, selector: 'input[type=checkbox]' }
  send(dragged, { move: `to.${dragged.dataset.mark}`, onto: row.dataset.mark })
})
addEventListener('dragend', () => {
  dragged = undefined
  document.querySelector('.boxes .onto')?.classList.remove('onto')
})
prepare()
