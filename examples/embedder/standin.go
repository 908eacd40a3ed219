package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
)

// meanings are all words that the stand-in understands: each line is one dimension of its vectors.
var meanings = []string{
	"train railway platform departure leaves",
	"eat food peanuts allergy",
	"cello quartet music musical instruments plays",
}

// concepts is the length of its vectors: the meanings, and one dimension for everything else.
const concepts = 4

// standIn is a service with an embeddings endpoint that understands a few words; down, it answers 503.
func standIn(up *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "the model is being loaded", http.StatusServiceUnavailable)
			return
		}
		var request struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var answer struct {
			Data []item `json:"data"`
		}
		for i, text := range request.Input {
			_, text, _ = strings.Cut(text, ": ") // the prompt
			answer.Data = append(answer.Data, item{i, understand(text)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // a client that has gone away needs no answer
	})
}

func understand(text string) []float32 {
	vector := make([]float32, concepts)
	vector[concepts-1] = 0.1
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		for i, meaning := range meanings {
			if strings.Contains(" "+meaning+" ", " "+word+" ") {
				vector[i]++
			}
		}
	}
	return vector
}
