package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir/cmd/souvenir/internal/doctor"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

func (c *cli) doctorCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "doctor [URL] [flags]", GroupID: groupServer,
		Short: "Find problems that clients have with a server",
		Long: `Tests a running server as a client does, at the URL that people enter in their clients: certificate
and clock, the discovery documents and the 401 that leads to them, redirects, CORS, proxy limits, the
registration of each kind of client, and the sign-in page. With a token it also calls a tool. It prints
a line per finding, with a fix for each problem. The exit status is 1 if there is a problem.

With --embedder it also tests that embedder, by embedding three short texts. This needs no URL.

With --backups it searches a folder of backups for user keys (souvenir key users --help), which must
not be there.

It registers five clients without access, which the server deletes after a day. With --no-register
it registers none.`,
		Example: `  souvenir doctor https://memory.example.com
  SOUVENIR_TOKEN_FILE=token souvenir doctor https://memory.example.com
  souvenir doctor --embedder ollama`,
		Args: wants(0, 1, "URL"),
	}
	token := secretFlag(command, "token", "an MCP token or an access token, to call a tool with")
	noRegister := command.Flags().Bool("no-register", false,
		"register no clients")
	patience := command.Flags().Duration("timeout", 10*time.Second, "`duration` to wait for each answer")
	backups := command.Flags().String("backups", "", "`folder` with backups, to search for user keys")
	asJSON, embedder := jsonFlag(command), newEmbedderFlags(command)
	limits(command, "backups")
	return c.command(command, func(ctx context.Context, args []string) error {
		if *patience <= 0 {
			return misused("--timeout is %s; give a duration such as 10s", *patience)
		}
		credential, err := token.read()
		if err != nil {
			return err
		}
		chosen, err := embedder.embedder()
		if err != nil {
			return err
		}
		if len(args) == 0 && chosen == nil && *backups == "" {
			return misused("souvenir doctor needs a URL, --embedder or --backups")
		}
		var findings []doctor.Finding
		result := map[string]any{}
		if chosen != nil {
			findings = append(findings, doctor.Embedder(ctx, chosen))
			result["embedder"] = chosen.Model()
		}
		if *backups != "" {
			if info, err := os.Stat(*backups); err != nil || !info.IsDir() {
				return misused("--backups is %q, which is not a folder", *backups)
			}
			findings = append(findings, ringsBesideBackups(*backups))
			result["backups"] = *backups
		}
		if len(args) > 0 {
			examined, err := doctor.Examine(ctx, args[0],
				doctor.Options{Token: credential, NoRegister: *noRegister, Timeout: *patience})
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				return misused("URL %v", err)
			}
			findings, result["url"] = append(findings, examined...), args[0]
		}
		if result["findings"] = jsonobject.List(findings); *asJSON {
			if err := printJSON(&c.out, result); err != nil {
				return err
			}
		} else {
			c.printFindings(findings)
		}
		if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Level == doctor.Problem }) {
			return errSilent
		}
		return nil
	})
}

// printFindings prints one finding per line, without control characters from the server.
func (c *cli) printFindings(findings []doctor.Finding) {
	for _, f := range findings {
		line := f.Message + "."
		if f.Mend != "" {
			line += " " + f.Mend
		}
		level := c.out.in(levelPaint(f.Level), fmt.Sprintf("%-8s", f.Level))
		fmt.Fprintf(&c.out, "%s %-12s %s\n", level, f.Check, plain(line))
	}
}

func levelPaint(level doctor.Level) paint {
	switch level {
	case doctor.OK:
		return green
	case doctor.Warning:
		return yellow
	}
	return red
}

// ringsBesideBackups reports whether user keys are in a folder of backups.
func ringsBesideBackups(dir string) doctor.Finding {
	const check = "keys"
	found := ringsIn(dir)
	if len(found) == 0 {
		return doctor.Finding{Check: check, Level: doctor.OK, Message: "the folder of the backups has no user keys"}
	}
	return doctor.Finding{Check: check, Level: doctor.Warning,
		Message: fmt.Sprintf("user keys are beside the backups: %s", strings.Join(found, ", ")),
		Mend: "Keep the newest copy of the key ring elsewhere and delete older ones, which can decrypt the data of deleted " +
			"users in the backups."}
}
