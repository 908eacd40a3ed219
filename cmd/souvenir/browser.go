package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
)

// openBrowser opens a link in the person's browser, if there is one. A missing browser is no error, since the link has
// been printed.
func openBrowser(ctx context.Context, link string) {
	var command *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		command = exec.CommandContext(ctx, "open", link)
	case "windows":
		command = exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", link)
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return // xdg-open would start a browser in the terminal
		}
		command = exec.CommandContext(ctx, "xdg-open", link)
	}
	if command.Start() == nil {
		go func() { _ = command.Wait() }()
	}
}
