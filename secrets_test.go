package souvenir

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// secretFields are the names that fields with secrets have.
var secretFields = []string{"Password", "Old", "New", "Value", "Secret", "Code", "Verifier", "AccessToken",
	"RefreshToken", "Token", "Mark"}

// withSecrets are values of all types that hold secrets, one in each such field.
func withSecrets() []any {
	client := ClientCredentials{ID: "shown", Secret: "s3cr3t"}
	return []any{
		Credentials{"shown", "s3cr3t"}, PasswordChange{"s3cr3t", "s3cr3t", "shown", nil},
		NewUser{Name: "shown", Password: "s3cr3t"},
		InvitationAcceptance{Value: "s3cr3t", Password: "s3cr3t", Name: "shown"},
		AddedInvitation{Invitation{ID: "shown"}, "s3cr3t"}, AddedSignIn{SignIn{ID: "shown"}, "s3cr3t", "s3cr3t"},
		AddedToken{Token{ID: "shown"}, "s3cr3t"}, NewClient{ID: "shown", Secret: "s3cr3t"},
		RegisteredClient{Client{ID: "shown"}, "s3cr3t"}, client,
		AuthorizationCode{Code: "s3cr3t", GrantID: "shown"}, CodeExchange{Client: client, Code: "s3cr3t", Verifier: "s3cr3t"},
		TokenRefresh{Client: client, RefreshToken: "s3cr3t"},
		Revocation{client, "s3cr3t"}, TokenSet{AccessToken: "s3cr3t", RefreshToken: "s3cr3t", Scope: "shown"},
		AccessTokenCheck{Token: "s3cr3t", Issuer: "shown"}, BrowserCheck{"shown", "s3cr3t"},
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	for _, value := range withSecrets() {
		pointer := reflect.New(reflect.TypeOf(value))
		pointer.Elem().Set(reflect.ValueOf(value))
		for _, shown := range []any{value, pointer.Interface(), []any{value}, struct{ Inner any }{value}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				got := fmt.Sprintf(verb, shown)
				if strings.Contains(got, "s3cr3t") || strings.Contains(got, fmt.Sprintf("%x", "s3cr3t")) ||
					!strings.Contains(got, "[hidden]") {
					t.Errorf(`%s of %T gives %s, want no "s3cr3t" in it, no %q in it and "[hidden]" in it`, verb, value, got,
						fmt.Sprintf("%x", "s3cr3t"))
				}
			}
		}
		if got := fmt.Sprint(value); !strings.Contains(got, "shown") {
			t.Errorf("%T gives %s, which shows nothing; want in it \"shown\"", value, got)
		}
	}
	if got := fmt.Sprintf("%v", NewUser{Name: "ann"}); !strings.HasPrefix(got, "{ID: Name:ann Email: Role: Password: ") ||
		strings.Contains(got, "[hidden]") {
		t.Errorf(`without a password: %s, want "{ID: Name:ann Email: Role: Password: " at the beginning of it and no `+
			`"[hidden]" in it`, got)
	}
}

// A type that gets a field with a secret must be printed without it, and the test above must cover the type.
func TestEveryTypeWithASecretHidesIt(t *testing.T) {
	tested := map[string]bool{}
	for _, value := range withSecrets() {
		tested[reflect.TypeOf(value).Name()] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range structure.Fields.List {
				if kind, ok := field.Type.(*ast.Ident); !ok || kind.Name != "string" {
					continue // a pointer prints as an address
				}
				for _, name := range field.Names {
					if slices.Contains(secretFields, name.Name) && spec.Name.Name != "OAuthError" {
						if found++; !tested[spec.Name.Name] {
							t.Errorf("%s has the field %s; print it without that (secrets.go), and add it to withSecrets", spec.Name.Name,
								name.Name)
						}
					}
				}
			}
			return false
		})
	}
	if found < len(tested) {
		t.Errorf("%d fields with secrets are found; the test looks at nothing, want at least %v", found, len(tested))
	}
}
