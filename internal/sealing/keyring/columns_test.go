package keyring_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/txcontext"
)

// columns is a database with the users ann, 1, and ben, 2, a table with a text and bytes, and user keys.
type columns struct {
	*testing.T
	ring  *keyring.Ring
	store *txcontext.DB
	bare  *txcontext.DB // without keys
}

func onColumns(t *testing.T, test func(c columns)) {
	run := func(t *testing.T, engine db.DB, err error, bytes string) {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close() })
		place := filepath.Join(t.TempDir(), "store.keys")
		ring := open(t, func(readOnly bool) (db.Keys, error) {
			return sqlite.OpenKeys(t.Context(), place, readOnly, nil)
		}, sealing.GenerateMasterKey(), time.Now)
		c := columns{t, ring, &txcontext.DB{DB: &sealedrows.DB{DB: engine, Sealing: ring}}, &txcontext.DB{DB: engine}}
		c.write(c.bare, func(tx db.Tx) error {
			return tx.(interface{ ExecScript(script string) error }).ExecScript(`CREATE TABLE person (id INTEGER);
				CREATE TABLE note (id INTEGER, text TEXT, data ` + bytes + `);
				INSERT INTO users (id, namespace, uid, created_at) VALUES (11, '', 'ann', 0), (12, '', 'ben', 0)`)
		})
		test(c)
	}
	t.Run("file", func(t *testing.T) {
		engine, err := sqlite.Open(t.Context(), sqlite.Config{ApplicationID: 77, Migrations: sqlite.Migrations(),
			Path: filepath.Join(t.TempDir(), "store.db")})
		run(t, engine, err, "BLOB")
	})
	t.Run("postgres", func(t *testing.T) {
		pgtest.Server(t)
		pgtest.NotOnCitus(t, "the table is made by hand")
		address := pgtest.Address(t)
		engine, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2, Now: time.Now})
		run(t, engine, err, "BYTEA")
	})
}

func (c columns) write(d db.DB, fn func(tx db.Tx) error) {
	c.Helper()
	if err := d.Write(c.Context(), fn); err != nil {
		c.Fatal(err)
	}
}

// add adds a text and bytes of a user.
func (c columns) add(id int, owner int64, text string, data []byte) {
	c.Helper()
	c.write(c.store, func(tx db.Tx) error {
		sealed, err := sealedrows.SealText(tx, owner, sealedrows.MemoryContent, text)
		if err != nil {
			return err
		}
		bytes, err := sealedrows.SealBytes(tx, owner, sealedrows.MemoryMetadata, data)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO note (id, text, data) VALUES (?, ?, ?)`, id, sealed, bytes)
		return err
	})
}

// read returns a row as read with keys, and as it is stored.
func (c columns) read(id int) (text string, data []byte, stored string, err error) {
	const query = `SELECT text, data FROM note WHERE id = ?`
	err = c.store.Read(c.Context(), func(tx db.Tx) error {
		var raw []byte
		if err := db.Stored(tx).QueryRow(query, id).Scan(&stored, &raw); err != nil {
			return err
		}
		stored += string(raw)
		return tx.QueryRow(query, id).Scan(&text, &data)
	})
	return text, data, stored, err
}

func (c columns) want(id int, text string, data []byte) (stored string) {
	c.Helper()
	gotText, gotData, stored, err := c.read(id)
	if err != nil || gotText != text || !bytes.Equal(gotData, data) {
		c.Errorf("row %d: got %q, %q and %v, want %q and %q", id, gotText, gotData, err, text, data)
	}
	return stored
}

func TestValuesAreSealedInTheirColumns(t *testing.T) {
	onColumns(t, func(c columns) {
		c.add(1, 11, "the gate of ann", []byte("4711"))
		c.add(2, 11, "", []byte{})
		c.add(3, 12, "门的密码", nil)
		stored := c.want(1, "the gate of ann", []byte("4711"))
		if strings.Contains(stored, "gate") || strings.Contains(stored, "4711") {
			t.Errorf("stored is %q, want it sealed", stored)
		}
		c.want(2, "", []byte{})
		c.want(3, "门的密码", nil)
		var kinds []any
		read := func(row db.Rows) error {
			var named struct{ text any }
			var optional *string
			err := row.Scan(&named.text, &optional)
			kinds = append(kinds, named.text, *optional)
			return err
		}
		err := c.store.Read(t.Context(), func(tx db.Tx) error {
			const query = `SELECT text, text FROM note WHERE id < 3 ORDER BY id`
			return errors.Join(tx.Each(read, query), db.Stream(tx, read, query))
		})
		want := []any{"the gate of ann", "the gate of ann", "", "", "the gate of ann", "the gate of ann", "", ""}
		for i := range want {
			if err != nil || i >= len(kinds) || kinds[i] != want[i] {
				t.Fatalf("read in other ways: got %q and %v, want %q", kinds, err, want)
			}
		}
	})
}

// A text that looks like a sealed one, or is a copy of one, is a text like any other, wherever it is stored.
func TestACopyOfASealedValueIsNotOpened(t *testing.T) {
	onColumns(t, func(c columns) {
		c.add(1, 11, "the gate of ann", []byte("4711"))
		var stolen string
		var bytes []byte
		c.write(c.store, func(tx db.Tx) error {
			return db.Stored(tx).QueryRow(`SELECT text, data FROM note WHERE id = 1`).Scan(&stolen, &bytes)
		})
		c.add(2, 12, stolen, bytes)
		c.want(2, stolen, bytes)
		for id, add := range map[int]func(tx db.Tx, query string, args ...any) error{
			3: func(tx db.Tx, query string, args ...any) error { _, err := tx.Exec(query, args...); return err },
			4: func(tx db.Tx, query string, args ...any) error { return db.Queue(tx, query, args...) },
			5: func(tx db.Tx, query string, args ...any) error {
				return tx.Each(func(db.Rows) error { return nil }, query+` RETURNING id`, args...)
			},
			6: func(tx db.Tx, query string, args ...any) error {
				return tx.QueryRow(query+` RETURNING id`, args...).Scan(new(int))
			},
			7: func(tx db.Tx, query string, args ...any) error {
				_, err := db.Column[int](tx, query+` RETURNING id`, args...)
				return err
			},
		} {
			type named string
			c.write(c.store, func(tx db.Tx) error {
				return add(tx, `INSERT INTO note (id, text, data) VALUES (?, ?, ?)`, id, named(stolen), &bytes)
			})
			c.want(id, stolen, bytes)
		}
		found := 0
		err := c.store.Read(t.Context(), func(tx db.Tx) error {
			return tx.QueryRow(`SELECT count(*) FROM note WHERE text = ?`, stolen).Scan(&found)
		})
		if err != nil || found != 5 {
			t.Errorf("rows with the unchanged copy: got %d and %v, want 5", found, err)
		}
	})
}

func TestSealedValuesThatCannotBeOpenedAreErrors(t *testing.T) {
	onColumns(t, func(c columns) {
		c.add(1, 11, "the gate of ann", []byte("4711"))
		sealed := seal(t, c.ring, ann)
		var text string
		c.write(c.store, func(tx db.Tx) error {
			return db.Stored(tx).QueryRow(`SELECT text FROM note WHERE id = 1`).Scan(&text)
		})
		if want := sealedrows.SealedLength(len("the gate of ann")); len(text) != want {
			t.Errorf("length of the sealed text: got %d, want %d", len(text), want)
		}
		const letter = len("\x01sealed\x02")
		for what, test := range map[string]struct {
			stored string
			want   error
		}{
			"the column of metadata": {text[:letter] + string(rune(sealedrows.MemoryMetadata)) + text[letter+1:],
				keyring.ErrSealed},
			"an unknown column":               {text[:letter] + "!" + text[letter+1:], sealedrows.ErrUnknownColumn},
			"the mark alone":                  {text[:letter], sealedrows.ErrUnknownColumn},
			"not in base64":                   {text[:letter+1] + "*", db.ErrCorrupt},
			"another text":                    {text[:len(text)-6] + "AAAAAA", keyring.ErrSealed},
			"a key that the ring never had":   {text[:letter+4] + "AAAAAAAA" + text[letter+12:], keyring.ErrUnknown},
			"the value as it was, to be sure": {text, nil},
		} {
			c.write(c.bare, func(tx db.Tx) error {
				_, err := tx.Exec(`UPDATE note SET text = ?`, test.stored)
				return err
			})
			if got, _, _, err := c.read(1); !errors.Is(err, test.want) || (err == nil) != (got == "the gate of ann") {
				t.Errorf("%s: got %q and %v, want %v", what, got, err, test.want)
			}
		}
		c.write(c.bare, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE note SET text = ?`, text)
			return err
		})
		if _, err := c.ring.Erase(t.Context(), ann, 0); err != nil {
			t.Fatal(err)
		}
		if got, data, _, err := c.read(1); got != "" || string(data) != "{}" || err != nil {
			t.Errorf("after the user was deleted: got %q, %q and %v, want empty values", got, data, err)
		}
		if _, err := c.ring.Open(t.Context(), "note", sealed); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("after the user was deleted: got %v, want ErrErased", err)
		}
	})
}

func TestBlindedValuesAreEqualForOneUserAndPurposeOnly(t *testing.T) {
	onColumns(t, func(c columns) {
		blind := func(owner keyring.Owner, purpose, value string) string {
			t.Helper()
			hash, err := c.ring.Blind(t.Context(), owner, purpose, []byte(value))
			if err != nil || len(hash) != 16 {
				t.Fatalf("Blind: got %d bytes and %v, want 16", len(hash), err)
			}
			return string(hash)
		}
		first := blind(ann, "word", "gate")
		if again := blind(ann, "word", "gate"); again != first {
			t.Errorf("again: got %x, want %x", again, first)
		}
		for what, other := range map[string]string{"another user": blind(ben, "word", "gate"),
			"another purpose": blind(ann, "key", "gate"), "another value": blind(ann, "word", "gates"),
			"another border": blind(ann, "wordg", "ate")} {
			if other == first {
				t.Errorf("%s: got the same %x, want another one", what, other)
			}
		}
		c.write(c.store, func(tx db.Tx) error {
			s, err := sealedrows.SealerOf(tx, 11)
			if err == nil && string(s.Blind("word", []byte("gate"))) != first {
				t.Error("in a transaction: got another value, want the one before")
			}
			return err
		})
	})
}

// A store without keys seals nothing, and passes values on unchanged.
func TestWithoutKeysNothingIsSealed(t *testing.T) {
	onColumns(t, func(c columns) {
		c.store = c.bare
		const text, data = "\x01sealed\x02cAAAA", "\x01sealed\x02"
		c.add(1, 11, text, []byte(data))
		if stored := c.want(1, text, []byte(data)); stored != text+data {
			t.Errorf("stored: got %q, want it as it is", stored)
		}
	})
}

// BenchmarkScan reads rows of the size of memories, plain and sealed.
func BenchmarkScan(b *testing.B) {
	ctx := context.Background()
	engine, err := sqlite.Open(ctx, sqlite.Config{ApplicationID: 77, Migrations: sqlite.Migrations(),
		Path: filepath.Join(b.TempDir(), "store.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	place, err := sqlite.OpenKeys(ctx, filepath.Join(b.TempDir(), "store.keys"), false, nil)
	if err != nil {
		b.Fatal(err)
	}
	ring, err := keyring.Open(ctx, place, sealing.GenerateMasterKey(), time.Now)
	if err != nil {
		b.Fatal(err)
	}
	defer ring.Close()
	const rows = 1000
	for name, d := range map[string]*txcontext.DB{"plain": {DB: engine},
		"sealed": {DB: &sealedrows.DB{DB: engine, Sealing: ring}}} {
		err := d.Write(ctx, func(tx db.Tx) error {
			var err error
			for _, statement := range []string{`INSERT INTO users (id, namespace, uid, created_at) VALUES (11, '', 'ann', 0)
				ON CONFLICT DO NOTHING`, `CREATE TABLE ` + name + ` (text TEXT, metadata TEXT)`} {
				if err == nil {
					_, err = tx.Exec(statement)
				}
			}
			for range rows {
				text, failed := sealedrows.SealText(tx, 11, sealedrows.MemoryContent, strings.Repeat("the code of the gate ", 20))
				metadata, other := sealedrows.SealText(tx, 11, sealedrows.MemoryMetadata, `{"module": "gate"}`)
				if err = errors.Join(err, failed, other); err == nil {
					_, err = tx.Exec(`INSERT INTO `+name+` VALUES (?, ?)`, text, metadata)
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var text, metadata string
				if err := d.Read(ctx, func(tx db.Tx) error {
					return tx.Each(func(row db.Rows) error { return row.Scan(&text, &metadata) },
						`SELECT text, metadata FROM `+name)
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}

// Values that are looked up have the same sealed form if the owner, the column and the value are the same, and
// different forms otherwise.
func TestEqualNamesAreSealedToTheSame(t *testing.T) {
	onColumns(t, func(c columns) {
		c.write(c.store, func(tx db.Tx) error {
			stored := func(owner int64, column sealedrows.SealedColumn, value string) string {
				t.Helper()
				forms, err := sealedrows.Forms(tx, column, []int64{owner}, value)
				if err != nil || len(forms) > 2 || forms[0] != value {
					t.Fatalf("Forms of %q: got %q and %v, want it and how it is sealed", value, forms, err)
				}
				return forms[len(forms)-1]
			}
			if got := stored(11, sealedrows.CollectionName, "gate"); got != "gate" {
				t.Errorf("of an owner without a key: got %q, want the value alone", got)
			}
			for _, owner := range []int64{11, 12} {
				if _, err := sealedrows.SealText(tx, owner, sealedrows.CollectionName, "gate"); err != nil {
					return err
				}
			}
			first := stored(11, sealedrows.CollectionName, "gate")
			if strings.Contains(first, "gate") || first != stored(11, sealedrows.CollectionName, "gate") {
				t.Errorf("sealed twice: got %q, want the same without the text", first)
			}
			for what, other := range map[string]string{"another owner": stored(12, sealedrows.CollectionName, "gate"),
				"another column": stored(11, sealedrows.ProjectName, "gate"),
				"another value":  stored(11, sealedrows.CollectionName, "Gate")} {
				if other[9:] == first[9:] {
					t.Errorf("%s: got the same %q, want another one", what, other)
				}
			}
			const hashed = 9 + 22
			upper, lower := stored(11, sealedrows.Tag, "Gate"), stored(11, sealedrows.Tag, "gate")
			if upper == lower || upper[:hashed] != lower[:hashed] ||
				stored(11, sealedrows.Tag, "gates")[:hashed] == lower[:hashed] {
				t.Errorf("tags: got %q and %q, want the same hash before different values", upper, lower)
			}
			lines, err := sealedrows.OpenTexts(tx, []string{upper, "plain", lower + "\n" + upper})
			if err != nil || strings.Join(lines, "|") != "Gate|plain|gate\nGate" {
				t.Errorf("OpenTexts: got %q and %v, want the tags", lines, err)
			}
			return nil
		})
	})
}
