package sqlite

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// memoryPath is the Path of a database in memory.
const memoryPath = ":memory:"

// Ways to open a file, as SQLite's URI parameters.
const (
	modeCreate    = "mode=rwc"
	modeReadWrite = "mode=rw"
	modeReadOnly  = "mode=ro"
	// modeImmutable takes no locks and ignores a write-ahead log, so it leaves no trace.
	modeImmutable = "mode=ro&immutable=1"
)

// fileDSN returns the file: URI by which both drivers open an absolute path. SQLite's own waiting for locks is
// off, see patience. The path never contains a raw '?', '#' or '%', so no path can smuggle in a parameter.
func fileDSN(path, mode string) string {
	return "file://" + escapePath(uriPath(path, runtime.GOOS == "windows")) + "?" + mode + "&_busy_timeout=0"
}

// uriPath turns an absolute path into the path part of a URI: C:\a\b becomes /C:/a/b and
// \\host\share\b becomes //host/share/b.
func uriPath(path string, windows bool) string {
	if !windows {
		return path
	}
	path = strings.ReplaceAll(path, `\`, "/")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

func escapePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("/:-_.~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// absolute returns the absolute path of a file, independent of later changes of the working directory.
func absolute(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("sqlite: the path is empty; give a file path or %q", memoryPath)
	}
	if strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("sqlite: path %q contains a zero byte", path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlite: path %q: %w", path, err)
	}
	return abs, nil
}
