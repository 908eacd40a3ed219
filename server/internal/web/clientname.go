package web

import (
	"strings"
)

// ClientName returns a program's common name from its User-Agent.
func ClientName(client string) string {
	if IsBrowser(client) {
		return BrowserName(client)
	}
	return client
}

// IsBrowser reports whether a User-Agent is that of a browser.
func IsBrowser(client string) bool { return strings.HasPrefix(client, "Mozilla/") }
