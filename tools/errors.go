package tools

import (
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// MissingScope is the cause of ErrForbidden if the credential of a call does not carry the required scope. Get it with
// errors.As.
type MissingScope struct {
	Scope souvenir.Scope // the required scope
}

// Error names the scope.
func (m *MissingScope) Error() string { return "missing scope " + string(m.Scope) }

func missingScope(call string, scope souvenir.Scope) error {
	return fault.NeedsScope(call, string(scope), &MissingScope{scope})
}

func readOnly(call string) error {
	return &souvenir.Error{
		Kind:    souvenir.KindReadOnly,
		Message: call + " changes something, but these tools are read-only; tell the user what you would have stored",
	}
}
