package conventions

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// namesUser matches SQL that finds a user by an id or a name from the caller.
var namesUser = regexp.MustCompile(`(FROM|JOIN|UPDATE) users\b[^;]*[^j.]\b(uid|name_key) (=|<>|IN|LIKE) ?[(?]|` +
	`\b[uos]\.(uid|name_key) (=|<>|IN|LIKE) ?[(?]`)

// Ids and names of users are unique within a namespace, not within the file. A statement that finds one without its
// namespace could find the user of another application.
func TestUsersAreFoundWithinANamespace(t *testing.T) {
	atRoot(t)
	elsewhere := []string{
		"naming.go",   // OWNER/ID among the visible projects, all of one namespace
		"accounts.go", // setAccount writes the row it is given
		"users.go",    // UserPage adds the condition to each of its queries
		"kinds.go",    // an import adds the condition to the key of each record
		"projectkinds.go",
		"mend.go", // recovery creates the local user for rows that have lost their owner
	}
	found := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch slashed := filepath.ToSlash(path); {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"internal/sqlite", "internal/db", "cmd", "server", "mcpserver",
			"tools",
			"examples", "bench", "eval", "e2e", "otel", "embedders", ".git", ".ci"}, slashed):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parse(path)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			text := ""
			if ok {
				text = joined(e, "")
			}
			if !namesUser.MatchString(text) {
				return true
			}
			found++
			if !strings.Contains(text, "namespace") && !slices.Contains(elsewhere, filepath.Base(path)) {
				t.Errorf("%s: got %s, want a condition on the namespace", path, text)
			}
			return false
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 30 {
		t.Errorf("got %d statements that name users, want at least 30: has the spelling changed?", found)
	}
}

// joined returns the text of a string literal or of several joined by +, with another in place of each part that is no
// literal.
func joined(e ast.Expr, other string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return joined(e.X, other) + joined(e.Y, other)
		}
	}
	return other
}
