package db_test

import (
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

func TestADialectPutsItsOwnTextInPlaceOfEach(t *testing.T) {
	d := db.NewDialect(2,
		`json_each(?1)`, `numbers($1)`, `json_each(?)`, `numbers(?)`,
		db.InOrder, `JOIN`, ` `+db.ByUpdated, ``)
	query := `SELECT m.id FROM ` + db.Numbered1 + ` r ` + db.InOrder + ` memory m ` + db.ByUpdated +
		` ON m.id = r.value WHERE m.id IN ` + db.Integers
	want := `SELECT m.id FROM (SELECT key, value FROM numbers($1)) r JOIN memory m ON m.id = r.value ` +
		`WHERE m.id IN (SELECT value FROM numbers(?))`
	for range 2 {
		if got := d.Translate(query); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for i := range 10 { // more than it remembers
		query := fmt.Sprintf(`SELECT %d`, i)
		if got := d.Translate(query); got != query {
			t.Errorf("got %s, want %s", got, query)
		}
	}
}

func TestAListIsOneArgument(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{db.List([]int64{3, -1}), `[3,-1]`},
		{db.List[int64](nil), `[]`},
		{db.List([]string{`a"b`, ""}), `["a\"b",""]`},
		{db.List[string](nil), `[]`},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}
