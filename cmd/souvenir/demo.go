package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/cmd/souvenir/internal/demo"
	"github.com/souvenir-ai/souvenir/examples/quickstart/data"
	"github.com/souvenir-ai/souvenir/server"
)

func (c *cli) demoCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "demo [flags]", GroupID: groupServer,
		Short: "Start a temporary server with example memories",
		Long: `Starts a server on a temporary file with ten weeks of memories of a fictional team and family, prints a link
that opens its dashboard and a token for programs, and deletes everything when it stops (Ctrl-C). On a terminal it opens
the dashboard in the browser.`,
		Example: "  souvenir demo",
	}
	listen := command.Flags().String("listen", "127.0.0.1:0", "`host:port` to listen on; port 0 picks a free one")
	noOpen := command.Flags().Bool("no-open", false, "do not open the browser")
	return c.command(command, func(ctx context.Context, _ []string) (err error) {
		folder, err := os.MkdirTemp("", "souvenir-demo-")
		if err != nil {
			return err
		}
		defer func() {
			if removed := os.RemoveAll(folder); err == nil {
				err = removed
			}
		}()
		return c.demo(ctx, filepath.Join(folder, "demo.db"), *listen, !*noOpen && isTerminal(c.out.file))
	})
}

func (c *cli) demo(ctx context.Context, path, listen string, opens bool) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	where := address(listen, listener)
	publicURL := localURL(where)
	password := rand.Text()[:12]
	progress, end := c.progress()
	defer end()
	filled, err := demo.Fill(ctx, path, demo.Options{PublicURL: publicURL, Password: password,
		Documents: documentReader(), Progress: progress})
	end()
	if err != nil {
		return err
	}
	store, err := souvenir.Open(ctx, path, &souvenir.Options{KeepActivity: demo.KeepActivity,
		Documents:  documentReader(),
		Changeable: append(slices.Collect(maps.Values(settingsOfFlags)), souvenir.SettingIndex)})
	if err != nil {
		return err
	}
	defer store.Close()
	handler := server.New(store, &server.Options{PublicURL: publicURL, Version: readBuild().Version,
		Snippets: snippets})
	link, err := handler.SignInLink(ctx, filled.User.ID)
	if err != nil {
		return err
	}
	if err := c.explainDemo(demoAddress{where, publicURL, path, link, password}, filled); err != nil {
		return err
	}
	if opens {
		openBrowser(ctx, link)
	}
	if err := server.Serve(ctx, listener, handler, &server.ServeOptions{Grace: time.Second}); err != nil {
		return err
	}
	return store.Close()
}

// demoAddress is where a demonstration is, and how to get in.
type demoAddress struct{ listens, url, file, link, password string }

// explainDemo prints how to use a demonstration.
func (c *cli) explainDemo(at demoAddress, filled demo.Filled) error {
	questions, err := data.Questions()
	if err != nil {
		return err
	}
	ask := questions[0].Ask
	fmt.Fprintf(&c.out, `listening on http://%s

Look around (the link works once, within 10 minutes; later sign in as "demo" with the password %s):

  %s

%d memories of a fictional team and family. Ask something:

  souvenir search %s --user demo --db %s

  curl -s %s/tools/call -H "Authorization: Bearer %s" -H "Content-Type: application/json" \
    -d %s

Connect Claude Code ("souvenir client-config" has others):

  %s

Ctrl-C stops it and deletes everything.
`, at.listens, at.password, at.link, filled.Memories, shellQuote(ask), shellQuote(at.file), at.url, filled.Token,
		shellQuote(compact(object{"name": "memory", "arguments": object{"action": "search", "query": ask, "limit": 3}})),
		claudeCode.overHTTP(connection{url: at.url + "/mcp", token: filled.Token}))
	return nil
}
