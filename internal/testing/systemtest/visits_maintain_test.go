package systemtest

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	. "github.com/souvenir-ai/souvenir"
)

// maintainVisits are the methods for the whole store: views may call none of them.
var maintainVisits = map[string]func(v visit){
	"Backup": func(v visit) {
		path := filepath.Join(v.TempDir(), "backup.db")
		v.refuses("Backup", func(s *Store) error { return s.Upkeep().Backup(v.Context(), path, nil) })
		if left := filesIn(v.T, filepath.Dir(path)); len(left) > 0 {
			v.Errorf("%v were left, want none", left)
		}
	},
	"BackupTo": func(v visit) {
		v.refuses("BackupTo", func(s *Store) error {
			n, err := s.Upkeep().BackupTo(v.Context(), io.Discard, nil)
			if n != 0 {
				v.Errorf("%d bytes of the store were written, want 0", n)
			}
			return err
		})
	},
	"Health": func(v visit) {
		v.refuses("Health", func(s *Store) error { return s.Upkeep().Health(v.Context()) })
	},
	"Problems": func(v visit) {
		v.refuses("Problems", func(s *Store) error { _, err := s.Upkeep().Problems(v.Context()); return err })
	},
	"Runtime": func(v visit) {
		v.refuses("Runtime", func(s *Store) error { _, err := s.Upkeep().Runtime(v.Context()); return err })
	},
	"Check": func(v visit) {
		v.refuses("Check", func(s *Store) error {
			report, err := s.Upkeep().Check(v.Context(), &CheckOptions{Repair: true})
			v.check("Check", report, nil)
			return err
		})
	},
	"Reindex": func(v visit) {
		v.refuses("Reindex", func(s *Store) error { return s.Upkeep().Reindex(v.Context(), nil) })
	},
	"LoadIndex": func(v visit) {
		v.refuses("LoadIndex", func(s *Store) error { return s.Upkeep().LoadIndex(v.Context()) })
	},
	"Settings": func(v visit) {
		v.refuses("Settings", func(s *Store) error { _, err := s.Upkeep().Settings(v.Context()); return err })
	},
	"SetSetting": func(v visit) {
		v.refuses("SetSetting", func(s *Store) error {
			days := int64(1)
			return s.Upkeep().SetSetting(v.Context(), "trash_days", &days)
		})
	},
	"ChangeMasterKey": func(v visit) {
		v.refuses("ChangeMasterKey", func(s *Store) error {
			return s.Upkeep().ChangeMasterKey(v.Context(), GenerateMasterKey())
		})
	},
	"ChangeUserKeysMaster": func(v visit) {
		v.refuses("ChangeUserKeysMaster", func(s *Store) error {
			return s.Upkeep().ChangeUserKeysMaster(v.Context(), GenerateMasterKey())
		})
	},
	"BackupUserKeys": func(v visit) {
		v.refuses("BackupUserKeys", func(s *Store) error {
			return s.Upkeep().BackupUserKeys(v.Context(), filepath.Join(v.TempDir(), "keys.ring"))
		})
	},
	"CheckUserKeys": func(v visit) {
		v.refuses("CheckUserKeys", func(s *Store) error { _, err := s.Upkeep().CheckUserKeys(v.Context(), nil); return err })
	},
	"MoveFiles": func(v visit) {
		v.refuses("MoveFiles", func(s *Store) error {
			_, err := s.Upkeep().MoveFiles(v.Context(), InDatabase, nil)
			return err
		})
	},
	"AdoptObjects": func(v visit) {
		v.refuses("AdoptObjects", func(s *Store) error { return s.Upkeep().AdoptObjects(v.Context()) })
	},
	"StoreIndex": func(v visit) {
		v.refuses("StoreIndex", func(s *Store) error { return s.Upkeep().StoreIndex(v.Context()) })
	},
	"Purge": func(v visit) {
		v.refuses("Purge", func(s *Store) error {
			_, err := s.Upkeep().Purge(v.Context(), &PurgeOptions{KeepRevisions: 1})
			return err
		})
	},
	"Compact": func(v visit) {
		v.refuses("Compact", func(s *Store) error { return s.Upkeep().Compact(v.Context()) })
	},
	"AuditEntries": func(v visit) {
		v.refuses("AuditEntries", func(s *Store) (err error) {
			for _, err = range s.Upkeep().AuditEntries(v.Context(), AuditQuery{}) {
				if err == nil {
					v.Error("Audit gives an entry, want none")
				}
			}
			return err
		})
	},
	"CheckAudit": func(v visit) {
		v.refuses("CheckAudit", func(s *Store) error {
			report, err := s.Upkeep().CheckAudit(v.Context(), nil)
			if report.Entries != 0 || report.Head != (AuditAnchor{}) {
				v.Errorf("CheckAudit is %+v, want zero values", report)
			}
			return err
		})
	},
	"CutAudit": func(v visit) {
		v.refuses("CutAudit", func(s *Store) error {
			_, err := s.Upkeep().CutAudit(v.Context(), AuditAnchor{Hash: strings.Repeat("0", 64)})
			return err
		})
	},
	"RecordConfiguration": func(v visit) {
		v.refuses("RecordConfiguration", func(s *Store) error { return s.Upkeep().RecordConfiguration(v.Context()) })
	},
	"Configuration": func(v visit) {
		v.refuses("Configuration", func(s *Store) error {
			c, err := s.Upkeep().Configuration(v.Context())
			if c != (Configuration{}) {
				v.Errorf("Configuration is %+v, want %v", c, Configuration{})
			}
			return err
		})
	},
	"Stats": func(v visit) {
		v.refuses("Stats", func(s *Store) error {
			stats, err := s.Upkeep().Stats(v.Context())
			if stats != (Stats{}) {
				v.Errorf("Stats is %+v, want %v", stats, Stats{})
			}
			return err
		})
	},
}

// refuses checks that a method is refused to the visitor and changes nothing.
func (v visit) refuses(what string, call func(s *Store) error) {
	v.Helper()
	before := rowsOf(v.T, v.n.store)
	err := call(v.view)
	v.check(what, nil, err)
	if !errors.Is(err, ErrForbidden) {
		v.Errorf("%s through a view gives %v, want ErrForbidden", what, err)
	}
	if rowsOf(v.T, v.n.store) != before {
		v.Errorf("%s through a view changed something, want no change", what)
	}
}
