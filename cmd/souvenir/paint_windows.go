package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// enablePaint makes a console understand SGR sequences, and reports whether it does. Consoles before Windows 10 do
// not.
func enablePaint(file *os.File) bool {
	console := windows.Handle(file.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
