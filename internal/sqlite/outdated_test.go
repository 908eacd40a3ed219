package sqlite

import (
	"maps"
	"testing"
	"testing/fstest"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Once a newer process has migrated its file, an older process no longer writes: newer tables may need values that it
// does not write.
func TestAProcessWritesNoMoreWhenANewerOneHasMigratedItsFile(t *testing.T) {
	path := newFile(t)
	old := openTest(t, testConfig(path))
	must(t, old.Write(t.Context(), insert("before")))
	newer := testConfig(path)
	steps := maps.Clone(testMigrations)
	steps["0003_more.sql"] = &fstest.MapFile{Data: []byte(`ALTER TABLE item ADD COLUMN more TEXT;`)}
	newer.Migrations = steps
	d := openTest(t, newer)
	mustBe(t, old.Write(t.Context(), insert("by the old one")), db.ErrNewer)
	must(t, d.Write(t.Context(), insert("by the new one")))
	mustBe(t, old.Write(t.Context(), insert("again")), db.ErrNewer)
	if got := names(t, d); len(got) != 2 {
		t.Errorf("got the items %v, want two", got)
	}
}
