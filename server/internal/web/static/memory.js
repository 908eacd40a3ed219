// What was typed is not left behind without a question, and Ctrl+Enter saves it.

const form = document.querySelector('form[data-unsaved]')
let changed = form?.hasAttribute('data-changed') ?? false

form?.addEventListener('input', () => (changed = true))
form?.addEventListener('submit', () => (changed = false))
form?.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault()
    form.requestSubmit()
  }
})
addEventListener('beforeunload', (event) => {
  if (changed) event.preventDefault()
})

// What was found and ticked stays when something else is looked for.
addEventListener('change', (event) => {
  const found = event.target.closest?.('#seen li')
  if (!found) return
  document.getElementById('linked').append(found)
  event.target.focus()
})
