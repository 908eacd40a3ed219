package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

func (c *cli) searchCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "search [QUERY...] [flags]", GroupID: groupMemories,
		Short: "Find memories by meaning and by word",
		Long: `Finds memories in the file itself, whether or not a server is running on it. The query is plain
language. The score is between 0 and 1; "souvenir search" shows the best matching passage of each
memory. Without a query, the newest memories are listed. Matching files follow the memories, with the
page, heading or line; "souvenir serve" indexes new files.`,
		Example: `  souvenir search "what did we decide about the database?"
  souvenir search deploy --project atlas --limit 3
  souvenir search --tag infra --sort created_at_desc
  souvenir search "who sings alto?" --json`,
		Args: cobra.ArbitraryArgs,
	}
	flags := command.Flags()
	db, user, asJSON := dbFlag(command), userFlag(command, "the owner of the memories"), jsonFlag(command)
	collections := flags.StringSlice("collection", nil, "only memories in a `collection`, or several, separated by commas")
	project := flags.String("project", "", "only memories of a `project`, by its name or id")
	tags := flags.StringSlice("tag", nil, "only memories with a `tag`, or with any of several, separated by commas")
	limits(command, "collection", "project", "tag")
	limit := flags.Int("limit", souvenir.DefaultLimit, fmt.Sprintf("`number` of memories, 1 to %d", souvenir.MaxLimit))
	offset := flags.Int("offset", 0, "`number` of memories to skip before them")
	orders := []string{string(souvenir.SortRelevance), string(souvenir.SortUpdatedAsc), string(souvenir.SortUpdatedDesc),
		string(souvenir.SortCreatedAsc), string(souvenir.SortCreatedDesc)}
	sort := flags.String("sort", "", "the `order`: "+strings.Join(orders, ", ")+
		" (default relevance, or without a query updated_at_desc)")
	_ = command.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp))
	onlyMemories := flags.Bool("only-memories", false, "do not search the content of files")
	embedder := newEmbedderFlags(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		if *limit < 1 || *limit > souvenir.MaxLimit {
			return misused("--limit is %d; give a number from 1 to %d", *limit, souvenir.MaxLimit)
		}
		query := souvenir.Query{
			Text: strings.Join(args, " "), Collections: *collections, Tags: *tags,
			Limit: *limit, Offset: *offset, Sort: souvenir.SortOrder(*sort), IncludeFiles: *asJSON,
		}
		if *offset == 0 && !*onlyMemories {
			query.Documents = min(*limit, souvenir.MaxDocuments)
		}
		chosen, err := embedder.embedder()
		if err != nil {
			return err
		}
		return withEmbedder(ctx, *db, forReading, chosen, func(store *souvenir.Store) error {
			owner, err := chooseUser(ctx, store, *user)
			if err != nil {
				return err
			}
			view := store.As(souvenir.Access{User: owner.ID, ReadOnly: true})
			if *project != "" {
				if query.ProjectID, err = projectRef(ctx, view, *project); err != nil {
					return err
				}
			}
			found, err := view.Search(ctx, query)
			if err != nil {
				return renamed(err, "sort_order", "--sort")
			}
			if *asJSON {
				return printJSON(&c.out, searchResult{jsonobject.List(found.Hits), found.Total, found.Offset, found.Limit,
					found.Sort, found.HasMore(), jsonobject.List(found.Warnings), found.Documents})
			}
			return c.printHits(found)
		})
	})
}

// searchResult is the output of --json.
type searchResult struct {
	Results  []souvenir.Hit     `json:"results"`
	Total    int                `json:"total"`
	Offset   int                `json:"offset"`
	Limit    int                `json:"limit"`
	Sort     souvenir.SortOrder `json:"sort_order"`
	HasMore  bool               `json:"has_more"`
	Warnings []string           `json:"warnings"`

	Documents []souvenir.DocumentHit `json:"documents,omitempty"` // files found by their content
}

// projectRef finds the project given on a command line, where a name and an id look alike.
func projectRef(ctx context.Context, view *souvenir.Store, named string) (string, error) {
	byID, err := view.GetProject(ctx, souvenir.ProjectRef{ID: named})
	if err == nil {
		return byID.Ref(), nil
	}
	byName, err := view.GetProject(ctx, souvenir.ProjectRef{Name: named})
	if err == nil {
		return byName.Ref(), nil
	}
	return "", fmt.Errorf("--project: %w", err)
}

const (
	beforeText = 63  // columns of a line before the memory's text: score, date and id
	pipedWidth = 200 // columns of a line when there is no terminal
	leastText  = 30  // columns of text even on a narrow terminal
)

func (c *cli) printHits(found souvenir.Results) error {
	for _, warning := range found.Warnings {
		c.warn("%s", plain(warning))
	}
	columns := terminalWidth(c.stdout)
	if columns == 0 {
		columns = pipedWidth
	}
	if len(found.Hits) == 0 {
		if len(found.Documents) == 0 {
			fmt.Fprintln(c.stderr, "nothing found")
		}
		return c.printDocuments(found.Documents, columns)
	}
	var rows [][]string
	for _, hit := range found.Hits {
		text := hit.Content[hit.Start:hit.End]
		if text == "" {
			text = hit.Content
		}
		rows = append(rows, []string{fmt.Sprintf("%.3f", hit.Score), hit.UpdatedAt.Local().Format("2006-01-02"), hit.ID,
			shorten(plain(text), max(leastText, columns-beforeText))})
	}
	if err := table(&c.out, []string{"SCORE", "UPDATED", "ID", "MEMORY"}, rows); err != nil {
		return err
	}
	if found.HasMore() {
		fmt.Fprintf(c.stderr, "%d to %d of %d; --offset %d shows the next\n", found.Offset+1, found.Offset+len(found.Hits),
			found.Total, found.Offset+len(found.Hits))
	}
	if len(found.Documents) > 0 {
		fmt.Fprintln(&c.out)
	}
	return c.printDocuments(found.Documents, columns)
}

// printDocuments prints the files found by their content.
func (c *cli) printDocuments(found []souvenir.DocumentHit, columns int) error {
	if len(found) == 0 {
		return nil
	}
	var rows [][]string
	for _, d := range found {
		rows = append(rows, []string{fmt.Sprintf("%.3f", d.Score), d.FileID, plain(d.Filename), plain(d.Place),
			shorten(plain(d.Text), max(leastText, columns-beforeText-len(d.Filename)-len(d.Place)))})
	}
	return table(&c.out, []string{"SCORE", "FILE", "NAME", "PLACE", "TEXT"}, rows)
}
