// Tells the server the reader's time zone, so that days begin and end there. Lists by days of another zone are
// reloaded.

addEventListener('DOMContentLoaded', () => {
  const place = document.querySelector('[data-zone]:not(input)')
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  if (!place || !zone || place.dataset.zone === zone) return
  const secure = location.protocol === 'https:' ? '; secure' : ''
  document.cookie = `souvenir_zone=${zone}; path=${place.dataset.path}; max-age=31536000; samesite=lax${secure}`
  if (document.cookie.includes(`souvenir_zone=${zone}`)) {
    window.htmx.ajax('GET', location.pathname + location.search, { target: place, swap: 'outerHTML' })
  }
})
