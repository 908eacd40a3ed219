package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// setting is one way to store and to search.
type setting struct {
	name    string // as it was given
	ranking ranking
	storing
}

// storing is what has to be known before memories are stored: settings that agree in it share a store.
type storing struct {
	disk   bool
	direct bool
}

type ranking int

const (
	hybrid ranking = iota
	textOnly
	vectorOnly
)

// settingWord is a word of a setting. To measure something new, add a word here and use it in options or query.
type settingWord struct {
	word, about string
	set         func(*setting)
}

var settingWords = []settingWord{
	{"hybrid", "rank by words and by meaning, as the library does by itself", func(s *setting) { s.ranking = hybrid }},
	{"text", "rank by words only", func(s *setting) { s.ranking = textOnly }},
	{"vector", "rank by meaning only", func(s *setting) { s.ranking = vectorOnly }},
	{"disk", "search in the database, without an index in memory", func(s *setting) { s.disk = true }},
	{"direct", "store with AddMemories; else each memory is stored by the tool memory, as assistants do",
		func(s *setting) { s.direct = true }},
}

func settingHelp() string {
	var b strings.Builder
	for _, w := range settingWords {
		fmt.Fprintf(&b, "  %-8s %s\n", w.word, w.about)
	}
	return b.String()
}

// parseSetting reads words with commas between them.
func parseSetting(name string) (setting, error) {
	s := setting{name: name}
	for word := range strings.SplitSeq(name, ",") {
		i := slices.IndexFunc(settingWords, func(w settingWord) bool { return w.word == word })
		if i < 0 {
			return s, fmt.Errorf("%q is no word of a setting; these are:\n%s", word, settingHelp())
		}
		settingWords[i].set(&s)
	}
	return s, nil
}

// options are those of the store. Ids are numbers, so that ties have the same order in every run: that of storing.
func (s storing) options() *souvenir.Options {
	n := 0
	options := &souvenir.Options{NewID: func() string {
		n++
		return fmt.Sprintf("%08d", n)
	}}
	if s.disk {
		options.IndexMemory = -1
	}
	return options
}

// query is the search for the answer of a question.
func (s setting) query(ctx context.Context, collection, question string) (souvenir.Query, error) {
	q := souvenir.Query{Text: question, Collections: []string{collection}, Limit: depth}
	embedder := souvenir.Builtin()
	switch s.ranking {
	case textOnly:
		q.Vector = make([]float32, embedder.Dimensions()) // of zeros: similar to nothing
	case vectorOnly:
		vectors, err := embedder.Embed(ctx, souvenir.ForQuery, []string{question})
		if err != nil {
			return q, err
		}
		q.Text, q.Vector = "", vectors[0]
	}
	return q, nil
}
