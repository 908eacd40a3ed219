package server

import "github.com/souvenir-ai/souvenir/server/internal/signin"

// SetupPath is the path, under the public URL, of the page on which the holder of an invitation for the first
// account creates it.
func SetupPath(value string) string { return signin.SetupPath(value) }

// InvitePath is the path, under the public URL, of the page on which the holder of an invitation creates an
// account.
func InvitePath(value string) string { return signin.InvitePath(value) }
