package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
)

// learnFlags are the flags of souvenir learn.
type learnFlags struct {
	db                                       *location
	user, project, collection, conversations *string
	review, consolidate, dryRun, asJSON      *bool
	maxCalls, maxTokens                      *int
	model                                    modelFlags
	embedder                                 embedderFlags
}

func (c *cli) learnCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "learn [CONVERSATION...] [flags]", GroupID: groupMemories,
		Short: "Learn facts from conversations, with a language model",
		Long: `Reads the new turns of conversations and asks a model what to remember: of the conversations with these
keys, or of all of the user's, inside and outside projects. Proposals wait for review on the dashboard's
Proposals page; with --review=false they are applied at once, except changes to memories that were not
learned.

With --consolidate, it instead proposes how to merge or correct memories that nearly repeat or contradict
each other, in one collection and project. This also works without a model, by similarity.

You can interrupt a run at any time: results and progress are stored together, so the next run continues
there and proposes nothing twice. --max-calls and --max-tokens limit the cost of a run. The turns are
sent to the model's server.`,
		Example: `  souvenir learn --model gpt-4.1-mini --model-key-file key.txt
  souvenir learn thread-42 --model qwen3 --model-url http://127.0.0.1:11434/v1 --dry-run
  souvenir learn --project atlas --model-api anthropic --model claude-haiku-4-5 --max-calls 20
  souvenir learn --consolidate --project atlas`,
		Args: cobra.ArbitraryArgs,
	}
	flags := command.Flags()
	f := learnFlags{
		db: dbFlag(command), user: userFlag(command, "the owner of the conversations"), asJSON: jsonFlag(command),
		project: flags.String("project", "", "only conversations of a `project`, by its name or id"),
		collection: flags.String("collection", souvenir.DefaultCollection,
			"the `name` of the collection for learned memories"),
		conversations: flags.String("conversations", souvenir.ConversationCollection,
			"the `name` of the collection with the conversations"),
		review:      flags.Bool("review", true, "keep proposals for review; false applies them"),
		consolidate: flags.Bool("consolidate", false, "consolidate memories instead of reading conversations"),
		dryRun:      flags.Bool("dry-run", false, "ask the model, print what it proposes, and store nothing"),
		maxCalls:    flags.Int("max-calls", 0, "ask the model at most this `number` of times; 0 means no limit"),
		maxTokens:   flags.Int("max-tokens", 0, "use at most this `number` of tokens; 0 means no limit"),
		model:       newModelFlags(command),
		embedder:    newEmbedderFlags(command),
	}
	limits(command, "project")
	return c.command(command, func(ctx context.Context, keys []string) error { return c.learn(ctx, f, keys) })
}

func (c *cli) learn(ctx context.Context, f learnFlags, keys []string) error {
	switch {
	case *f.maxCalls < 0:
		return misused("--max-calls is %d; give 0, which means no limit, or more", *f.maxCalls)
	case *f.maxTokens < 0:
		return misused("--max-tokens is %d; give 0, which means no limit, or more", *f.maxTokens)
	case *f.consolidate && len(keys) > 0:
		return misused("--consolidate reads memories, not conversations; omit CONVERSATION, here %q", keys[0])
	}
	model, err := f.model.model()
	if err != nil {
		return err
	}
	if model == nil && !*f.consolidate {
		return misused("--model is missing; give the name of the model that reads the conversations")
	}
	embedder, err := f.embedder.embedder()
	if err != nil {
		return err
	}
	how := forWriting
	if *f.dryRun {
		how = forReading
	}
	return withEmbedder(ctx, *f.db, how, embedder, func(store *souvenir.Store) error {
		owner, err := chooseUser(ctx, store, *f.user)
		if err != nil {
			return err
		}
		progress, end := c.progress()
		defer end()
		run := &learning{flags: f, view: store.As(souvenir.Access{User: owner.ID, Through: "learn"}), progress: progress}
		run.options = extract.Options{Collection: *f.collection, Conversations: *f.conversations, Review: *f.review,
			DryRun: *f.dryRun}
		if model != nil { // a nil pointer would be an extractor
			run.options.Extractor = model
		}
		if *f.project != "" {
			if run.options.ProjectID, err = projectRef(ctx, run.view, *f.project); err != nil {
				return err
			}
		}
		if *f.consolidate {
			err = run.consolidate(ctx)
		} else {
			err = run.all(ctx, keys)
		}
		end()
		return c.printLearned(f, run.done, err)
	})
}

// learning is a run of souvenir learn.
type learning struct {
	flags    learnFlags
	view     *souvenir.Store
	options  extract.Options
	progress souvenir.Progress // nil: none
	done     learned
}

// learned is the report of a run, as --json prints it.
type learned struct {
	Conversations int  `json:"conversations"`
	DryRun        bool `json:"dry_run,omitempty"`
	extract.Report
}

// add adds the report of one call.
func (l *learned) add(r extract.Report) {
	l.Turns += r.Turns
	l.Usage.Calls += r.Usage.Calls
	l.Usage.InputTokens += r.Usage.InputTokens
	l.Usage.OutputTokens += r.Usage.OutputTokens
	l.Applied, l.Kept = append(l.Applied, r.Applied...), append(l.Kept, r.Kept...)
	l.Refused, l.Unread = append(l.Refused, r.Refused...), append(l.Unread, r.Unread...)
	l.More = l.More || r.More
}

// step calls the learner with the rest of the budget; false: it is used up.
func (l *learning) step(o extract.Options, call func(*extract.Learner) (extract.Report, error)) (bool, error) {
	used := l.done.Usage
	for _, bound := range []struct {
		most *int
		used int
		left *int
	}{{l.flags.maxCalls, used.Calls, &o.MaxCalls},
		{l.flags.maxTokens, used.InputTokens + used.OutputTokens, &o.MaxTokens}} {
		if *bound.most == 0 {
			continue
		}
		if *bound.left = *bound.most - bound.used; *bound.left <= 0 {
			l.done.More = true
			return false, nil
		}
	}
	learner, err := extract.New(l.view, o)
	if err != nil {
		return false, err
	}
	r, err := call(learner)
	l.done.add(r)
	return !r.More, renamed(err, "Options.ProjectID", "--project")
}

// consolidate makes the learner consolidate the memories of a place.
func (l *learning) consolidate(ctx context.Context) error {
	o := l.options
	o.Progress = func(done int) { l.show("groups", done, 0) }
	_, err := l.step(o, func(by *extract.Learner) (extract.Report, error) { return by.Consolidate(ctx) })
	return err
}

// all learns from conversations, the oldest first.
func (l *learning) all(ctx context.Context, keys []string) error {
	chosen, err := l.choose(ctx, keys)
	if err != nil {
		return err
	}
	total, before := 0, 0
	for _, info := range chosen {
		total += info.Turns
	}
	for _, info := range chosen {
		o := l.options
		if o.ProjectID = ""; info.ProjectID != "" {
			o.ProjectID = info.Owner + "/" + info.ProjectID
		}
		o.Progress = func(done int) { l.show("turns", before+done, total) }
		more, err := l.step(o, func(by *extract.Learner) (extract.Report, error) { return by.Learn(ctx, info.Key) })
		if err != nil {
			return fmt.Errorf("conversation %q: %w", info.Key, err)
		}
		if !more {
			return nil
		}
		l.done.Conversations++
		before += info.Turns
		l.show("turns", before, total)
	}
	return nil
}

func (l *learning) show(stage string, done, total int) {
	if l.progress != nil {
		l.progress(stage, done, total)
	}
}

// choose returns the conversations with some keys, or else all of the user's own, or of the project.
func (l *learning) choose(ctx context.Context, keys []string) ([]souvenir.ConversationInfo, error) {
	var all []souvenir.ConversationInfo
	seen := map[string]bool{}
	list := souvenir.ConversationList{Collection: *l.flags.conversations, ProjectID: l.options.ProjectID}
	for info, err := range l.view.Conversations(ctx, list) {
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 && info.SharedBy != "" && l.options.ProjectID == "" ||
			len(keys) > 0 && !slices.Contains(keys, info.Key) {
			continue
		}
		if len(keys) > 0 && seen[info.Key] {
			return nil, misused("CONVERSATION %q exists in several projects; choose one with --project", info.Key)
		}
		all, seen[info.Key] = append(all, info), true
	}
	for _, key := range keys {
		if !seen[key] {
			return nil, fmt.Errorf("this user has no conversation %q; \"souvenir learn\" without a CONVERSATION reads all", key)
		}
	}
	slices.SortStableFunc(all, func(a, b souvenir.ConversationInfo) int {
		return cmp.Or(a.FirstAt.Compare(b.FirstAt), cmp.Compare(a.Key, b.Key))
	})
	return all, nil
}

// printLearned prints what a run has done, also before an error.
func (c *cli) printLearned(f learnFlags, r learned, err error) error {
	r.DryRun = *f.dryRun
	if err != nil && r.Turns == 0 && len(r.Kept) == 0 {
		return err
	}
	if *f.asJSON {
		r.Applied, r.Kept = jsonobject.List(r.Applied), jsonobject.List(r.Kept)
		return errors.Join(printJSON(&c.out, r), err)
	}
	if !*f.consolidate {
		fmt.Fprintf(&c.out, "read %s; completed %s\n", counted(r.Turns, "turn"),
			counted(r.Conversations, "conversation"))
	}
	if r.Usage.Calls > 0 {
		fmt.Fprintf(&c.out, "asked the model %s: %d tokens in, %d out\n", counted(r.Usage.Calls, "time"),
			r.Usage.InputTokens, r.Usage.OutputTokens)
	}
	if printed := c.printProposals(r); err == nil {
		err = printed
	}
	for _, refused := range r.Refused {
		c.warn("skipped a proposal of the model because %s: %s", refused.Why,
			shorten(plain(cmp.Or(refused.Proposal.Content, refused.Proposal.Reason)), pipedWidth))
	}
	if len(r.Unread) > 0 {
		c.warn("skipped %s, for which the model gave no usable answer: %s",
			counted(len(r.Unread), "turn"), strings.Join(r.Unread, ", "))
	}
	if r.More && err == nil {
		c.warn("a limit was reached; run the command again to continue")
	}
	return err
}

// printProposals prints proposals and their outcomes.
func (c *cli) printProposals(r learned) error {
	waits, applied := "waits for review", "applied"
	if r.DryRun {
		waits, applied = "would wait", "would be applied"
	}
	var rows [][]string
	known := 0
	row := func(p extract.Proposal, became string) {
		text := p.Content
		if text == "" {
			text = p.Target + ": " + p.Reason
		}
		rows = append(rows, []string{string(p.Action), became, shorten(plain(text), pipedWidth)})
	}
	for _, p := range r.Kept {
		row(p.Proposal, waits)
	}
	for _, a := range r.Applied {
		if a.Proposal.Action == extract.None {
			known++
			continue
		}
		row(a.Proposal, applied)
	}
	fmt.Fprintf(&c.out, "%s: %d for review, %d applied; already known: %d\n", counted(len(rows), "proposal"),
		len(r.Kept), len(rows)-len(r.Kept), known)
	if len(rows) == 0 {
		return nil
	}
	return table(&c.out, []string{"ACTION", "RESULT", "TEXT"}, rows)
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
