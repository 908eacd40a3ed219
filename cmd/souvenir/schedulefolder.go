package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// folderOf is the file in a folder of scheduled backups that identifies their store. It lists the users whom the store
// had at its last backup, each with the time of their creation. A store that was restored or moved has some of them,
// another store has none.
const folderOf = ".souvenir-backups-of"

// claim notes the store whose backups are in the folder, and refuses a folder with backups of another store: the two
// would delete each other's backups.
func (b schedule) claim(ctx context.Context, store *souvenir.Store) error {
	var ids []string
	for u, err := range store.Accounts().Users(ctx) {
		if err != nil {
			return err
		}
		ids = append(ids, fmt.Sprintf("%s@%d", u.ID, u.CreatedAt.UnixMicro())) // each store has a user "local"
	}
	path := filepath.Join(b.dir, folderOf)
	known, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case len(known) > 0 && !slices.ContainsFunc(strings.Fields(string(known)), func(id string) bool {
		return slices.Contains(ids, id)
	}):
		return fmt.Errorf("the folder %q contains backups of another store, which this one would delete; give each store a "+
			"folder of its own, or delete %s there to let this store use the folder", b.dir, folderOf)
	}
	content := strings.Join(ids, "\n")
	if content == string(known) {
		return nil
	}
	// The file is replaced as a whole: half an id would make the folder look like that of another store.
	if err := os.WriteFile(path+unverified, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+unverified, path)
}
