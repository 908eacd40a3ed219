package main

import (
	"context"
	_ "embed" // the licences
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// notices are the licences of the program's parts, written by .ci/licences.
//
//go:embed NOTICE.txt
var notices string

// build is the build information that the Go tool recorded.
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
		Long:    "Prints the version, and how it was built; or the licences of everything that the program contains.",
		Example: "  souvenir version --json\n  souvenir version --licenses | less",
	}
	asJSON := jsonFlag(command)
	licenses := command.Flags().Bool("licenses", false, "print the licences of Souvenir and of what it contains")
	return c.command(command, func(context.Context, []string) error {
		if *licenses {
			fmt.Fprint(&c.out, notices)
			return nil
		}
		b := readBuild()
		if *asJSON {
			return printJSON(&c.out, b)
		}
		fmt.Fprintf(&c.out, "souvenir %s (%s%s, %s)\n", b.Version, b.shortRevision(), b.Go, b.Platform)
		return nil
	})
}
