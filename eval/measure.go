package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
	"github.com/souvenir-ai/souvenir/tools"
)

// depth is the number of hits that are read for each question.
const depth = 20

// answer is the result of a search for one question; one line of a record.
type answer struct {
	Set      string `json:"set"`
	Setting  string `json:"setting"`
	QID      string `json:"qid"`
	Category string `json:"category"`
	Language string `json:"language,omitempty"`
	Half     string `json:"half,omitempty"`
	Question string `json:"question"`
	// the rank of each memory that answers the question, from 1; 0: not among the best 20; empty: nothing answers it
	Ranks []int          `json:"ranks"`
	Best  souvenir.Parts `json:"best"`  // of the first memory found
	Score float64        `json:"score"` // of the first memory found
	Found []string       `json:"found"` // ids of the memories found, best first
}

// measure loads a set and asks its questions with each setting.
func measure(ctx context.Context, path string, settings []setting, w io.Writer) (all []answer, err error) {
	s, err := readSet(path)
	if err != nil {
		return nil, err
	}
	loaded := map[storing]*loadedSet{}
	defer func() {
		for _, l := range loaded {
			err = errors.Join(err, l.close())
		}
	}()
	for _, setting := range settings {
		l := loaded[setting.storing]
		if l == nil {
			start := time.Now()
			if l, err = load(ctx, s, setting.storing); err != nil {
				return nil, err
			}
			loaded[setting.storing] = l
			fmt.Fprintf(w, "%s: %d memories stored in %.1f s\n", s.name, len(l.ids), time.Since(start).Seconds())
		}
		start := time.Now()
		answers, err := l.ask(ctx, s, setting)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "%s, %s: %d questions asked in %.1f s\n", s.name, setting.name, len(answers),
			time.Since(start).Seconds())
		all = append(all, answers...)
	}
	return all, nil
}

// loadedSet is a set in a store.
type loadedSet struct {
	store    *souvenir.Store
	embedder souvenir.Embedder
	ids      map[string]string // from a memory's id in the store to that in the set
}

func load(ctx context.Context, s set, how storing) (*loadedSet, error) {
	embedder, err := how.embedder(ctx, s)
	if err == nil { // an unavailable service ends the command here
		_, err = embedder.Embed(ctx, souvenir.ForDocument, []string{"a text"})
	}
	if err != nil {
		return nil, err
	}
	store, err := souvenir.Open(ctx, ":memory:", how.options(embedder))
	if err != nil {
		return nil, err
	}
	l := &loadedSet{store: store, embedder: embedder, ids: map[string]string{}}
	for _, conv := range s.convs {
		_, err := store.AddCollection(ctx, souvenir.NewCollection{Name: conv})
		if err == nil && how.direct {
			err = l.add(ctx, conv, s.memories[conv])
		} else if err == nil {
			err = l.storeByTool(ctx, conv, s.memories[conv])
		}
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	if status, err := store.Upkeep().EmbeddingStatus(ctx); err != nil || status.Pending > 0 {
		return nil, errors.Join(err, l.close(), fmt.Errorf("%s: %d passages have no vectors %s", embedder.Model(),
			status.Pending, status.LastError))
	}
	return l, nil
}

func (l *loadedSet) close() error {
	err := l.store.Close()
	if model, ok := l.embedder.(io.Closer); ok {
		err = errors.Join(err, model.Close())
	}
	return err
}

// add stores the memories of a collection at once.
func (l *loadedSet) add(ctx context.Context, conv string, rows []row) error {
	memories := make([]souvenir.NewMemory, len(rows))
	for i, r := range rows {
		memories[i] = souvenir.NewMemory{Collection: conv, Content: r.content(), ShownMetadata: r.stored()}
	}
	stored, err := l.store.AddMemories(ctx, memories, nil)
	for i, m := range stored {
		l.ids[m.ID] = rows[i].ID
	}
	return err
}

// storeByTool stores memories one by one with the tool memory, as over HTTP.
func (l *loadedSet) storeByTool(ctx context.Context, conv string, rows []row) error {
	all := tools.New(l.store, nil)
	for _, r := range rows {
		arguments, err := json.Marshal(map[string]any{
			"action": "store", "collection_name": conv, "content": r.content(), "metadata": r.stored(),
		})
		if err != nil {
			return err
		}
		result, err := all.Call(ctx, "memory", arguments)
		if err != nil {
			return fmt.Errorf("memory %s: %w", r.ID, err)
		}
		encoded, err := json.Marshal(result)
		if err != nil {
			return err
		}
		var stored struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(encoded, &stored); err != nil || stored.ID == "" {
			return fmt.Errorf("memory %s: the tool answered no id: %.200s", r.ID, encoded)
		}
		l.ids[stored.ID] = r.ID
	}
	return nil
}

// ask asks all questions.
func (l *loadedSet) ask(ctx context.Context, s set, how setting) ([]answer, error) {
	before := ranking.Default // of all searches of this process, which asks with one setting after the other
	defer func() { ranking.Default = before }()
	ranking.Default = how.weights
	var answers []answer
	for _, q := range s.questions {
		query, err := how.query(ctx, l.embedder, q.Conv, q.Question)
		if err != nil {
			return nil, err
		}
		results, err := l.store.Search(ctx, query)
		if err == nil && how.model != "" && len(results.Warnings) > 0 { // otherwise it would measure words alone
			err = errors.New(strings.Join(results.Warnings, "; "))
		}
		if err != nil {
			return nil, fmt.Errorf("question %s: %w", q.QID, err)
		}
		answers = append(answers, l.judge(s, how, q, results))
	}
	return answers, nil
}

func (l *loadedSet) judge(s set, how setting, q row, results souvenir.Results) answer {
	a := answer{Set: s.name, Setting: how.name, QID: q.QID, Category: q.Category, Language: q.Language, Half: q.Half,
		Question: q.Question, Ranks: []int{}, Found: []string{}}
	for _, h := range results.Hits {
		a.Found = append(a.Found, l.ids[h.ID])
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(q.Evidence))) {
		a.Ranks = append(a.Ranks, slices.Index(a.Found, id)+1)
	}
	slices.Sort(a.Ranks)
	if len(results.Hits) > 0 {
		a.Best, a.Score = results.Hits[0].Parts, results.Hits[0].Score
	}
	return a
}
