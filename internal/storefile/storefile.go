// Package storefile configures the file of a store: its mark, its migrations and the upkeep of its hashes.
package storefile

import (
	"context"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// ApplicationID marks a Souvenir file in the header of SQLite's file format: "Suvn".
const ApplicationID = 0x5375766e

// Fills returns the functions that complete migrations, by name.
func Fills() map[string]func(db.Tx) error {
	return map[string]func(db.Tx) error{"project_names": naming.Fill, "turns": kernel.FillTurns,
		"user_ids": kernel.FillUserKeys}
}

// Config returns the configuration for opening the file of a store.
func Config(path string, now func() time.Time) sqlite.Config {
	return sqlite.Config{
		Path:             path,
		ApplicationID:    ApplicationID,
		Migrations:       sqlite.Migrations(),
		Fill:             Fills(),
		BeforeMigrations: kernel.MarkDamage,
		AfterMigrations:  func(tx db.Tx, version int) error { return kernel.MakeHashes(tx, version, now().UnixMicro()) },
		Hashed:           kernel.KeepHashes,
	}
}

type onlyRecords struct{}

// WithOnlyRecords returns a context with which souvenir.Open opens a store that is only read, except that its audit log
// gets entries. It is for the command copy.
func WithOnlyRecords(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyRecords{}, true)
}

// OnlyRecords reports whether a context is one of [WithOnlyRecords].
func OnlyRecords(ctx context.Context) bool { return ctx.Value(onlyRecords{}) != nil }
