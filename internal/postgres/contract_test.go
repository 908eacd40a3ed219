package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/db/dbtest"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

func TestPostgresKeepsTheContract(t *testing.T) {
	pgtest.Server(t)
	addresses := map[db.DB]string{}
	open := func(t *testing.T, address string) db.DB {
		t.Helper()
		d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 4})
		if err != nil {
			t.Fatal(err)
		}
		addresses[d] = address
		return d
	}
	engine := dbtest.Engine{
		Open:   func(t *testing.T) db.DB { return open(t, pgtest.Address(t)) },
		Reopen: func(t *testing.T, closed db.DB) db.DB { return open(t, addresses[closed]) },
		Second: func(t *testing.T, d db.DB) db.DB { return open(t, addresses[d]) },
		ReadOnly: func(t *testing.T, d db.DB) db.DB {
			r, err := postgres.Open(t.Context(), addresses[d], db.Opening{Readers: 2, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		Fill: func() func(t *testing.T, fill map[string]func(db.Tx) error) (db.DB, error) {
			address := pgtest.Address(t)
			return func(t *testing.T, fill map[string]func(db.Tx) error) (db.DB, error) {
				d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2, Fill: fill})
				if err != nil {
					return nil, err
				}
				return d, nil
			}
		}(),
		Reruns: true,
		Flood: func(tx db.Tx, memory int64) error {
			_, err := tx.Exec(`INSERT INTO change (memory_id) SELECT ?::int8 FROM generate_series(1, 1000)`, memory)
			return err
		},
		Killed:  killed,
		Failing: failing,
		Walled: func(t *testing.T) db.DB {
			script, err := os.ReadFile("../../postgres/wall.sql")
			if err != nil {
				t.Fatal(err)
			}
			address := pgtest.Address(t)
			if err := open(t, address).Close(); err != nil { // it makes the schema
				t.Fatal(err)
			}
			return open(t, pgtest.Walled(t, address, string(script)))
		},
		Near: func(t *testing.T, d db.DB) db.DB {
			makeNear(t, addresses[d])
			return open(t, addresses[d])
		},
		Impatient: func(t *testing.T) db.DB {
			d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
			if err != nil {
				t.Fatal(err)
			}
			d.SetPatience(500 * time.Millisecond)
			d.SetLockTimeout(500 * time.Millisecond)
			return d
		},
	}
	if pgtest.OnCitus() { // the schemas there are complete already
		engine.Fill, engine.Waits = nil, true
	}
	dbtest.Run(t, engine)
}

// toKill is the environment variable with the address of the database to which a process writes until it is killed.
const toKill = "SOUVENIR_TEST_TO_KILL"

func TestWriteUntilKilled(t *testing.T) {
	address := os.Getenv(toKill)
	if address == "" {
		t.Skip("this is the process that another test kills")
	}
	d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(dbtest.WriteUntilKilled(t.Context(), d, os.Stdout))
}

// killed makes a process write, and kills it.
func killed(t *testing.T) (db.DB, io.Reader) {
	address := pgtest.Address(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), program, "-test.run=^TestWriteUntilKilled$")
	process.Env = append(os.Environ(), toKill+"="+address)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(out, &printed))
	for n := 0; n < 200 && lines.Scan(); n++ {
	}
	if err := process.Process.Kill(); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // what it had printed before
	}
	if err := process.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 4})
	if err != nil {
		t.Fatal(err)
	}
	return d, &printed
}

// failing opens a database behind a proxy.
func failing(t *testing.T) (db.DB, func(dbtest.Failure)) {
	address, name := pgtest.Address(t), "failing-"+rand.Text()
	proxy := pgtest.NewProxy(t, address)
	d, err := postgres.Open(t.Context(), proxy.Address+"&application_name="+name,
		db.Opening{Readers: 4})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[dbtest.Failure]string{dbtest.Interrupt: "pg_cancel_backend", dbtest.Disconnect: "pg_terminate_backend"}
	cuts := map[dbtest.Failure]pgtest.Cut{dbtest.LosesCommit: pgtest.BeforeCommit, dbtest.LosesOutcome: pgtest.AfterCommit}
	return d, func(failure dbtest.Failure) {
		if cut, is := cuts[failure]; is {
			proxy.Cut.Store(int32(cut))
			return
		}
		for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
			ended := pgtest.Query(t, address, `SELECT count(`+ends[failure]+`(pid))::text FROM pg_stat_activity
				WHERE application_name = '`+name+`' AND state = 'active' AND query LIKE '%2000000000%'`)
			if ended[0] != "0" {
				return
			}
		}
		t.Error("got no statement to end, want one that runs")
	}
}

// makeNear makes the index of vectors, for all partitions. Without pgvector it skips the test.
func makeNear(t *testing.T, address string) {
	t.Helper()
	pgtest.NotOnCitus(t, "an index of vectors is not supported yet")
	script, err := os.ReadFile("../../postgres/vectors.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), `SELECT 1 FROM pg_available_extensions WHERE name = 'vector'`).
		Scan(new(int)); err != nil {
		t.Skipf("the server has no pgvector: %v", err)
	}
	if _, err := conn.PgConn().Exec(t.Context(), string(script)+`
		CREATE OR REPLACE FUNCTION near_from() RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint'`).
		ReadAll(); err != nil {
		t.Fatal(err)
	}
}
