// Input is not lost without a question, and Ctrl+Enter saves it.

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

// Ticked results stay during another search.
addEventListener('change', (event) => {
  const found = event.target.closest?.('#seen li')
  if (!found) return
  document.getElementById('linked').append(found)
  event.target.focus()
})
