package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type object = map[string]any

// plan is a to-do document.
const plan = "## Constitution\nTests first.\n\n## Spec\nMaps.\n\n## Plan\nTile by tile.\n\n## Tasks\n- [ ] T1 order " +
	"granite\n\n## Gaps\nWho pays?\n"

// everything calls every tool, resource and prompt, for a new user.
func everything(ctx context.Context, session *mcp.ClientSession, name string) error {
	id, file, err := callAll(ctx, session, name)
	if err != nil {
		return err
	}
	all, err := listAll(ctx, session)
	if err != nil {
		return err
	}
	if !slices.Equal(all.tools, toolNames) ||
		!slices.Equal(all.prompts, []string{"load_project_context", "review_gaps", "save_session"}) ||
		len(all.templates) != 6 {
		return fmt.Errorf("the lists are %+v", all)
	}
	if err := readAll(ctx, session, all, name, id, file); err != nil {
		return err
	}
	if err := getAll(ctx, session, name); err != nil {
		return err
	}
	if err := completeAll(ctx, session, name, id, file); err != nil {
		return err
	}
	return mistakes(ctx, session)
}

// calls calls a tool, which must succeed and answer with structured content, and with the same content as text.
func calls(ctx context.Context, session *mcp.ClientSession, tool string, arguments object) (object, error) {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w", tool, arguments, err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	structure, isObject := result.StructuredContent.(object)
	var said object
	if result.IsError || !ok || !isObject || json.Unmarshal([]byte(text.Text), &said) != nil ||
		fmt.Sprint(said) != fmt.Sprint(structure) {
		return nil, fmt.Errorf("%s %v gives %s", tool, arguments, encoded(result))
	}
	return structure, nil
}

// callAll calls every tool and checks its answer. It returns the ids of a memory and of a file.
func callAll(ctx context.Context, session *mcp.ClientSession, name string) (id, file string, err error) {
	stored, err := calls(ctx, session, "memory", object{
		"action": "store", "content": "# Tiles\n\nA tile has 256 pixels.", "project_name": name, "event_type": "project-main",
		"state": "active", "metadata": object{"module_name": "tiles"},
	})
	if err != nil {
		return "", "", err
	}
	id, _ = stored["id"].(string)
	for _, call := range []struct {
		tool      string
		arguments object
		has       string
	}{
		{"memory", object{"action": "search", "query": "pixels of a tile"}, id},
		{"memory", object{"action": "update", "id": id, "content": "# Tiles\n\nA tile has 512 pixels."}, `"revision":2`},
		{"memory", object{"action": "retrieve", "id": id}, "512 pixels"},
		{"get_project_main_memory", object{"project_name": name}, "512 pixels"},
		{"get_module_state", object{"module_name": "tiles", "project_name": name}, id},
		{"rules", object{"action": "store", "rule_type": "do", "content": "Measure twice.", "project_name": name},
			`"created":true`},
		{"todo", object{"action": "store", "content": plan, "project_name": name}, `"revision":1`},
		{"memory", object{"action": "get_context", "query": "tiles", "project_name": name}, "Measure twice."},
		{"create_collection", object{"collection_name": "of " + name}, "of " + name},
		{"list_collections", object{}, "of " + name},
		{"search", object{"query": "pixels of a tile"}, `"title":"Tiles"`},
		{"fetch", object{"id": id}, "512 pixels"},
	} {
		answer, err := calls(ctx, session, call.tool, call.arguments)
		if err != nil {
			return "", "", err
		}
		if !strings.Contains(encoded(answer), call.has) {
			return "", "", fmt.Errorf("%s %v gives %s, without %s", call.tool, call.arguments, encoded(answer), call.has)
		}
	}
	uploaded, err := calls(ctx, session, "upload_document",
		object{"filename": "river.txt", "content": "Wide and slow.", "memory_id": id})
	file, _ = uploaded["id"].(string)
	return id, file, err
}

// readAll reads every resource that is listed, and those behind the templates.
func readAll(ctx context.Context, session *mcp.ClientSession, all lists, name, id, file string) error {
	projects, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "souvenir://projects"})
	if err != nil {
		return err
	}
	var known struct {
		Projects []struct {
			ID string `json:"project_id"`
		} `json:"projects"`
	}
	if err := json.Unmarshal([]byte(projects.Contents[0].Text), &known); err != nil || len(known.Projects) != 1 {
		return fmt.Errorf("the projects are %s", encoded(projects))
	}
	project := "souvenir://projects/" + known.Projects[0].ID
	want := map[string]string{
		project: `"project_name":"` + name + `"`, project + "/main": "512 pixels", project +
			"/rules": "# Do\n\nMeasure twice.\n", project + "/todo": plan,
		"souvenir://memories/" + id: "512 pixels", "souvenir://files/" + file: "Wide and slow.",
		"souvenir://projects": `"project_name":"` + name + `"`,
		"souvenir://rules":    "no general rules",
	}
	expand := strings.NewReplacer("souvenir://projects/{project}", project, "souvenir://memories/{id}",
		"souvenir://memories/"+id, "souvenir://files/{id}", "souvenir://files/"+file)
	read := map[string]bool{}
	var uris []string
	for _, resource := range all.resources {
		uris = append(uris, resource.URI)
	}
	for _, template := range all.templates {
		uris = append(uris, expand.Replace(template.URITemplate))
	}
	for _, uri := range uris {
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return fmt.Errorf("%s: %w", uri, err)
		}
		if len(result.Contents) != 1 || result.Contents[0].URI != uri || result.Contents[0].Text == "" ||
			!strings.Contains(result.Contents[0].Text, want[uri]) {
			return fmt.Errorf("%s is %s, without %q", uri, encoded(result), want[uri])
		}
		read[uri] = true
	}
	for uri := range want {
		if !read[uri] {
			return fmt.Errorf("%s is not listed", uri)
		}
	}
	return nil
}

func getAll(ctx context.Context, session *mcp.ClientSession, name string) error {
	for _, get := range []struct {
		prompt    string
		arguments map[string]string
		has       string
	}{
		{"load_project_context", map[string]string{"project": name, "task": "draw"}, "512 pixels"},
		{"save_session", map[string]string{"project": name}, "T1 order granite"},
		{"review_gaps", map[string]string{"project": name}, "Who pays?"},
		{"review_gaps", nil, name},
	} {
		result, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: get.prompt, Arguments: get.arguments})
		if err != nil {
			return fmt.Errorf("%s: %w", get.prompt, err)
		}
		if text := encoded(result.Messages); len(result.Messages) != 1 || !strings.Contains(text, get.has) {
			return fmt.Errorf("%s %v is %s, without %s", get.prompt, get.arguments, text, get.has)
		}
	}
	return nil
}

func completeAll(ctx context.Context, session *mcp.ClientSession, name, id, file string) error {
	for _, complete := range []struct {
		ref             *mcp.CompleteReference
		argument, typed string
		want            string
	}{
		{&mcp.CompleteReference{Type: "ref/prompt", Name: "review_gaps"}, "project", "go-", name},
		{&mcp.CompleteReference{Type: "ref/resource", URI: "souvenir://memories/{id}"}, "id", "til", id},
		{&mcp.CompleteReference{Type: "ref/resource", URI: "souvenir://files/{id}"}, "id", "riv", file},
	} {
		result, err := session.Complete(ctx,
			&mcp.CompleteParams{Ref: complete.ref,
				Argument: mcp.CompleteParamsArgument{Name: complete.argument, Value: complete.typed}})
		if err != nil {
			return err
		}
		if !slices.Equal(result.Completion.Values, []string{complete.want}) {
			return fmt.Errorf("%s is completed to %v, not %s", complete.typed, result.Completion.Values, complete.want)
		}
	}
	return nil
}

// fails calls a tool that must fail with a message for the model.
func fails(ctx context.Context, session *mcp.ClientSession, tool string, arguments object, has string) error {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err
	}
	if !result.IsError || !strings.Contains(encoded(result), has) {
		return fmt.Errorf("%s %v gives %s, without %s", tool, arguments, encoded(result), has)
	}
	return nil
}

func mistakes(ctx context.Context, session *mcp.ClientSession) error {
	if err := fails(ctx, session, "memory", object{"action": "retrieve", "id": "none"},
		"not found, or you have no access"); err != nil {
		return err
	}
	if err := fails(ctx, session, "memory", object{"action": "retrieve"}, "id is missing"); err != nil {
		return err
	}
	_, tool := session.CallTool(ctx, &mcp.CallToolParams{Name: "fly"})
	_, prompt := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "fly"})
	_, resource := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "souvenir://memories/none"})
	for want, err := range map[string]error{"unknown tool": tool, "unknown prompt": prompt,
		"not found, or you have no access": resource} {
		if err == nil {
			return fmt.Errorf("a mistake gives no error, not %q", want)
		}
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("a mistake gives not %q: %w", want, err)
		}
	}
	return nil
}

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
