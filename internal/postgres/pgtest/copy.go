package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
)

// Making the tables of a schema takes a tenth of a second, and copying a few rows into tables that exist a hundredth.
// So the schemas in this file are used again: [Copy] replaces all rows. [Drop] removes them when the tests end.
var schemas struct {
	mu   sync.Mutex
	conn *pgx.Conn // copies rows with triggers off, which needs a superuser
	made []string
	free []string
	// altered schemas have other tables now.
	altered map[string]bool
}

// Altered records that a test changes the tables of its schema. No other test gets that schema afterwards.
func Altered(address string) {
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	if schemas.altered == nil {
		schemas.altered = map[string]bool{}
	}
	schemas.altered[SchemaOf(address)] = true
}

// Copy returns the address of a schema that holds the same rows as another one, which must have the newest tables. The
// test has it until it ends.
func Copy(t testing.TB, of string) string {
	t.Helper()
	Server(t)
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	schema, err := take()
	if err == nil {
		err = copyRows(SchemaOf(of), schema)
	}
	if err != nil {
		t.Fatalf("a copy of the schema %s: %v", SchemaOf(of), err)
	}
	t.Cleanup(func() {
		schemas.mu.Lock()
		defer schemas.mu.Unlock()
		if !schemas.altered[schema] {
			schemas.free = append(schemas.free, schema)
		}
	})
	return addressOf(schema)
}

// Empty returns the address of a schema with the tables and nothing stored. The test has it until it ends.
func Empty(t testing.TB) string {
	t.Helper()
	Server(t)
	of, err := empty()
	if err != nil {
		t.Fatalf("an empty schema: %v", err)
	}
	return Copy(t, of)
}

var empty = sync.OnceValues(func() (string, error) { return Keep(func(string) error { return nil }) })

// Keep fills a schema, for any number of tests to copy, and returns its address. It exists until [Drop].
func Keep(fill func(address string) error) (string, error) {
	schemas.mu.Lock()
	schema, err := makeSchema()
	schemas.mu.Unlock()
	if err != nil {
		return "", err
	}
	return addressOf(schema), fill(addressOf(schema))
}

// Drop drops the schemas of Copy, Empty and Keep, for a TestMain. It returns the code, or 1 if it fails.
func Drop(code int) int {
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	if schemas.conn == nil {
		return code
	}
	ctx := context.Background()
	var errs []error
	for _, schema := range schemas.made { // one at a time: a transaction has a limited number of locks
		_, err := schemas.conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, schemas.conn.Close(ctx))...); err != nil {
		fmt.Fprintln(os.Stderr, "dropping schemas of tests:", err)
		return max(code, 1)
	}
	return code
}

// take returns a schema with the newest tables.
func take() (string, error) {
	if last := len(schemas.free) - 1; last >= 0 {
		schema := schemas.free[last]
		schemas.free = schemas.free[:last]
		return schema, nil
	}
	return makeSchema()
}

// connect makes the connection that makes and copies schemas.
func connect(ctx context.Context) error {
	if schemas.conn != nil {
		return nil
	}
	config, err := pgx.ParseConfig(os.Getenv(Variable))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"session_replication_role": "replica", "lock_timeout": "20s",
		"client_min_messages": "error"} {
		config.RuntimeParams[name] = value
	}
	if OnCitus() {
		if config.User, err = copier(ctx); err != nil {
			return err
		}
	}
	schemas.conn, err = pgx.ConnectConfig(ctx, config)
	return err
}

func makeSchema() (string, error) {
	ctx := context.Background()
	if err := connect(ctx); err != nil {
		return "", err
	}
	schema := "test_" + strings.ToLower(rand.Text())
	if _, err := schemas.conn.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
		return "", err
	}
	schemas.made = append(schemas.made, schema)
	d, err := postgres.Open(ctx, addressOf(schema), db.Opening{Readers: 1})
	if err != nil {
		return "", err
	}
	if err := d.Close(); err != nil || !OnCitus() {
		return schema, err
	}
	return schema, distribute(ctx, addressOf(schema))
}

// copyRows replaces the rows of all tables by those of another schema, and sets the counters of ids.
func copyRows(from, to string) error {
	ctx := context.Background()
	rows, err := schemas.conn.Query(ctx, `
		SELECT format('DELETE FROM %2$s.%3$I; INSERT INTO %2$s.%3$I SELECT * FROM %1$s.%3$I;', schemaname, $2::text,
			tablename) FROM pg_tables WHERE schemaname = $1
		UNION ALL SELECT format('SELECT setval(''%s.%s'', %s, %L);', $2::text, quote_ident(sequencename),
			coalesce(last_value, start_value), last_value IS NOT NULL) FROM pg_sequences WHERE schemaname = $1`, from, to)
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if OnCitus() { // the numbers of changes are a worker's; without its node, the log starts over with the next change
		statements = append(statements, fmt.Sprintf("DELETE FROM %[1]s.change; UPDATE %[1]s.change_floor SET node = 0;", to))
	}
	_, err = schemas.conn.PgConn().Exec(ctx, strings.Join(statements, "\n")).ReadAll()
	return err
}

func addressOf(schema string) string {
	address, err := url.Parse(os.Getenv(Variable))
	if err != nil {
		return "" // makeSchema has understood it
	}
	query := address.Query()
	query.Set("search_path", schema)
	address.RawQuery = query.Encode()
	return address.String()
}

// SchemaOf returns the schema of an address.
func SchemaOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Query().Get("search_path")
}

// runtimeRole is a role with no rights except to the rows in the schemas of tests. It stays on the server.
const runtimeRole = "souvenir_test_runtime"

// Walled makes the second wall in a schema, and returns its address for a role that may only read and write the rows.
func Walled(t testing.TB, address, wall string) string {
	t.Helper()
	NotOnCitus(t, "the caller of a transaction does not reach the worker, so row-level security is not supported")
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	schema := SchemaOf(address)
	script := fmt.Sprintf(`DO $$ BEGIN
			IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '%[1]s') THEN CREATE ROLE %[1]s; END IF;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
		SET LOCAL search_path = %[2]s;
		GRANT USAGE ON SCHEMA %[2]s TO %[1]s;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[2]s TO %[1]s;
		GRANT USAGE ON ALL SEQUENCES IN SCHEMA %[2]s TO %[1]s;`, runtimeRole, schema) + wall
	if err := makeWall(schema, script); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("role", runtimeRole)
	u.RawQuery = query.Encode()
	return u.String()
}

// makeWall runs a script, unless the schema has its wall from an earlier test. A deadlock with another process that
// grants rights to the same role undoes the script, which then runs again.
func makeWall(schema, script string) error {
	ctx := context.Background()
	if err := connect(ctx); err != nil {
		return err
	}
	var made bool
	err := schemas.conn.QueryRow(ctx, `SELECT relrowsecurity FROM pg_class WHERE relname = 'trash_item'
		AND relnamespace = $1::regnamespace`, schema).Scan(&made)
	for try := 0; err == nil && !made; try++ {
		_, err = schemas.conn.PgConn().Exec(ctx, script).ReadAll()
		var e *pgconn.PgError
		if errors.As(err, &e) && e.Code == "40P01" && try < 5 {
			err = nil
			continue
		}
		return err
	}
	return err
}

// Query runs a statement of one text column on a connection of its own, in no transaction of a store.
func Query(t testing.TB, address, statement string) []string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, statement)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}
