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
	"time"

	"github.com/souvenir-ai/souvenir"
)

// A backup is worth what can be restored from it. A drill restores one into a temporary folder, as after a loss, checks
// everything in it, and deletes it again.

// drilled is the outcome of a drill.
type drilled struct {
	Backup   string    `json:"backup"`
	Made     time.Time `json:"made"` // when the file was last written to
	OK       bool      `json:"ok"`   // everything in the restored store is verified
	Bytes    int64     `json:"bytes"`
	Users    int       `json:"users"`
	Memories int       `json:"memories"`
	Files    int       `json:"files"`
	Problems int       `json:"problems"` // that the check found
	First    string    `json:"first_problem,omitempty"`
	Restored float64   `json:"restored_seconds"`
	Checked  float64   `json:"checked_seconds"`
}

// drill restores a backup in a temporary folder in dir, and checks it.
func drill(ctx context.Context, backup, dir string, progress souvenir.Progress) (d drilled, err error) {
	info, err := os.Stat(backup)
	if err != nil {
		return d, err
	}
	d = drilled{Backup: backup, Made: info.ModTime().UTC(), Bytes: info.Size()}
	temporary, err := os.MkdirTemp(dir, ".souvenir-drill-*")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	restored := location(filepath.Join(temporary, "restored.db"))
	began := time.Now()
	if err := restore(ctx, backup, string(restored), progress); err != nil {
		return d, err
	}
	check := func(store *souvenir.Store) error {
		d.Restored = time.Since(began).Seconds()
		began = time.Now()
		report, err := store.Upkeep().Check(ctx, &souvenir.CheckOptions{Progress: progress})
		if err != nil {
			return err
		}
		stats, err := store.Upkeep().Stats(ctx)
		if err != nil {
			return err
		}
		d.Checked = time.Since(began).Seconds()
		d.OK, d.Problems = report.OK, report.Total
		d.Users, d.Memories, d.Files = stats.Users, stats.Memories, stats.Files
		if len(report.Findings) > 0 {
			first := report.Findings[0]
			d.First = strings.Join(strings.Fields(first.Table+" "+first.ID+": "+first.Problem), " ")
		}
		return nil
	}
	if errors.Is(ringMissing(ctx, restored), fs.ErrNotExist) {
		return d, fmt.Errorf("it cannot be checked without its user keys: set %s to where the key ring is", userKeysVariable)
	}
	err = withStore(ctx, restored, forReading, check)
	if errors.Is(err, souvenir.ErrReadOnly) { // an older version, which has to be migrated first
		if err = withStore(apart(ctx), restored, forWriting, func(*souvenir.Store) error { return nil }); err == nil {
			err = withStore(ctx, restored, forReading, check)
		}
	}
	return d, err
}

// apart returns a context without object storage. A store restored in a drill must not write to the bucket of the real
// store, where it would delete the objects of files that were unfinished when the backup was made.
func apart(ctx context.Context) context.Context {
	return context.WithValue(ctx, objectsKey{}, objects{})
}

// printDrill prints the outcome of a drill.
func (c *cli) printDrill(asJSON bool, d drilled) error {
	result := "sound"
	if !d.OK {
		result = fmt.Sprintf("NOT sound, %d problems, including: %s", d.Problems, plain(d.First))
	}
	err := c.printResult(asJSON, d, "restored %s (%s, of %s) in %.1f s and checked it in %.1f s: %d users, %d memories, "+
		"%d files; %s", d.Backup, size(d.Bytes), moment(d.Made), d.Restored, d.Checked, d.Users, d.Memories, d.Files, result)
	if err == nil && !d.OK {
		return errSilent
	}
	return err
}

const (
	backupPrefix = "souvenir-"
	backupTime   = "20060102T150405Z"
	backupSuffix = ".db"
	unverified   = ".unverified" // at the end of the name until the drill
)

// backups returns the verified scheduled backups in a folder, the oldest first. Other files are left
// alone.
func backups(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, is := backupMade(e.Name()); is && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// backupMade returns when a backup was made, by its name.
func backupMade(name string) (time.Time, bool) {
	middle, ok := strings.CutPrefix(name, backupPrefix)
	middle, ok2 := strings.CutSuffix(middle, backupSuffix)
	made, err := time.Parse(backupTime, middle)
	return made, ok && ok2 && err == nil
}

// newestBackup returns the path of a backup: the one that is named, or the newest in a folder.
func newestBackup(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, err
	}
	names, err := backups(path)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("IN is the folder %q, which has no backup of \"souvenir serve --backup-to\"; give a file, or a "+
			"folder with files such as %s", path, backupPrefix+backupTime+backupSuffix)
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(path, names[len(names)-1]), nil
}
