package server

import "github.com/souvenir-ai/souvenir/server/internal/signin"

// SetupPath is the path, behind the public URL, of the page on which somebody who holds the value of an invitation for
// the first account makes it.
func SetupPath(value string) string { return signin.SetupPath(value) }

// InvitePath is the path, behind the public URL, of the page on which somebody who holds the value of an invitation
// makes an account.
func InvitePath(value string) string { return signin.InvitePath(value) }
