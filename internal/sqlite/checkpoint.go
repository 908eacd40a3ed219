package sqlite

import (
	"errors"
	"io/fs"
	"os"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// The write-ahead log is kept bounded. SQLite copies it into the file every autoCheckpoint pages, but it can only
// restart the log at a moment without readers, which may never come under constant reads. From walLimit on, a
// checkpoint waits for that moment: new readers then read from the file, so it waits only for the running ones.
const (
	autoCheckpoint = 1000     // pages, 4 MB
	walLimit       = 16 << 20 // bytes; also the size to which a bigger log is cut when it restarts
	walPatience    = 200      // milliseconds for each try; writers wait meanwhile
	walStep        = 8 << 20  // bytes that the log may grow after a failed try
	walLook        = 64       // commits between two checks of the log's size
)

// walWatch remembers when to check the size of the log again.
type walWatch struct {
	commits int
	bytes   int
	limit   int64
}

// checkpointDue reports whether the log should be restarted. It is called after each commit, with the turn.
func (w *writer) checkpointDue() bool {
	w.wal.commits++
	w.wal.bytes += w.conn.argBytes
	if w.wal.commits < walLook && w.wal.bytes < walStep/4 {
		return false
	}
	w.wal.commits, w.wal.bytes = 0, 0
	return walSize(w.db.logPath) >= max(w.wal.limit, walLimit)
}

func walSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// startCheckpoint restarts the log when it is too big. It works in the background and keeps the turn, so the caller
// that noticed returns at once.
func (w *writer) startCheckpoint() bool {
	if w.db.memory || !w.checkpointDue() {
		return false
	}
	w.db.mu.Lock()
	w.db.active++ // the caller with the turn is counted, so the DB cannot be closed yet
	w.db.mu.Unlock()
	go func() {
		defer w.db.end()
		defer w.next()
		w.restartLog()
	}()
	return true
}

func (w *writer) restartLog() {
	err := w.checkpoint(walPatience)
	if err == nil {
		w.wal.limit = walLimit
		return
	}
	size := walSize(w.db.logPath)
	w.wal.limit = size + walStep
	w.db.log.Debug("write-ahead log is still in use", "path", w.db.path, "bytes", size, "error", err)
}

// checkpoint copies the whole log into the file and empties it, waiting at most wait milliseconds for readers and
// other writers.
func (w *writer) checkpoint(wait int) error {
	if err := w.conn.setBusyTimeout(wait); err != nil {
		return err
	}
	defer func() { _ = w.conn.setBusyTimeout(0) }()
	var busy, log, copied int
	if err := w.conn.one("PRAGMA wal_checkpoint(TRUNCATE)", &busy, &log, &copied); err != nil {
		return classify("checkpoint", err)
	}
	if busy != 0 {
		return db.ErrLogInUse
	}
	return nil
}

// lastCheckpoint moves all content into the file itself. If other processes still use the log, the last of them
// does it.
func (w *writer) lastCheckpoint() {
	if _, err := os.Stat(w.db.path); errors.Is(err, fs.ErrNotExist) {
		return // deleted while it was open
	}
	if err := w.checkpoint(0); err != nil && !errors.Is(err, db.ErrLogInUse) {
		w.db.log.Warn("last checkpoint failed", "path", w.db.path, "error", err)
	}
}
