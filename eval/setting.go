package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
)

// setting is one way to store and to search.
type setting struct {
	name    string // as it was given
	by      evidenceKind
	weights ranking.Weights
	storing
}

// storing holds the settings that affect how memories are stored. Settings with the same values share a store.
type storing struct {
	disk    bool
	direct  bool
	model   string // the folder of a transformer or the name of a service; empty: the built-in model
	centred bool
}

type evidenceKind int

const (
	hybrid evidenceKind = iota
	textOnly
	vectorOnly
)

// settingWord is a word of a setting. To measure something new, add a word here and use it in options, query or
// weights.
type settingWord struct {
	word, about string
	set         func(*setting)
}

var settingWords = []settingWord{
	{"hybrid", "rank by words and by meaning, as the library does by itself", func(s *setting) { s.by = hybrid }},
	{"text", "rank by words only", func(s *setting) { s.by = textOnly }},
	{"vector", "rank by meaning only", func(s *setting) { s.by = vectorOnly }},
	{"alone", "each memory by itself, without its conversation", func(s *setting) {
		s.weights = ranking.Weights{Words: s.weights.Words, Meaning: s.weights.Meaning, Late: s.weights.Late,
			AloneMeaning: s.weights.AloneMeaning, AloneLate: s.weights.AloneLate,
			OtherMeaning: s.weights.OtherMeaning, Known: s.weights.Known}
	}},
	{"disk", "search in the database, without an index in memory", func(s *setting) { s.disk = true }},
	{"centred", "subtract the mean of 300 texts from a transformer's vectors", func(s *setting) { s.centred = true }},
	{"direct", "store with AddMemories; else each memory is stored by the tool memory, as assistants do",
		func(s *setting) { s.direct = true }},
}

func settingHelp() string {
	var b strings.Builder
	for _, w := range settingWords {
		fmt.Fprintf(&b, "  %-12s %s\n", w.word, w.about)
	}
	fmt.Fprintf(&b, "  %-12s embed with a transformer in a folder, or with a service and the key in "+
		"SOUVENIR_EMBEDDER_KEY: %s\n", "model=NAME", strings.Join(serviceNames(), ", "))
	fmt.Fprintf(&b, "  %-12s a weight of internal/retrieval/ranking: late=0; also %s\n", "NAME=VALUE",
		strings.Join(weightNames(), ", "))
	return b.String()
}

// parseSetting reads words with commas between them; a name for tables may stand before them, with a colon.
func parseSetting(value string) (setting, error) {
	name, words, named := strings.Cut(value, ":")
	if !named {
		words = value
	}
	s := setting{name: name, weights: ranking.Default}
	for word := range strings.SplitSeq(words, ",") {
		if model, ok := strings.CutPrefix(word, "model="); ok {
			s.model = model
			continue
		}
		if weight, value, ok := strings.Cut(word, "="); ok {
			if err := s.setWeight(weight, value); err != nil {
				return s, err
			}
			continue
		}
		i := slices.IndexFunc(settingWords, func(w settingWord) bool { return w.word == word })
		if i < 0 {
			return s, fmt.Errorf("%q is no word of a setting; these are:\n%s", word, settingHelp())
		}
		settingWords[i].set(&s)
	}
	return s, nil
}

// setWeight sets a weight of the ranking by its name.
func (s *setting) setWeight(name, value string) error {
	i := slices.Index(weightNames(), name)
	if i < 0 {
		return fmt.Errorf("%q is no weight; these are: %s", name, strings.Join(weightNames(), ", "))
	}
	number, err := strconv.ParseFloat(value, 32)
	if err != nil {
		return fmt.Errorf("%s=%q is no number", name, value)
	}
	reflect.ValueOf(&s.weights).Elem().Field(i).SetFloat(number)
	return nil
}

// weightNames are the fields of ranking.Weights, in small letters.
func weightNames() []string {
	var names []string
	for f := range reflect.TypeFor[ranking.Weights]().Fields() {
		names = append(names, strings.ToLower(f.Name))
	}
	return names
}

// options are those of the store. Ids are numbers, so that ties have the same order in every run: that of storing.
func (s storing) options(embedder souvenir.Embedder) *souvenir.Options {
	n := 0
	options := &souvenir.Options{Embedder: embedder, NewID: func() string {
		n++
		return fmt.Sprintf("%08d", n)
	}}
	if s.disk {
		options.IndexMemory = -1
	}
	return options
}

// query is the search for the answer of a question.
func (s setting) query(
	ctx context.Context, embedder souvenir.Embedder, collection, question string,
) (souvenir.Query, error) {
	q := souvenir.Query{Text: question, Collections: []string{collection}, Limit: depth}
	switch s.by {
	case textOnly:
		q.Vector = make([]float32, embedder.Dimensions()) // zeros, which are similar to nothing
	case vectorOnly:
		vectors, err := embedder.Embed(ctx, souvenir.ForQuery, []string{question})
		if err != nil {
			return q, err
		}
		q.Text, q.Vector = "", vectors[0]
	}
	return q, nil
}
