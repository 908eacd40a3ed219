package main

import (
	"context"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/postgres"
)

// engine is a database server in which stores can be, instead of a file.
type engine struct {
	name    string   // in messages
	schemes []string // of addresses
	form    string   // of an address, in help
	secrets []string // parameters of an address that no message shows
	backup  string   // the database's own programs for backups, and to restore them
	restore string
	empty   string // what to give for a database without tables
	open    func(ctx context.Context, address string, options *souvenir.Options) (*souvenir.Store, error)
}

// engines are all of them. Nothing else in this program depends on which there are.
var engines = []engine{{
	name:    "PostgreSQL",
	schemes: []string{"postgres", "postgresql"},
	form:    "postgres://user@host/name",
	secrets: []string{"password", "sslpassword"},
	backup:  "pg_dump or pg_basebackup",
	restore: "pg_restore",
	empty:   "an empty schema with ?search_path=NAME",
	open:    postgres.Open,
}}

// engine returns the engine of an address; nil for a file, or an address that none has.
func (l location) engine() *engine {
	scheme, _ := l.address()
	i := slices.IndexFunc(engines, func(e engine) bool { return slices.Contains(e.schemes, scheme) })
	if i < 0 {
		return nil
	}
	return &engines[i]
}

// addressForms lists what an address can look like.
func addressForms() string {
	var forms []string
	for _, e := range engines {
		forms = append(forms, e.form)
	}
	return strings.Join(forms, " or ")
}
