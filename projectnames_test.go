package souvenir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// before has the migrations before the one of a name.
type before struct {
	fs.FS
	name string
}

func (f before) Glob(pattern string) ([]string, error) {
	names, err := fs.Glob(f.FS, pattern)
	if strings.HasPrefix(pattern, "schema/") {
		return nil, err // the older program had none for new files
	}
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, f.name) })
	return names[:i], err
}

func TestProjectsFromBeforeNamesWereFoldedAreFoundByAnyForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	config := fileConfig(path, sealedClock)
	config.Migrations, config.Fill = before{sqlite.Migrations(), "_project_names.sql"}, nil
	file, err := sqlite.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 120)
	err = file.Write(t.Context(), func(tx db.Tx) error {
		return tx.(*sqlite.Tx).ExecScript(`INSERT INTO user (id, uid, created_at, name, name_key)
			VALUES (1, 'local', 1, NULL, NULL), (2,
			'u2', 1, 'ꭰꭰ', 'ꭰꭰ');
			INSERT INTO project (owner_id, uid, name, created_at, updated_at) VALUES (1, 'p1', 'Apollo', 1, 1), (1, 'p2',
			'apollo', 1, 1), (1, 'p3', '订单　服务', 1, 1),
				(1, 'p4', char(0x200b), 1, 1), (1, '` + long + `1', 'APOLLO 2', 1, 1), (1, '` + long + `2', 'apollo  2', 1, 1)`)
	})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	s := openWords(t, path, Options{})
	for name, id := range map[string]string{"Apollo": "p1", "apollo": "p2", "订单 服务": "p3"} {
		if p, err := s.GetProject(t.Context(), ProjectRef{Name: name}); err != nil || p.ID != id {
			t.Errorf("%q is %+v, %v; want %s", name, p, err, id)
		}
	}
	for name, ids := range map[string][]string{"APOLLO": {`"p1"`, `"p2"`},
		"Apollo 2": {`"` + long + `1"`, `"` + long + `2"`}} {
		_, err := s.GetProject(t.Context(), ProjectRef{Name: name})
		for _, id := range ids {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), id) {
				t.Errorf("%q, which two have, gives %v; want both ids whole", name, err)
			}
		}
	}
	if p, err := s.GetProject(t.Context(), ProjectRef{ID: "p4"}); err != nil || p.Name != "\u200b" {
		t.Errorf("one whose name cannot be seen is %+v, %v; want name \"\u200b\"", p, err)
	}
	if _, err := s.UpdateProject(t.Context(), ProjectRef{ID: "p2"}, ProjectUpdate{Name: new("Gemini")}); err != nil {
		t.Error(err)
	}
	if p, err := s.GetProject(t.Context(), ProjectRef{Name: "apollo"}); err != nil || p.ID != "p1" {
		t.Errorf("when one of the two has another name, it is %+v, %v; want ID \"p1\"", p, err)
	}
	if u, err := s.Accounts().GetUser(t.Context(), "ᎠᎠ"); err != nil || u.ID != "u2" {
		t.Errorf("a user whose name was folded wrongly is %+v, %v; want ID \"u2\"", u, err)
	}
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

func TestCheckFindsNamesThatAreLookedUpAsOthers(t *testing.T) {
	s := openWords(t, "", Options{})
	mustAddProject(t, s, NewProject{ID: "p", Name: "Apollo"})
	if _, err := s.UpdateProject(t.Context(), ProjectRef{ID: "p"}, ProjectUpdate{Name: new("Artemis")}); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"project", "project_alias"} {
		damage(t, s, fmt.Sprintf(`UPDATE %s SET name_key = 'x'`, table))
		if report := mustCheck(t, s, nil); !slices.ContainsFunc(report.Findings,
			func(f Finding) bool { return f.Table == table && strings.Contains(f.Problem, "folded") }) {
			t.Errorf("%s: got %+v, want a finding about the folded name", table, report)
		}
	}
}
