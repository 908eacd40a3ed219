package servertest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

// Propose adds pending proposals of a caller to a project, OWNER/ID, or outside of any, and returns their ids. They are
// stored in the form in which package extract keeps them, with the current state of their targets.
func (w *World) Propose(caller, project, conversation string, proposals ...extract.Proposal) []string {
	w.T.Helper()
	store := w.Store.As(souvenir.Access{User: w.Users[caller]})
	memories := make([]souvenir.NewMemory, len(proposals))
	for i, p := range proposals {
		data, err := json.Marshal(p)
		kept := map[string]any{"conversation": conversation, "at": "2026-03-01T09:00:00Z"}
		if err == nil {
			err = json.Unmarshal(data, &kept)
		}
		if err == nil && p.Target != "" {
			var target souvenir.Memory
			target, err = store.GetMemory(w.T.Context(), p.Target)
			sum := sha256.Sum256([]byte(target.Content))
			kept["revision"], kept["was"] = target.Revision, hex.EncodeToString(sum[:16])
		}
		if err != nil {
			w.T.Fatal(err)
		}
		delete(kept, "content")
		content := p.Content
		if content == "" {
			content = "Proposal to " + string(p.Action)
		}
		memories[i] = souvenir.NewMemory{Content: content, ProjectID: project, EventType: "extract-proposal",
			ValidFrom: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC), Metadata: map[string]any{"proposal": kept}}
	}
	stored, err := store.AddMemories(w.T.Context(), memories, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	ids := make([]string, len(stored))
	for i, m := range stored {
		ids[i] = m.ID
	}
	return ids
}
