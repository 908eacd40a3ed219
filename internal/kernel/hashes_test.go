package kernel_test

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// noHashes is a transaction of an engine without hashes. It panics at any statement.
type noHashes struct{ db.Tx }

func TestWithoutHashesEveryRowIsSoundAndNoneIsRead(t *testing.T) {
	if sound, err := kernel.RowSound(noHashes{}, kernel.MemoryKind, 1); !sound || err != nil {
		t.Errorf("got sound %t, %v, want true and no error", sound, err)
	}
	if err := kernel.DoubtRow(noHashes{}, kernel.MemoryKind, 1); err != nil {
		t.Error(err)
	}
	for _, table := range kernel.HashedTables() {
		err := kernel.EachHash(noHashes{}, table, func(h kernel.RowHash) error {
			t.Errorf("%s: row %d has a hash", table.Name, h.ID)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
