package web

import (
	"crypto/sha256"
	"encoding/hex"
)

// Snippet is how a client is connected: a text to paste. It is the Snippet of package server.
type Snippet struct {
	Client string // its name, such as Claude Code
	Where  string // where the text goes
	Text   string // to paste
}

// ID is the id of the text on a page.
func (s Snippet) ID() string {
	sum := sha256.Sum256([]byte(s.Client))
	return "paste-" + hex.EncodeToString(sum[:4])
}
