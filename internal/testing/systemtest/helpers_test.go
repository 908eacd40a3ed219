package systemtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// filesIn lists the files in a folder.
func filesIn(tb testing.TB, folder string) (all []string) {
	tb.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// methodsOf returns the methods of a store and of its handles, by name. A method without arguments that returns a
// pointer returns a handle, so none is left out. Method names are unique.
func methodsOf(s *Store) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	var add func(handle reflect.Value)
	add = func(handle reflect.Value) {
		for i := range handle.NumMethod() {
			name, method := handle.Type().Method(i).Name, handle.Method(i)
			if kind := method.Type(); kind.NumIn() == 0 && kind.NumOut() == 1 &&
				kind.Out(0).Kind() == reflect.Pointer && kind.Out(0) != reflect.TypeFor[*Store]() {
				add(method.Call(nil)[0])
				continue
			}
			if name == "Conversation" { // also a handle
				add(reflect.ValueOf(s.Conversation("a talk", ConversationPlace{ProjectID: "p"})))
			}
			if found[name].IsValid() {
				panic("two handles have a method " + name)
			}
			found[name] = method
		}
	}
	add(reflect.ValueOf(s))
	return found
}

func isAny(err error, kinds ...error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

func mustAddFile(tb testing.TB, s *Store, f NewFile, content string) File {
	tb.Helper()
	added, err := s.AddFile(context.Background(), f, strings.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	return added
}

// fileNames returns the names of all visible files, sorted.
func fileNames(tb testing.TB, s *Store, l FileList) []string {
	tb.Helper()
	var names []string
	for f, err := range s.Files(context.Background(), l) {
		if err != nil {
			tb.Fatal(err)
		}
		names = append(names, f.Filename)
	}
	slices.Sort(names)
	return names
}

// byHand makes an export of handmade lines.
func byHand(lines ...string) string {
	return `{"souvenir":"export","version":1}` + "\n" + strings.Join(lines, "\n") + "\n"
}

func mustInvite(t *testing.T, s *Store, n NewInvitation) AddedInvitation {
	t.Helper()
	added, err := s.Accounts().AddInvitation(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// content returns a pointer, as UpdateMemory wants it.
func content(s string) *string { return &s }

const (
	testIssuer   = "https://memory.example"
	testResource = "https://memory.example/mcp"
	testCallback = "https://app.example/callback"
)

func mustAuthorize(tb testing.TB, s *Store, c RegisteredClient) CodeExchange {
	tb.Helper()
	code, err := s.Accounts().Authorize(context.Background(),
		Authorization{ClientID: c.ID, RedirectURI: testCallback, Scopes: []Scope{ScopeMemoryWrite}})
	if err != nil {
		tb.Fatal(err)
	}
	return CodeExchange{Client: ClientCredentials{ID: c.ID, Secret: c.Secret}, Code: code.Code, RedirectURI: testCallback,
		Issuer: testIssuer, Audience: testResource}
}

// mustLetIn authorizes a client and returns its tokens and the request that refreshes them.
func mustLetIn(tb testing.TB, s, view *Store, c RegisteredClient) (TokenSet, TokenRefresh) {
	tb.Helper()
	x := mustAuthorize(tb, view, c)
	t, err := s.Accounts().ExchangeCode(context.Background(), x)
	if err != nil {
		tb.Fatal(err)
	}
	return t, TokenRefresh{Client: x.Client, RefreshToken: t.RefreshToken, Issuer: testIssuer, Audience: testResource}
}

func checkOf(token string) AccessTokenCheck {
	return AccessTokenCheck{Token: token, Issuer: testIssuer, Audience: []string{testResource}}
}

func mustAddUser(t *testing.T, s *Store, n NewUser) User {
	t.Helper()
	u, err := s.Accounts().AddUser(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mustAddProject(t *testing.T, s *Store, n NewProject) Project {
	t.Helper()
	p, err := s.AddProject(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// five returns the five headings alone, some of them replaced.
func five(instead map[Section]string) string {
	var b strings.Builder
	for _, s := range []Section{SectionConstitution, SectionSpec, SectionPlan, SectionTasks, SectionGaps} {
		heading, replaced := instead[s]
		if !replaced {
			heading = s.Heading()
		}
		b.WriteString(heading + "\n")
	}
	return b.String()
}

func mustAddSignIn(t *testing.T, s *Store, n NewSignIn) AddedSignIn {
	t.Helper()
	added, err := s.Accounts().AddSignIn(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func mustAddCollection(tb testing.TB, s *Store, c NewCollection) {
	tb.Helper()
	if _, err := s.AddCollection(context.Background(), c); err != nil {
		tb.Fatal(err)
	}
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return content
}

func writeFile(tb testing.TB, path string, content []byte) {
	tb.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
}

func exported(tb testing.TB, s *Store, o ExportOptions) []byte {
	tb.Helper()
	var out bytes.Buffer
	if _, err := s.Upkeep().Export(context.Background(), &out, &o); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}
