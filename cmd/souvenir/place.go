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

// defaultFile is the store's name where none is given.
const defaultFile = "souvenir.db"

// dataFolders names what dataFolder returns, for help and pages.
const dataFolders = "~/.local/share/souvenir,\n~/Library/Application Support/Souvenir on macOS, %LocalAppData%\\Souvenir on Windows"

// findStore finds the file for a program that clients start, in folders that say nothing about it. It also says why it
// is that one. With making, the folder of a file that does not exist is made.
func (c *cli) findStore(making bool) (path, why string, err error) {
	if path, err = filepath.Abs(defaultFile); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path, "it lies in the working directory", nil
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
			return "", "", fmt.Errorf("--db is missing, and the data folder cannot be made: %w", err)
		}
	}
	return filepath.Join(folder, defaultFile), "it lies in the user's data folder", nil
}

// dataFolder is where programs of this user keep what they store.
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
	// XDG Base Directory Specification: a path that is not absolute is to be ignored.
	if folder, _ := c.lookup("XDG_DATA_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "souvenir"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share", "souvenir"), err
}

// A server leaves a note for as long as it runs, so that programs which clients start find its file: a file named by
// the process, with the path of the store in it. What a crash left behind is recognised by its process, which is gone.
// Should another process have got its number, the store is still one of this user's.

// servingFolder is where servers leave their notes.
func servingFolder() (string, error) {
	folder, err := os.UserCacheDir()
	return filepath.Join(folder, "souvenir", "serving"), err
}

// announce leaves a note that this process serves a store. The function that it returns takes the note away. That
// it cannot be left is no reason not to serve.
func announce(path string, log *slog.Logger) (withdraw func()) {
	note, err := leaveNote(path)
	if err != nil {
		log.Debug("\"souvenir mcp\" will not find this server by itself", "reason", err)
		return func() {}
	}
	return func() { _ = os.Remove(note) } // it is recognised as old otherwise
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

// servedFiles returns the stores that servers of this user run on, each once.
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

// isRunning tells whether there is a process of a number.
func isRunning(process int) bool {
	found, err := os.FindProcess(process)
	if err != nil {
		return false
	}
	defer func() { _ = found.Release() }()
	if runtime.GOOS == "windows" { // where a process that is gone is not found
		return true
	}
	err = found.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, fs.ErrPermission)
}
