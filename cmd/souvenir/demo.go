package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/examples/quickstart/data"
	"github.com/souvenir-ai/souvenir/server"
)

func (c *cli) demoCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "demo [flags]", GroupID: groupServer,
		Short: "Try it: a server full of memories that leaves nothing behind",
		Long: `Starts a server on a temporary file with several hundred memories of a fictional team and family,
prints a token and how to use it, and deletes everything when it stops (Ctrl-C).`,
		Example: "  souvenir demo",
	}
	listen := command.Flags().String("listen", "127.0.0.1:0", "`host:port` to listen on; port 0 picks a free one")
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
		return c.demo(ctx, filepath.Join(folder, "demo.db"), *listen)
	})
}

func (c *cli) demo(ctx context.Context, path, listen string) error {
	store, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	token, count, err := fillDemo(ctx, store)
	if err != nil {
		return err
	}
	questions, err := data.Questions()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	where := address(listen, listener)
	publicURL := localURL(where)
	handler := server.New(store, &server.Options{PublicURL: publicURL, Version: readBuild().Version})
	ask := questions[0].Ask
	fmt.Fprintf(&c.out, `listening on http://%s

%d memories of a fictional team and family, for the user "demo". Ask something:

  souvenir search %s --db %s

  curl -s %s/tools/call -H "Authorization: Bearer %s" -H "Content-Type: application/json" \
    -d %s

Connect Claude Code ("souvenir client-config" has others):

  %s

Ctrl-C stops it and deletes everything.
`, where, count, shellQuote(ask), shellQuote(path), publicURL, token,
		shellQuote(compact(object{"name": "memory", "arguments": object{"action": "search", "query": ask, "limit": 3}})),
		claudeCode.overHTTP(connection{url: publicURL + "/mcp", token: token}))
	if err := server.Serve(ctx, listener, handler, &server.ServeOptions{Grace: time.Second}); err != nil {
		return err
	}
	return store.Close()
}

// fillDemo creates a user with a token and memories, and returns the token and the number of memories.
func fillDemo(ctx context.Context, store *souvenir.Store) (string, int, error) {
	user, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "demo"})
	if err != nil {
		return "", 0, err
	}
	token, err := store.Accounts().AddToken(ctx, souvenir.NewToken{User: user.ID, Name: "demo"})
	if err != nil {
		return "", 0, err
	}
	memories, err := data.Memories()
	if err != nil {
		return "", 0, err
	}
	_, err = store.As(souvenir.Access{User: user.ID}).AddMemories(ctx, memories, nil)
	return token.Value, len(memories), err
}
