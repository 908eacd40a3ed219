package inspect

import (
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// ActivityRecord describes a valid row of a recorded call, with a tool of at most maxTool bytes and a known outcome.
// Exports leave calls out: they are the history of this file.
func ActivityRecord(maxTool int, outcomes []string) transfer.Record {
	word := func(argument, value string) error {
		if len(value) > 2*valid.MaxName {
			return fault.New(fault.KindTooLarge, argument, "{} is %d bytes; at most %d are allowed", len(value),
				2*valid.MaxName)
		}
		return nil
	}
	return transfer.Record{
		Table: "activity", Key: 1,
		Fields: []transfer.RecordField{
			{Name: "id", Check: valid.Name},
			{Name: "user", Check: valid.Name},
			{Name: "credential_id", Check: word},
			{Name: "client", Check: word},
			{Name: "tool", Check: func(argument, value string) error {
				return fault.OrNil(valid.Line(argument, value, maxTool))
			}},
			{Name: "action", Check: word},
			{Name: "memory_id", Check: word},
			{Name: "file_id", Check: word},
			{Name: "outcome", Check: func(argument, value string) error { return valid.Enum(argument, value, outcomes) }},
			{Name: "started_at", Form: transfer.TimeForm},
			{Name: "duration", Form: transfer.CountForm},
			{Name: "bytes", Form: transfer.CountForm},
		},
		Selection: `SELECT uid, user_uid, credential_id, client, tool, action, memory, file, outcome, started_at, ` +
			`duration, bytes FROM activity`, Ordered: `id`,
	}
}
