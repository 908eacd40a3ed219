package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// Prompts are the prefixes for the texts of each purpose.
type Prompts struct{ Query, Document string }

// of returns the prompt for a purpose.
func (p Prompts) of(purpose souvenir.Purpose) string {
	if purpose == souvenir.ForQuery {
		return p.Query
	}
	return p.Document
}

// identity returns the part of a model's identity for prompts, since they change the vectors.
func (p Prompts) identity() string {
	if p == (Prompts{}) {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Query + "\x00" + p.Document))
	return "+prompts-" + hex.EncodeToString(sum[:4])
}

// retrievalInstruction is the prompt for queries of several families of models.
const retrievalInstruction = "Represent this sentence for searching relevant passages: "

// trained are the prompts that open models were trained with, by prefixes of their names, from their model cards. The
// first match counts.
var trained = []struct {
	name    string
	prompts Prompts
}{
	{"nomic-embed-text", Prompts{"search_query: ", "search_document: "}},
	{"multilingual-e5", Prompts{"query: ", "passage: "}},
	{"e5-", Prompts{"query: ", "passage: "}},
	{"embeddinggemma", Prompts{"task: search result | query: ", "title: none | text: "}},
	{"snowflake-arctic-embed2", Prompts{"query: ", ""}},
	{"snowflake-arctic-embed-l-v2", Prompts{"query: ", ""}},
	{"snowflake-arctic-embed-m-v2", Prompts{"query: ", ""}},
	{"snowflake-arctic-embed", Prompts{retrievalInstruction, ""}},
	{"mxbai-embed-large", Prompts{retrievalInstruction, ""}},
	{"bge-m3", Prompts{}},
	{"bge-", Prompts{retrievalInstruction, ""}},
	{"qwen3-embedding", Prompts{"Instruct: Given a web search query, retrieve relevant passages that answer the query\n" +
		"Query:", ""}},
}

// PromptsOf returns the prompts for a model, such as nomic-embed-text or intfloat/multilingual-e5-small: the given
// ones, or if nil the ones that the model was trained with.
func PromptsOf(model string, query, document *string) Prompts {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	var p Prompts
	for _, t := range trained {
		if strings.HasPrefix(name, t.name) {
			p = t.prompts
			break
		}
	}
	if query != nil {
		p.Query = *query
	}
	if document != nil {
		p.Document = *document
	}
	return p
}
