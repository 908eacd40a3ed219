package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir/server"
)

func (c *cli) healthCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "health [URL] [flags]", GroupID: groupServer,
		Short: "Check whether a running server works",
		Long: `Requests /health from a server, which answers if it can read its store. The exit status is 0 if it
does, otherwise 1. Use it for health checks where no other program is available, as in the container
image. Without a URL it asks the server on this machine at --listen.`,
		Example: `  souvenir health
  souvenir health https://memory.example.com`,
		Args: wants(0, 1, "URL"),
	}
	listen := command.Flags().String("listen", defaultListen, "`host:port` on which the server listens")
	patience := command.Flags().Duration("timeout", 5*time.Second, "`duration` to wait for the answer")
	asJSON := jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		if *patience <= 0 {
			return misused("--timeout is %s; give a duration such as 5s", *patience)
		}
		url := ""
		if len(args) == 1 {
			url = strings.TrimSuffix(args[0], "/")
			if err := server.CheckPublicURL(url); err != nil {
				return misused("URL is %q; give one such as https://memory.example.com", args[0])
			}
		} else {
			host, port, err := net.SplitHostPort(*listen)
			if err != nil || port == "0" {
				return misused("--listen is %q; give HOST:PORT, such as %s", *listen, defaultListen)
			}
			url = localURL(net.JoinHostPort(cmp.Or(host, "localhost"), port))
		}
		ctx, cancel := context.WithTimeout(ctx, *patience)
		defer cancel()
		health, err := askHealth(ctx, url+"/health")
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(&c.out, health)
		}
		fmt.Fprintf(&c.out, "%s %s\n", c.out.in(green, "ok:"), url)
		return nil
	})
}

// askHealth asks a server for its health. Only Souvenir's answer counts: another program may have taken the port.
func askHealth(ctx context.Context, url string) (server.Health, error) {
	var health server.Health
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return health, err
	}
	// No proxy, even if the environment names one: it must ask this very server.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return health, fmt.Errorf("no answer: %w", err)
	}
	defer answer.Body.Close()
	const most = 64 << 10 // bytes
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	switch {
	case err != nil:
		return health, fmt.Errorf("%s: the response ended early: %w", url, err)
	case answer.StatusCode != http.StatusOK:
		return health, fmt.Errorf("%s returned %s", url, answer.Status)
	case json.Unmarshal(body, &health) == nil && health.Service == "souvenir" && health.Status == "degraded":
		return health, fmt.Errorf("%s is degraded: %s", url, plain(health.Problem))
	case json.Unmarshal(body, &health) != nil || health.Service != "souvenir" || health.Status != "ok":
		return health, fmt.Errorf("%s is not a Souvenir server", url)
	}
	return health, nil
}
