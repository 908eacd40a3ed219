package server

import (
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// clientName is what people call a program that says of itself what it does in User-Agent.
func clientName(client string) string {
	if isBrowser(client) {
		return web.BrowserName(client)
	}
	return client
}

// isBrowser reports whether a program says of itself what browsers do.
func isBrowser(client string) bool { return strings.HasPrefix(client, "Mozilla/") }
