package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// defaultFile is the default name of the store.
const defaultFile = "souvenir.db"

// dataFolders describes what dataFolder returns, for help and pages.
const dataFolders = "~/.local/share/souvenir,\n~/Library/Application Support/Souvenir on macOS, " +
	"%LocalAppData%\\Souvenir on Windows"

// findStore finds the file for a program that clients start, in arbitrary working directories. It also returns why
// it chose that file. With making, it creates the folder of a file that does not exist.
func (c *cli) findStore(making bool) (path, why string, err error) {
	if path, err = filepath.Abs(defaultFile); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path, "it is in the working directory", nil
		}
	}
	switch served := servedFiles(); {
	case len(served) == 1:
		return served[0], "a server runs on it", nil
	case len(served) > 1:
		return "", "", fmt.Errorf("--db is missing, and servers run on several files: %s", strings.Join(served, ", "))
	}
	folder, err := c.dataFolder()
	if err != nil {
		return "", "", fmt.Errorf("--db is missing, and there is no data folder to look in: %w", err)
	}
	if making {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", "", fmt.Errorf("--db is missing, and the data folder cannot be created: %w", err)
		}
	}
	return filepath.Join(folder, defaultFile), "it is in the user's data folder", nil
}

// dataFolder returns where programs of this user keep their data.
func (c *cli) dataFolder() (string, error) {
	switch runtime.GOOS {
	case "windows":
		if folder, _ := c.lookup("LocalAppData"); folder != "" {
			return filepath.Join(folder, "Souvenir"), nil
		}
		return "", errors.New("%LocalAppData% is not set")
	case "darwin", "ios":
		home, err := os.UserHomeDir()
		return filepath.Join(home, "Library", "Application Support", "Souvenir"), err
	}
	// XDG Base Directory Specification: ignore a path that is not absolute.
	if folder, _ := c.lookup("XDG_DATA_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "souvenir"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share", "souvenir"), err
}

// While a server runs, it keeps a note so that programs which clients start find its store: a file named after the
// process, with the path of the store in it. A note left by a crash names a process that is gone. Even if another
// process has that number now, the store is still one of this user's.

// servingFolder is where servers leave their notes.
func servingFolder() (string, error) {
	folder, err := os.UserCacheDir()
	return filepath.Join(folder, "souvenir", "serving"), err
}

// announce leaves a note that this process serves a store, and returns the function that removes it. A server runs
// without its note, too.
func announce(path string, log *slog.Logger) (withdraw func()) {
	note, err := leaveNote(path)
	if err != nil {
		log.Debug("\"souvenir mcp\" will not find this server automatically", "reason", err)
		return func() {}
	}
	return func() { _ = os.Remove(note) } // a stale note is recognised anyway
}

func leaveNote(path string) (string, error) {
	folder, err := servingFolder()
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	note := filepath.Join(folder, strconv.Itoa(os.Getpid()))
	unfinished := note + ".new"
	if err := os.WriteFile(unfinished, []byte(path+"\n"), 0o600); err != nil {
		return "", err
	}
	return note, os.Rename(unfinished, note)
}

// servedFiles returns the distinct stores that this user's servers run on.
func servedFiles() []string {
	folder, err := servingFolder()
	if err != nil {
		return nil
	}
	notes, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var served []string
	for _, note := range notes {
		process, err := strconv.Atoi(note.Name())
		if err != nil {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, note.Name()))
		path := firstLine(string(content))
		if err != nil || !isRunning(process) {
			continue
		}
		if _, err := os.Stat(path); err == nil && !slices.Contains(served, path) {
			served = append(served, path)
		}
	}
	return served
}

// isRunning reports whether a process with a number exists.
func isRunning(process int) bool {
	found, err := os.FindProcess(process)
	if err != nil {
		return false
	}
	defer func() { _ = found.Release() }()
	if runtime.GOOS == "windows" { // on Windows, FindProcess fails for a process that is gone
		return true
	}
	err = found.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, fs.ErrPermission)
}
