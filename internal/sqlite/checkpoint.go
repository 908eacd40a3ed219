package sqlite

import (
	"errors"
	"io/fs"
	"os"
)

// The write-ahead log is kept bounded. SQLite copies it into the file every autoCheckpoint pages, but
// it can start the log over only at a moment when nobody reads from it, which under
// constant readers never comes by itself. From walLimit on, a checkpoint waits for that moment:
// new readers then read from the file, so only the running ones are waited for.
const (
	autoCheckpoint = 1000     // pages, 4 MB
	walLimit       = 16 << 20 // bytes; also what is left of a bigger log when it starts over
	walPatience    = 200      // milliseconds for each try; writers wait meanwhile
	walStep        = 8 << 20  // bytes the log may grow after a try that failed
	walLook        = 64       // commits between two looks at the log's size
)

// walWatch remembers when to look at the size of the log again.
type walWatch struct {
	commits int
	bytes   int
	limit   int64
}

// due tells whether the log should be started over. It is asked after each commit, with the turn.
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

// startCheckpoint starts the log over when it is too big. That happens in the background and keeps the
// turn, so the caller that noticed is answered at once.
func (w *writer) startCheckpoint() bool {
	if w.db.memory || !w.checkpointDue() {
		return false
	}
	w.db.mu.Lock()
	w.db.active++ // the caller that has the turn is counted, so the DB cannot be closed yet
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

// checkpoint copies the whole log into the file and empties it, waiting so many milliseconds for
// readers and other writers.
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
		return ErrLogInUse
	}
	return nil
}

// lastCheckpoint leaves the whole content in the file itself. Other processes may still use the
// log; then the last of them does it.
func (w *writer) lastCheckpoint() {
	if _, err := os.Stat(w.db.path); errors.Is(err, fs.ErrNotExist) {
		return // deleted while it was open
	}
	if err := w.checkpoint(0); err != nil && !errors.Is(err, ErrLogInUse) {
		w.db.log.Warn("last checkpoint failed", "path", w.db.path, "error", err)
	}
}
