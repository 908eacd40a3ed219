package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// anchorsFile is a file in the folder of scheduled backups with a line for each of them, TIME NUMBER:HASH: the newest
// entry that the audit log had then.
const anchorsFile = "souvenir-audit-anchors.txt"

// anchor verifies the audit log with the newest anchor in the folder, adds a new one, and logs it. An anchor that does
// not fit stays the newest, so that each backup reports it until a person has looked.
func (b schedule) anchor(ctx context.Context, store *souvenir.Store, log *slog.Logger) {
	path := filepath.Join(b.dir, anchorsFile)
	head, err := keepAnchor(ctx, store, path, b.now())
	if err != nil {
		log.Error("the audit log has no new anchor", "file", path, "error", err)
		return
	}
	log.Info("verified the audit log, and kept an anchor", "file", path, "anchor", head)
}

// keepAnchor verifies the audit log with the newest anchor in a file, and adds a new one, which it returns.
func keepAnchor(ctx context.Context, store *souvenir.Store, path string, now time.Time) (head string, err error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	r, err := store.Upkeep().CheckAudit(ctx, newestAnchor(string(content)))
	switch {
	case err != nil:
		return "", err
	case !r.OK:
		return "", fmt.Errorf("it has been altered, or the store was restored from an earlier backup: entry %d: %s; "+
			"if that was intended, rename the file, and the next backup starts another", r.Problems[0].Seq,
			r.Problems[0].Problem)
	}
	head = fmt.Sprintf("%d:%s", r.Head.Seq, r.Head.Hash)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s %s\n", now.UTC().Format(time.RFC3339), head)
	if len(content) > 0 && content[len(content)-1] != '\n' { // after a crash
		line = "\n" + line
	}
	_, err = file.WriteString(line)
	return head, errors.Join(err, file.Sync(), file.Close())
}

// newestAnchor returns the newest anchor in the content of a file; nil if there is none. It passes over lines that a
// crash left incomplete.
func newestAnchor(content string) *souvenir.AuditAnchor {
	for _, line := range slices.Backward(strings.Split(content, "\n")) {
		_, text, _ := strings.Cut(line, " ")
		if a, err := parseAnchor(anchorsFile, text); err == nil && len(a.Hash) == 64 {
			return &a
		}
	}
	return nil
}
