package naming_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// anna and ben are users; the rows of their projects follow.
const (
	anna, ben = 1, 2

	annasApollo, annasBoat, bensApollo, bensGarden, bensSecret = 1, 2, 3, 4, 5
)

// open returns a store in which anna has two projects, and reads or writes in two of ben's three.
func open(t *testing.T) db.DB {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "names.db"),
		ApplicationID: 1, Migrations: sqlite.Migrations(), Hashed: kernel.KeepHashes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	write(t, store, func(tx db.Tx) error {
		for id, name := range map[int]string{anna: "anna", ben: "ben"} {
			if _, err := tx.Exec(`INSERT INTO users (id, uid, name, name_key, created_at) VALUES (?, ?, ?, ?, 1)`, id, "u-"+name,
				name, name); err != nil {
				return err
			}
		}
		for _, p := range []struct {
			row, owner int
			id, name   string
		}{
			{annasApollo, anna, "apollo", "Apollo"}, {annasBoat, anna, "boat", "Boat"},
			{bensApollo, ben, "apollo", "Apollo"}, {bensGarden, ben, "garden", "Garden"}, {bensSecret, ben, "secret", "Boats"},
		} {
			if _, err := tx.Exec(`INSERT INTO project (id, owner_id, uid, name, name_key, created_at, updated_at)
				VALUES (?, ?, ?, ?, ?, 1, 1)`, p.row, p.owner, p.id, p.name, foldname.Key(p.name)); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at)
			VALUES (?, ?, 'reader', 10), (?, ?, 'writer', 10)`, bensApollo, anna, bensGarden, anna)
		return err
	})
	return store
}

func write(t *testing.T, store db.DB, fn func(db.Tx) error) {
	t.Helper()
	if err := store.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, store db.DB, fn func(db.Tx) error) error {
	t.Helper()
	return store.Read(t.Context(), fn)
}

func TestProjectsAreFoundAsCallersNameThem(t *testing.T) {
	store := open(t)
	for _, test := range []struct {
		viewer   kernel.Viewer
		id, name string
		want     int64  // 0: unknown
		err      string // part of the message
	}{
		{viewer: kernel.Viewer{User: anna}, id: "apollo", want: annasApollo},
		{viewer: kernel.Viewer{User: anna}, name: "Apollo", want: annasApollo},
		{viewer: kernel.Viewer{User: anna}, name: " ａＰＯＬＬＯ ", want: annasApollo},
		{viewer: kernel.Viewer{User: anna}, id: "u-ben/apollo", want: bensApollo},
		{viewer: kernel.Viewer{User: anna}, id: "ben/apollo", want: bensApollo},
		{viewer: kernel.Viewer{User: anna}, id: "garden", name: "garden", want: bensGarden},
		{viewer: kernel.Viewer{User: anna}, name: "Boats"},
		{viewer: kernel.Viewer{User: anna}, id: "secret"},
		{viewer: kernel.Viewer{User: anna}, id: "ben/secret"},
		{viewer: kernel.Viewer{User: ben}, name: "Boats", want: bensSecret},
		{viewer: kernel.Viewer{User: ben}, id: "anna/boat"},
		{viewer: kernel.Viewer{User: anna, Limited: true, Projects: []int64{bensApollo}}, name: "apollo", want: bensApollo},
		{viewer: kernel.Viewer{User: anna, Limited: true, Projects: []int64{bensApollo}}, id: "boat"},
		{viewer: kernel.Viewer{User: anna}, id: "boat", name: "Apollo", err: "disagree: that project is named \"Boat\""},
		{viewer: kernel.Viewer{User: anna}, id: "new", name: "Garden", err: `has the id "u-ben/garden"`},
	} {
		var found *naming.Project
		err := read(t, store, func(tx db.Tx) (err error) {
			found, err = naming.Find(tx, test.viewer, test.id, test.name)
			return err
		})
		var row int64
		if found != nil {
			row = found.Row
		}
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%+v, id %q, name %q: got %v, want %s", test.viewer, test.id, test.name, err, test.err)
			}
		} else if err != nil || row != test.want {
			t.Errorf("%+v, id %q, name %q: got project %d, %v; want %d", test.viewer, test.id, test.name, row, err, test.want)
		}
	}
}

// A former name leads to its project. Members may only use it if they were members when the project had it.
func TestFormerNamesLeadToTheirProject(t *testing.T) {
	store := open(t)
	write(t, store, func(tx db.Tx) error { return naming.Rename(tx, naming.Project{Row: annasBoat}, "Ship", 20) })
	write(t, store, func(tx db.Tx) error { return naming.Rename(tx, naming.Project{Row: bensGarden}, "Park", 5) })
	write(t, store, func(tx db.Tx) error { return naming.Rename(tx, naming.Project{Row: bensGarden}, "Meadow", 20) })
	for name, want := range map[string]struct {
		row    int64
		former string
	}{"Ship": {annasBoat, ""}, "boat": {annasBoat, "Boat"}, "Meadow": {bensGarden, ""}, "PARK": {bensGarden, "Park"},
		"Garden": {}} {
		var found *naming.Project
		err := read(t, store, func(tx db.Tx) (err error) {
			found, err = naming.Find(tx, kernel.Viewer{User: anna}, "", name)
			return err
		})
		if found == nil {
			found = &naming.Project{}
		}
		if err != nil || found.Row != want.row || found.Former != want.former {
			t.Errorf("%q: got project %d by its former name %q, %v; want %d by %q", name, found.Row, found.Former, err, want.row,
				want.former)
		}
		if noted := len(found.Notes()) > 0; noted != (want.former != "") {
			t.Errorf("%q: got the notes %q, want some only for a former name", name, found.Notes())
		}
	}
}

func TestANameWithTwoProjectsListsBoth(t *testing.T) {
	store := open(t)
	write(t, store, func(tx db.Tx) error {
		if _, err := tx.Exec(`DELETE FROM project WHERE id = ?`, annasApollo); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO users (id, uid, created_at) VALUES (3, 'carl', 1)`); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO project (id, owner_id, uid, name, name_key, created_at, updated_at)
			VALUES (6, 3, 'apollo', 'APOLLO', 'apollo', 1, 1)`); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (6, ?, 'reader', 1)`,
			anna)
		return err
	})
	for _, id := range []string{"apollo", ""} {
		err := read(t, store, func(tx db.Tx) error {
			_, err := naming.Find(tx, kernel.Viewer{User: anna}, id, map[bool]string{true: "apollo"}[id == ""])
			return err
		})
		var known *fault.Error
		if !errors.As(err, &known) || known.Kind != fault.KindInvalid || !strings.Contains(known.Message, "u-ben/apollo") ||
			!strings.Contains(known.Message, "carl/apollo") {
			t.Errorf("id %q: got %v, want an error with both projects", id, err)
		}
	}
}

// A name with a typo in a visible name is probably a mistake. Names that cannot be seen are never suggested.
func TestNearNamesAreOfferedAmongVisibleProjects(t *testing.T) {
	store := open(t)
	for name, want := range map[string][]string{"Gardn": {`"Garden" (project_id "u-ben/garden")`}, "Appolo": {
		`"Apollo" (project_id "apollo")`, `"Apollo" (project_id "u-ben/apollo")`}, "Boatss": nil, "Rocket": nil} {
		var warnings []string
		write(t, store, func(tx db.Tx) error {
			made, err := db.Insert(tx, `INSERT INTO project (owner_id, uid, name, name_key, created_at, updated_at)
				VALUES (?, ?, ?, ?, 1, 1) RETURNING id`, anna, name, name, foldname.Key(name))
			if err == nil {
				warnings, err = naming.Near(tx, kernel.Viewer{User: anna}, made)
			}
			if err == nil {
				_, err = tx.Exec(`DELETE FROM project WHERE id = ?`, made)
			}
			return err
		})
		got := strings.Join(warnings, "\n")
		if (len(warnings) > 0) != (len(want) > 0) || strings.Contains(got, "secret") ||
			slices.ContainsFunc(want, func(name string) bool { return !strings.Contains(got, name) }) {
			t.Errorf("%q: got %q, want %q", name, warnings, want)
		}
	}
}

func TestOnlyMembersWhoMayWritePass(t *testing.T) {
	for role, allowed := range map[string]bool{"reader": false, "writer": true, "owner": true} {
		p := naming.Project{UID: "p", Owner: "u-ben", Role: role}
		var known *fault.Error
		if err := p.CheckWritable(); (err == nil) != allowed || err != nil && (!errors.As(err, &known) ||
			known.Kind != fault.KindForbidden || !strings.Contains(known.Message, "u-ben/p")) {
			t.Errorf("%s: got %v, want it allowed, or ErrForbidden with the project's name", role, err)
		}
	}
}
