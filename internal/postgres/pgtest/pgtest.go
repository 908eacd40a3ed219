// Package pgtest gives tests a schema of their own in the PostgreSQL server that SOUVENIR_TEST_POSTGRES names.
package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Variable is the environment variable with the address of a database. Its user is a superuser: [Copy] needs one;
// everything else needs only the right to create schemas.
const Variable = "SOUVENIR_TEST_POSTGRES"

// Address returns the address of a new schema, which is dropped when the test ends. Without a server it skips the test.
// With [OnCitus] the schema has the tables already, on a worker.
func Address(t testing.TB) string {
	t.Helper()
	server := Server(t)
	if OnCitus() {
		return Empty(t)
	}
	address, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
	schema := "test_" + strings.ToLower(rand.Text())
	run := func(statement string) {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Fatalf("%s: %v", Variable, err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	run("CREATE SCHEMA " + schema)
	t.Cleanup(func() { run("SET client_min_messages = error; DROP SCHEMA " + schema + " CASCADE") })
	query := address.Query()
	query.Set("search_path", schema)
	address.RawQuery = query.Encode()
	return address.String()
}

// Server returns the address of the server, and skips the test if there is none.
func Server(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Variable)
	if server == "" {
		t.Skipf("%s is not set: give the address of a PostgreSQL database, such as "+
			"postgres://user:password@localhost:5432/test", Variable)
	}
	return server
}
