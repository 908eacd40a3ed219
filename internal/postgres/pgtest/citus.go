package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Distributed is an environment variable. If it is not empty, the server is the coordinator of a Citus cluster, and the
// schemas of the tests are placed on its workers.
const Distributed = "SOUVENIR_TEST_CITUS"

// OnCitus reports whether [Distributed] is set.
func OnCitus() bool { return os.Getenv(Distributed) != "" }

// NotOnCitus skips a test on Citus, with the reason.
func NotOnCitus(t testing.TB, reason string) {
	t.Helper()
	if OnCitus() {
		t.Skip("on Citus: " + reason)
	}
}

// distribute runs postgres/citus.sql, which it looks for in the folders above, for a schema.
func distribute(ctx context.Context, address string) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(folder, "postgres", "citus.sql"))
	for ; err != nil && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		script, err = os.ReadFile(filepath.Join(filepath.Dir(folder), "postgres", "citus.sql"))
	}
	if err != nil {
		return err
	}
	return run(ctx, address, "SET client_min_messages = error;"+string(script))
}

// copier makes a superuser without triggers, on all nodes: the coordinator does not pass such a setting of a connection
// on to workers. It stays on the server.
func copier(ctx context.Context) (role string, err error) {
	const name = "souvenir_test_copier"
	return name, run(ctx, os.Getenv(Variable), `DO $$ BEGIN
			IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '`+name+`') THEN
				CREATE ROLE `+name+` LOGIN SUPERUSER;
				ALTER ROLE `+name+` SET session_replication_role = replica;
			END IF;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
}

func run(ctx context.Context, address, script string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.PgConn().Exec(ctx, script).ReadAll()
	return err
}
