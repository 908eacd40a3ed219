package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// build is what the Go tool recorded in this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the version control system; with + for modified files
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+"
		}
	}
	if b.Revision != "" {
		b.Revision += modified
	}
	return b
}

// shortRevision is the abbreviated revision, with a comma; empty if there is none.
func (b build) shortRevision() string {
	const digits = 12
	if len(b.Revision) <= digits {
		return ""
	}
	short := b.Revision[:digits]
	if strings.HasSuffix(b.Revision, "+") {
		short += "+"
	}
	return short + ", "
}

func (c *cli) versionCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "version [flags]",
		Short:   "Print the version",
		Long:    "Prints the version, and how it was built.",
		Example: "  souvenir version --json",
	}
	asJSON := jsonFlag(command)
	return c.command(command, func(context.Context, []string) error {
		b := readBuild()
		if *asJSON {
			return printJSON(&c.out, b)
		}
		fmt.Fprintf(&c.out, "souvenir %s (%s%s, %s)\n", b.Version, b.shortRevision(), b.Go, b.Platform)
		return nil
	})
}
