package souvenir

import (
	"fmt"
	"reflect"
	"slices"
)

// What holds a secret prints without it, with every verb of fmt: values end up in messages and logs by mistake. As JSON they are
// what they are.

// formatWithout prints a struct as %+v does, with some of its fields hidden.
func formatWithout(f fmt.State, value any, hidden ...string) {
	v := reflect.ValueOf(value)
	_, _ = fmt.Fprint(f, "{")
	for i := range v.NumField() {
		name, separator := v.Type().Field(i).Name, " "
		if i == 0 {
			separator = ""
		}
		if slices.Contains(hidden, name) && !v.Field(i).IsZero() {
			_, _ = fmt.Fprintf(f, "%s%s:[hidden]", separator, name)
		} else {
			_, _ = fmt.Fprintf(f, "%s%s:%+v", separator, name, v.Field(i).Interface())
		}
	}
	_, _ = fmt.Fprint(f, "}")
}

// Format prints the credentials without the password.
func (c Credentials) Format(f fmt.State, _ rune) { formatWithout(f, c, "Password") }

// Format prints the change without the passwords.
func (c PasswordChange) Format(f fmt.State, _ rune) { formatWithout(f, c, "Old", "New") }

// Format prints the user without the password.
func (n NewUser) Format(f fmt.State, _ rune) { formatWithout(f, n, "Password") }

// Format prints the acceptance without the invitation's value and the password.
func (a InvitationAcceptance) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value", "Password") }

// Format prints the invitation without its value.
func (a AddedInvitation) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value") }

// Format prints the session without its value.
func (a AddedSession) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value") }

// Format prints the token without its value.
func (a AddedToken) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value") }

// Format prints the client without its secret.
func (n NewClient) Format(f fmt.State, _ rune) { formatWithout(f, n, "Secret") }

// Format prints the client without its secret.
func (c RegisteredClient) Format(f fmt.State, _ rune) { formatWithout(f, c, "Secret") }

// Format prints the credentials without the secret.
func (c ClientCredentials) Format(f fmt.State, _ rune) { formatWithout(f, c, "Secret") }

// Format prints the answer without the code.
func (a AuthorizationCode) Format(f fmt.State, _ rune) { formatWithout(f, a, "Code") }

// Format prints the request without code, verifier and the client's secret.
func (x CodeExchange) Format(f fmt.State, _ rune) { formatWithout(f, x, "Code", "Verifier") }

// Format prints the request without the refresh token and the client's secret.
func (r TokenRefresh) Format(f fmt.State, _ rune) { formatWithout(f, r, "RefreshToken") }

// Format prints the request without the token and the client's secret.
func (r Revocation) Format(f fmt.State, _ rune) { formatWithout(f, r, "Token") }

// Format prints the answer without the tokens.
func (t TokenSet) Format(f fmt.State, _ rune) { formatWithout(f, t, "AccessToken", "RefreshToken") }

// Format prints the check without the token.
func (c AccessTokenCheck) Format(f fmt.State, _ rune) { formatWithout(f, c, "Token") }
