package seed

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// Sentences makes n different memories of about 20 words each. Equal seeds make equal memories.
func Sentences(seed uint64, n int) []souvenir.NewMemory {
	all := make([]souvenir.NewMemory, n)
	for i, text := range Texts(rand.New(rand.NewPCG(1, seed)), n, 12, 27) {
		all[i] = souvenir.NewMemory{Content: text, EventType: "decision", Tags: []string{fmt.Sprint("tag", i%50)}}
	}
	return all
}

// Texts makes n texts of least to most words, with the frequencies of words falling as in real text.
func Texts(random *rand.Rand, n, least, most int) []string {
	zipf := rand.NewZipf(random, 1.1, 4, 20_000)
	all := make([]string, n)
	for i := range all {
		words := make([]string, least+random.IntN(most-least+1))
		for j := range words {
			words[j] = word(zipf.Uint64())
		}
		all[i] = strings.Join(words, " ")
	}
	return all
}

// word spells a number in syllables.
func word(n uint64) string {
	syllables := []string{"ka", "lo", "mi", "ren", "tu", "sha", "del", "por", "vin", "ge"}
	spelled := syllables[n%10]
	for n /= 10; n > 0; n /= 10 {
		spelled += syllables[n%10]
	}
	return spelled
}
