package kernel

import (
	"encoding/json"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
)

// TrashedPlace is the original place of a memory. Its rows may be gone, and their ids reused, by the time it is
// restored, so it also stores their contents.
type TrashedPlace struct {
	Owner             string `json:"owner"` // of the collection; owners here are user ids
	Collection        string `json:"collection"`
	CollectionRow     int64  `json:"collection_row"`
	CollectionCreated int64  `json:"collection_created"`
	OwnSize           int    `json:"own_vectors,omitempty"` // dimensions
	ProjectOwner      string `json:"project_owner,omitempty"`
	Project           string `json:"project,omitempty"`
	ProjectName       string `json:"project_name,omitempty"`
	ProjectRow        int64  `json:"project_row,omitempty"`
	ProjectCreated    int64  `json:"project_created,omitempty"`

	OwnerRow int64 `json:"-"` // row of its owner: the project's owner, else the collection's
}

// TrashedMemory is a memory in the trash, as JSON. Times are microseconds since 1970.
type TrashedMemory struct {
	Version        int              `json:"v"`
	Place          TrashedPlace     `json:"place"`
	Content        string           `json:"content"`
	EventType      string           `json:"event_type,omitempty"`
	State          string           `json:"state,omitempty"`
	Importance     string           `json:"importance,omitempty"`
	Classification string           `json:"classification,omitempty"`
	RuleType       string           `json:"rule_type,omitempty"`
	Key            string           `json:"key,omitempty"`
	EventTime      *int64           `json:"event_time,omitempty"`
	Times          lifespan.Times   `json:"times,omitzero"`
	Metadata       string           `json:"metadata"` // JSON, as stored in the file
	Tags           []string         `json:"tags,omitempty"`
	Revision       int64            `json:"revision"`
	Created        int64            `json:"created_at"`
	Updated        int64            `json:"updated_at"`
	Passages       []TrashedPassage `json:"passages"`
}

// TrashedPassage is a passage with its vector, and the key of the vector's profile.
type TrashedPassage struct {
	Start   int    `json:"start"`
	Length  int    `json:"length"`
	Blank   bool   `json:"blank,omitempty"`
	Profile string `json:"profile,omitempty"`
	Vector  []byte `json:"vector,omitempty"`
}

// TrashedRevision is a past version of a memory.
type TrashedRevision struct {
	Version    int          `json:"v"`
	Place      TrashedPlace `json:"place"` // its place at that time: decides who may see this version
	Number     int64        `json:"revision"`
	Content    string       `json:"content"`
	Attributes string       `json:"attributes"` // JSON
	Created    int64        `json:"created_at"`
}

// TrashItem is a part of an entry as stored in the file.
type TrashItem struct {
	Row      int64
	ID, Data string
}

// Into decodes a part.
func (i TrashItem) Into(part any) error {
	if err := json.Unmarshal([]byte(i.Data), part); err != nil {
		return fault.Damaged(err, "memory %s in the trash", i.ID)
	}
	return nil
}
