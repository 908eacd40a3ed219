package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

func (c *cli) retentionCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "retention", GroupID: groupMemories,
		Short: "List, set and remove retention rules for memories",
		Long: `A retention rule sets how long the memories of a collection or a project stay after their last change.
Then they are moved to the trash, or with --delete deleted permanently. If both the collection and the
project have a rule, the shorter one applies. Rules, dos and don'ts, the identity, main memories and
files stay. A running server applies the rules within minutes, "souvenir purge" at once.`,
	}, c.retentionList(), c.retentionSet(), c.retentionRemove())
}

// keptPlace is a collection or a project with a rule, as JSON.
type keptPlace struct {
	Collection  string `json:"collection_name,omitempty"`
	ProjectID   string `json:"project_id,omitempty"`
	ProjectName string `json:"project_name,omitempty"`
	Seconds     int64  `json:"after_seconds"` // since the last change; 0: there is no rule
	Action      string `json:"action"`        // trash or delete; none without a rule
	Due         int    `json:"due"`           // memories that go now
}

func (p keptPlace) String() string {
	if p.Collection != "" {
		return "collection " + plain(p.Collection)
	}
	return "project " + plain(p.ProjectName)
}

// placeFlags are the flags that name a collection or a project of a user.
type placeFlags struct{ collection, project, user *string }

func placeFlagsOf(command *cobra.Command) placeFlags {
	return placeFlags{
		command.Flags().String("collection", "", "the `name` of a collection"),
		command.Flags().String("project", "", "the `id` of a project, or its name"),
		userFlag(command, "the owner of the collection or project"),
	}
}

// with opens the store, and calls fn with the view of the user and the place that the flags name.
func (f placeFlags) with(ctx context.Context, db location, how opening,
	fn func(view *souvenir.Store, q souvenir.DueQuery, p keptPlace) error) error {
	if (*f.collection == "") == (*f.project == "") {
		return misused("give --collection or --project, one of the two")
	}
	return withTrash(ctx, db, *f.user, how, func(view *souvenir.Store) error {
		if *f.collection != "" {
			found, err := view.GetCollection(ctx, *f.collection)
			if err != nil {
				return renamed(err, "collection_name", "--collection")
			}
			return fn(view, souvenir.DueQuery{Collection: found.Name}, keptPlace{Collection: found.Name}.with(found.Retention))
		}
		found, err := view.GetProject(ctx, souvenir.ProjectRef{ID: *f.project})
		if errors.Is(err, souvenir.ErrNotFound) {
			found, err = view.GetProject(ctx, souvenir.ProjectRef{Name: *f.project})
		}
		if err != nil {
			return renamed(renamed(err, "project_id", "--project"), "project_name", "--project")
		}
		return fn(view, souvenir.DueQuery{Project: souvenir.ProjectRef{ID: found.Ref()}},
			keptPlace{ProjectID: found.ID, ProjectName: found.Name}.with(found.Retention))
	})
}

// with returns the place with a rule.
func (p keptPlace) with(r souvenir.Retention) keptPlace {
	p.Seconds, p.Action = int64(r.After/time.Second), "none"
	if r.After != 0 {
		p.Action = "trash"
	}
	if r.Delete {
		p.Action = "delete"
	}
	return p
}

func (c *cli) retentionList() *cobra.Command {
	command := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the retention rules of a user",
		Long: `Lists the user's collections and projects that have a retention rule, and how many of their memories
are due now.`,
		Example: "  souvenir retention list\n  souvenir retention list --user anna --json",
	}
	db, user, asJSON := dbFlag(command), userFlag(command, "the owner of the collections and projects"), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return withTrash(ctx, *db, *user, forReading, func(view *souvenir.Store) error {
			all, err := keptPlaces(ctx, view)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(&c.out, all)
			case len(all) == 0:
				return c.none("there are no retention rules")
			}
			var rows [][]string
			for _, p := range all {
				rows = append(rows, []string{p.String(), ageLabel(p.Seconds), p.Action, fmt.Sprint(p.Due)})
			}
			return table(&c.out, []string{"PLACE", "AFTER", "ACTION", "DUE NOW"}, rows)
		})
	})
}

// keptPlaces are the places with rules that a user manages.
func keptPlaces(ctx context.Context, view *souvenir.Store) ([]keptPlace, error) {
	all := []keptPlace{}
	add := func(q souvenir.DueQuery, p keptPlace) (err error) {
		if p.Seconds == 0 {
			return nil
		}
		p.Due, err = view.Insights().CountDue(ctx, q)
		if errors.Is(err, souvenir.ErrForbidden) { // another user's, who shares it
			return nil
		}
		all = append(all, p)
		return err
	}
	collections, err := view.Collections(ctx)
	if err != nil {
		return nil, err
	}
	for _, found := range collections {
		if found.Owner != view.Access().User { // of another user, who shares memories in it
			continue
		}
		if err := add(souvenir.DueQuery{Collection: found.Name},
			keptPlace{Collection: found.Name}.with(found.Retention)); err != nil {
			return nil, err
		}
	}
	projects, err := view.Projects(ctx)
	if err != nil {
		return nil, err
	}
	for _, found := range projects {
		if err := add(souvenir.DueQuery{Project: souvenir.ProjectRef{ID: found.Ref()}},
			keptPlace{ProjectID: found.ID, ProjectName: found.Name}.with(found.Retention)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ageLabel is a length of time as --after takes it.
func ageLabel(seconds int64) string {
	const day = 24 * 3600
	if seconds%day == 0 {
		return fmt.Sprintf("%dd", seconds/day)
	}
	return (time.Duration(seconds) * time.Second).String()
}

func (c *cli) retentionSet() *cobra.Command {
	command := &cobra.Command{
		Use:   "set [flags]",
		Short: "Set the retention rule of a collection or a project",
		Long: `Sets how long the memories of a collection or a project stay after their last change: --after 90d.
Then they are moved to the trash, from which they can be restored, or with --delete deleted permanently.
--dry-run prints how many memories are due now, and changes nothing. A rule that deletes memories
permanently right now needs --yes.`,
		Example: "  souvenir retention set --project atlas --after 90d --dry-run\n" +
			"  souvenir retention set --collection diary --after 1y --delete --user anna",
	}
	db, place, asJSON := dbFlag(command), placeFlagsOf(command), jsonFlag(command)
	after := command.Flags().String("after", "",
		"maximum `age` of memories since their last change: 90d, 12w or 1y, at least 1d")
	forGood := command.Flags().Bool("delete", false, "delete memories permanently instead of moving them to the trash")
	dry := command.Flags().Bool("dry-run", false, "print how many memories are due now, and change nothing")
	sure := command.Flags().Bool("yes", false, "delete memories that are due now permanently, without asking")
	return c.command(command, func(ctx context.Context, _ []string) error {
		rule, err := retentionOf(*after, *forGood)
		if err != nil {
			return err
		}
		how := forWriting
		if *dry {
			how = forReading
		}
		return place.with(ctx, *db, how, func(view *souvenir.Store, q souvenir.DueQuery, p keptPlace) (err error) {
			p, q.Retention = p.with(rule), rule
			if p.Due, err = view.Insights().CountDue(ctx, q); err != nil {
				return renamed(err, "retention", "--after")
			}
			goes := "are moved to the trash"
			if rule.Delete {
				goes = "are deleted permanently"
			}
			switch {
			case *dry:
				return c.printResult(*asJSON, p, "%s of %s would be removed now, unchanged for %s",
					memoryCount(p.Due), p, *after)
			case rule.Delete && p.Due > 0 && !*sure:
				return misused("--yes is missing: %s of %s would be deleted permanently now", memoryCount(p.Due), p)
			}
			if err := setRule(ctx, view, q, rule); err != nil {
				return renamed(err, "retention", "--delete")
			}
			return c.printResult(*asJSON, p, "memories of %s that do not change for %s %s; due now: %s", p, *after, goes,
				memoryCount(p.Due))
		})
	})
}

// retentionOf reads the flags of a rule.
func retentionOf(after string, forGood bool) (souvenir.Retention, error) {
	if after == "" {
		return souvenir.Retention{}, misused("--after is missing; give the maximum age of memories, such as 90d")
	}
	age, err := parseAge("--after", after)
	if err != nil || age < souvenir.MinRetention || age > souvenir.MaxRetention {
		return souvenir.Retention{}, misused("--after is %q; give 1d to 36500d, such as 90d, 12w or 1y", after)
	}
	return souvenir.Retention{After: age, Delete: forGood}, nil
}

// setRule sets the rule of a place.
func setRule(ctx context.Context, view *souvenir.Store, q souvenir.DueQuery, r souvenir.Retention) (err error) {
	if q.Collection != "" {
		_, err = view.UpdateCollection(ctx, q.Collection, souvenir.CollectionUpdate{Retention: &r})
	} else {
		_, err = view.UpdateProject(ctx, q.Project, souvenir.ProjectUpdate{Retention: &r})
	}
	return err
}

func memoryCount(n int) string {
	return strings.Replace(strings.Replace(entryCount(n), "entry", "memory", 1), "entries", "memories", 1)
}

func (c *cli) retentionRemove() *cobra.Command {
	command := &cobra.Command{
		Use:     "remove [flags]",
		Short:   "Remove the retention rule of a collection or a project",
		Long:    `Removes the retention rule of a collection or a project. Its memories then stay.`,
		Example: "  souvenir retention remove --project atlas --user anna",
	}
	db, place, asJSON := dbFlag(command), placeFlagsOf(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return place.with(ctx, *db, forWriting, func(view *souvenir.Store, q souvenir.DueQuery, p keptPlace) error {
			if err := setRule(ctx, view, q, souvenir.Retention{}); err != nil {
				return err
			}
			return c.printResult(*asJSON, p.with(souvenir.Retention{}), "removed the retention rule of %s", p)
		})
	})
}
