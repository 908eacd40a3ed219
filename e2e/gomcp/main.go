// Command gomcp tests the server with the client of github.com/modelcontextprotocol/go-sdk: over HTTP and over the
// streams of "souvenir mcp", in every revision of the protocol, it lists and calls every tool, reads every resource,
// gets every prompt, completes arguments and makes mistakes. e2e/mcp.sh runs it.
//
// Its environment variables are SOUVENIR_AT, SOUVENIR (the program) and DB (its file).
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
	toolNames = []string{
		"memory", "get_project_main_memory", "get_module_state", "rules", "todo", "upload_document", "list_collections",
		"create_collection", "search", "fetch",
	}
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gomcp:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, transport := range []string{"http", "stdio"} {
		for _, revision := range revisions {
			name := "go-" + transport + "-" + revision
			token, err := addUser(ctx, name)
			if err != nil {
				return err
			}
			place := overHTTP(token)
			if transport == "stdio" {
				place = &mcp.CommandTransport{Command: exec.CommandContext(ctx, os.Getenv("SOUVENIR"), "mcp", "--db",
					os.Getenv("DB"), "--user", name, "--toolsets", "memory,chatgpt")}
			}
			if err := connected(ctx, place, revision,
				func(session *mcp.ClientSession) error { return everything(ctx, session, name) }); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Printf("ok %s: every tool, resource and prompt\n", name)
		}
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		if err := tokens(ctx, revision); err != nil {
			return fmt.Errorf("go, %s: %w", revision, err)
		}
		fmt.Printf("ok go, %s: a token that may only read, a token that ends\n", revision)
	}
	return nil
}

// bearer sends a token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(token string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: os.Getenv("SOUVENIR_AT") + "/mcp",
		HTTPClient: &http.Client{Transport: bearer(token)}}
}

// program runs the program on the file.
func program(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, os.Getenv("SOUVENIR"), append(args, "--db", os.Getenv("DB"))...)
	command.Stdin, command.Stderr = strings.NewReader(input), os.Stderr
	said, err := command.Output()
	return strings.TrimSpace(string(said)), err
}

func addUser(ctx context.Context, name string) (token string, err error) {
	if _, err := program(ctx, "an unused password "+time.Now().String(), "user", "add", name,
		"--password-stdin"); err != nil {
		return "", err
	}
	return addToken(ctx, name, "memory:read,memory:write,files:read,files:write")
}

func addToken(ctx context.Context, name, scopes string) (string, error) {
	return program(ctx, "", "token", "add", "--user", name, "--name", name, "--scope", scopes)
}

// connected calls do with a session in a revision.
func connected(ctx context.Context, place mcp.Transport, revision string, do func(*mcp.ClientSession) error) error {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(ctx, place,
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return err
	}
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		return fmt.Errorf("the protocol is that of %s", got)
	}
	if err := do(session); err != nil {
		_ = session.Close() // what was found matters more
		return err
	}
	return session.Close()
}

// tokens tries a token that may only read, and one that is revoked between two calls.
func tokens(ctx context.Context, revision string) error {
	name := "go-tokens-" + revision
	if _, err := addUser(ctx, name); err != nil {
		return err
	}
	reading, err := addToken(ctx, name, "memory:read")
	if err != nil {
		return err
	}
	if err := connected(ctx, overHTTP(reading), revision, func(session *mcp.ClientSession) error {
		return fails(ctx, session, "memory", object{"action": "store", "content": "No."}, "memory:write")
	}); err != nil {
		return err
	}
	ending, err := addToken(ctx, name, "memory:read")
	if err != nil {
		return err
	}
	return connected(ctx, overHTTP(ending), revision, func(session *mcp.ClientSession) error {
		if _, err := calls(ctx, session, "list_collections", object{}); err != nil {
			return err
		}
		if _, err := program(ctx, "", "token", "delete", "--user", name, ending[:8]); err != nil {
			return err
		}
		if result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_collections"}); err == nil ||
			!strings.Contains(err.Error(), "Unauthorized") {
			return fmt.Errorf("a token that has ended gives %v, %w", result, err)
		}
		return nil
	})
}

// lists are the names of a session's tools, prompts, resources and templates.
type lists struct {
	tools, prompts []string
	resources      []*mcp.Resource
	templates      []*mcp.ResourceTemplate
}

func listAll(ctx context.Context, session *mcp.ClientSession) (all lists, err error) {
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return all, err
		}
		all.tools = append(all.tools, tool.Name)
	}
	for prompt, err := range session.Prompts(ctx, nil) {
		if err != nil {
			return all, err
		}
		all.prompts = append(all.prompts, prompt.Name)
	}
	for resource, err := range session.Resources(ctx, nil) {
		if err != nil {
			return all, err
		}
		all.resources = append(all.resources, resource)
	}
	for template, err := range session.ResourceTemplates(ctx, nil) {
		if err != nil {
			return all, err
		}
		all.templates = append(all.templates, template)
	}
	slices.Sort(all.prompts)
	return all, nil
}
