package web

import (
	"strings"
)

// ClientName is what people call a program that says of itself what it does in User-Agent.
func ClientName(client string) string {
	if IsBrowser(client) {
		return BrowserName(client)
	}
	return client
}

// IsBrowser reports whether a program says of itself what browsers do.
func IsBrowser(client string) bool { return strings.HasPrefix(client, "Mozilla/") }
