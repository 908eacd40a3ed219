package postgres

import (
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// beginning returns the statements that begin a transaction, which is for the store as a whole.
func (d *DB) beginning(begin string, turn ...pending) (all []pending) {
	all = append(all, pending{text: begin})
	if d.distributed {
		for _, text := range distributedSettings() {
			all = append(all, pending{text: text})
		}
	}
	all = append(all, turn...)
	if d.version > 0 {
		all = append(all, d.sameVersion())
	}
	if d.walled {
		all = append(all, pending{text: "SET LOCAL souvenir.caller = '" + server + "'"})
	}
	return all
}

// sameVersion is a statement that fails if a newer program has migrated the schema since this one opened it.
func (d *DB) sameVersion() pending {
	return pending{text: fmt.Sprintf("SELECT 1 / (version <= %d)::int FROM schema_version", d.version), version: true}
}

// outdated is the error of a transaction for which that statement failed.
func (tx *Tx) outdated(err error) error {
	var known *Error
	if errors.As(err, &known) && known.Code == codeDivision {
		err = &Error{Op: "begin", kind: db.ErrNewer, err: fmt.Errorf("a newer program has changed the schema, and this one "+
			"supports version %d; nothing was changed; use the newer program", tx.d.version)}
		tx.lost = err
	}
	return err
}
