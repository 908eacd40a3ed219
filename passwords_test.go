package souvenir

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/passwords"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// setHash stores a given password hash, as a file from elsewhere may have it.
func setHash(t *testing.T, s *Store, user, hash string) {
	t.Helper()
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE users SET password = ? WHERE uid = ?`, hash, user)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hashOf(t *testing.T, s *Store, user string) string {
	t.Helper()
	var found []storedUser
	err := s.db.Read(t.Context(), func(tx db.Tx) (err error) {
		found, err = loadUsers(tx, `u.uid = ?`, user)
		return err
	})
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v %v, want no error and one", found, err)
	}
	return found[0].password
}

func mustAddUser(t *testing.T, s *Store, n NewUser) User {
	t.Helper()
	u, err := s.Accounts().AddUser(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestPasswordsAreHashedWithArgon2idAsOWASPSays(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "p.db"), Options{})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann", Password: "the same password"})
	mustAddUser(t, s, NewUser{ID: "ben", Name: "ben", Password: "the same password"})
	cost := "$argon2id$v=19$m=8,t=1,p=1$" // of the short tests; internal/auth/passwords also tests the real cost
	if longtest.On() {
		cost = "$argon2id$v=19$m=19456,t=2,p=1$"
	}
	a, b := hashOf(t, s, "ann"), hashOf(t, s, "ben")
	for _, hash := range []string{a, b} {
		parts := strings.Split(strings.TrimPrefix(hash, cost), "$")
		if len(parts) != 2 || len(parts[0]) != 22 || len(parts[1]) != 43 { // 16 and 32 bytes in base64
			t.Errorf("hash is %q, want 2 parts of 22 and 43 characters", hash)
		}
	}
	if a == b {
		t.Errorf("two users with one password have the same hash, got %v, want one other than %v", a, b)
	}
}

// The hashes are from the tests of the reference implementation (phc-winner-argon2, src/test.c). Which hashes are weak
// is tested in internal/auth/passwords, also in the short tests.
func TestForeignPasswordHashesVerifyAndWeakOnesAreRenewed(t *testing.T) {
	longtest.Only(t) // in the short tests new hashes are weaker than any
	const (
		strong = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
		weak   = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	)
	path := filepath.Join(t.TempDir(), "p.db")
	s := openWords(t, path, Options{})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
	signIn := func(s *Store, password string) error {
		_, err := s.Accounts().CheckPassword(t.Context(), Credentials{Name: "ann", Password: password})
		return err
	}
	setHash(t, s, "ann", strong)
	if err := signIn(s, "password"); err != nil || hashOf(t, s, "ann") != strong {
		t.Errorf("a strong one: %v, then %s; want %v", err, hashOf(t, s, "ann"), strong)
	}
	setHash(t, s, "ann", weak)
	if err := signIn(s, "passwort"); !errors.Is(err, ErrUnauthenticated) || hashOf(t, s, "ann") != weak {
		t.Errorf("a wrong password: %v, then %s; want %v", err, hashOf(t, s, "ann"), weak)
	}
	if err := signIn(openWords(t, path, Options{ReadOnly: true}), "password"); err != nil || hashOf(t, s, "ann") != weak {
		t.Errorf("for reading only: %v, then %s; want %v", err, hashOf(t, s, "ann"), weak)
	}
	if err := signIn(s, "password"); err != nil || !strings.Contains(hashOf(t, s, "ann"), "m=19456,t=2") {
		t.Errorf("a weak one: %v, then %s; want in it \"m=19456,t=2\"", err, hashOf(t, s, "ann"))
	}
	if err := signIn(s, "password"); err != nil {
		t.Errorf("with the renewed one: %v", err)
	}
}

func TestDamagedHashesAreErrorsAndExhaustNothing(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "p.db"), Options{})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
	const tail = "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if err := passwords.CheckHash("$argon2id$v=19$m=65536,t=2,p=1" + tail); err != nil {
		t.Fatal("the undamaged one:", err)
	}
	for _, hash := range []string{
		"x", "$", "$$$$$", "password", "$argon2i$v=19$m=65536,t=2,p=1" + tail, "$argon2id$v=16$m=65536,t=2,p=1" + tail,
		"$argon2id$v=19$m=65536,t=2" + tail,
		"$argon2id$v=19$m=4294967295,t=2,p=1" + tail, "$argon2id$v=19$m=65536,t=4294967295,p=1" + tail,
		"$argon2id$v=19$m=65536,t=2,p=256" + tail,
		"$argon2id$v=19$m=1048576,t=2,p=1" + tail, "$argon2id$v=19$m=65536,t=64,p=1" + tail,
		"$argon2id$v=19$m=65536,t=2,p=64" + tail,
		"$argon2id$v=19$m=65536,t=0,p=1" + tail, "$argon2id$v=19$m=65536,t=2,p=0" + tail, "$argon2id$v=19$m=0,t=2,p=1" + tail,
		"$argon2id$v=19$m=-1,t=2,p=1" + tail,
		"$argon2id$v=19$m=65536,t=2,p=1 " + tail, "$argon2id$v=19$m=65536,t=2,p=1$$", "$argon2id$v=19$m=65536,t=2,p=1$!$!",
		"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$!",
		"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$", "$argon2id$v=19$m=65536,t=2,p=1" + tail + tail,
		"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$" + strings.Repeat("A", 1000),
	} {
		setHash(t, s, "ann", hash)
		_, err := s.Accounts().CheckPassword(t.Context(), Credentials{Name: "ann", Password: "password"})
		if !errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), "CTFhFd") {
			t.Errorf(`%s gives %v, want ErrCorrupt and no "CTFhFd" in the error`, hash, err)
		}
	}
}

// The duration of a sign-in must not reveal which accounts exist: each failure takes the work of a hash.
func TestFailedSignInsDoTheSameWork(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "p.db"), Options{})
	mustAddUser(t, s, NewUser{Name: "ann", Password: "right password"})
	mustAddUser(t, s, NewUser{Name: "nopassword"})
	mustAddUser(t, s, NewUser{Name: "off", Password: "right password"})
	off := true
	if _, err := s.Accounts().UpdateUser(t.Context(), "off", UserUpdate{Disabled: &off}); err != nil {
		t.Fatal(err)
	}
	for range cap(s.hashing) { // every slot is taken, so another hash has to wait
		s.hashing <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for _, c := range []Credentials{
		{"ann", "wrong password"}, {"ann", ""}, {"ann", "\xff"}, {"ann", strings.Repeat("x", 1<<20)},
		{"noah", "right password"}, {"", ""},
		{"nopassword", "right password"}, {"off", "right password"}, {strings.Repeat("x", 1<<20), "right password"},
		{"ann", "right password"},
	} {
		if _, err := s.Accounts().CheckPassword(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%.20q with %.20q is answered without hashing: %v, want context.DeadlineExceeded", c.Name, c.Password, err)
		}
	}
	<-s.hashing
	if _, err := s.Accounts().CheckPassword(t.Context(), Credentials{"ann", "right password"}); err != nil {
		t.Errorf("with room for one: %v", err)
	}
	for range cap(s.hashing) - 1 {
		<-s.hashing
	}
}

func TestPasswordThatChangesWhileItIsBeingChangedIsAConflict(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "p.db"), Options{})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann", Password: "right password"})
	view := s.As(Access{User: "ann"})
	outcomes := make(chan error)
	for range 4 {
		go func() {
			outcomes <- view.Accounts().ChangePassword(t.Context(),
				PasswordChange{Old: "right password", New: "another password"})
		}()
	}
	changed := 0
	for range 4 {
		switch err := <-outcomes; {
		case err == nil:
			changed++
		case !isAny(err, ErrConflict, ErrUnauthenticated):
			t.Error(err)
		}
	}
	if changed != 1 {
		t.Errorf("%d of 4 callers with the old password changed it, want 1", changed)
	}
}

func TestEasyPasswordsStillSignInAndCannotBeSet(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "p.db"), Options{})
	mustAddUser(t, s, NewUser{ID: "ann", Name: "ann"})
	easy := "sunshine99"
	_, added := s.Accounts().AddUser(t.Context(), NewUser{Name: "ben", Password: easy})
	_, updated := s.Accounts().UpdateUser(t.Context(), "ann", UserUpdate{Password: &easy})
	changed := s.As(Access{User: "ann"}).Accounts().ChangePassword(t.Context(), PasswordChange{New: easy})
	for err, argument := range map[error]string{added: "password", updated: "password", changed: "new_password"} {
		var known *Error
		if !errors.As(err, &known) || !errors.Is(err, ErrInvalid) || known.Argument != argument ||
			strings.Contains(err.Error(), easy) ||
			!strings.Contains(err.Error(), "a common password with little added") {
			t.Errorf("got %v, want ErrInvalid about %s, without the password", err, argument)
		}
	}
	// A hash as a store of an earlier version may hold.
	setHash(t, s, "ann", "$argon2id$v=19$m=19456,t=2,"+
		"p=1$1mDq33QXCq4E1o9COKfTXg$pNdy0Kl8qCUKx9q/29o21wDeSDzdOooLTdLvJTLlcMg")
	if _, err := s.Accounts().CheckPassword(t.Context(), Credentials{Name: "ann", Password: easy}); err != nil {
		t.Errorf("signing in gives %v", err)
	}
}

// secretFields are the names of fields that hold secrets.
var secretFields = []string{"Password", "Old", "New", "Value", "Secret", "Code", "Verifier", "AccessToken",
	"RefreshToken", "Token", "Mark"}

// withSecrets returns a value of each type with secret fields, with a secret in each of them.
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

// If a type gets a secret field, it must hide the field when printed, and be added to withSecrets.
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
