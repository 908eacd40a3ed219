package clientmeta

import (
	"encoding/json"
	"time"
)

// Listed is a client as JSON.
type Listed struct {
	ID           string    `json:"client_id"`
	Name         string    `json:"name"`
	RedirectURIs []string  `json:"redirect_uris"`
	AuthMethod   string    `json:"token_endpoint_auth_method"`
	Kind         string    `json:"kind"`
	Owner        string    `json:"owner,omitempty"`
	Active       bool      `json:"active"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
}

// Registered has the members that a response to a registration adds to the metadata (RFC 7591, section 3.2.1).
type Registered struct {
	ID       string  `json:"client_id"`
	IssuedAt int64   `json:"client_id_issued_at"`
	Secret   string  `json:"client_secret,omitempty"`
	Name     *string `json:"name,omitempty"`   // of a client that a user made
	Active   *bool   `json:"active,omitempty"` // of a client that a user made
}

// Answer returns the response to a registration as JSON. It always has the lists and the method, and with a secret
// client_secret_expires_at, which is 0.
func (m Metadata) Answer(registered Registered) ([]byte, error) {
	answer := m.Object()
	answer["redirect_uris"], answer["token_endpoint_auth_method"] = m.RedirectURIs, m.TokenEndpointAuthMethod
	answer["grant_types"], answer["response_types"] = m.GrantTypes, m.ResponseTypes
	if registered.Secret != "" {
		answer["client_secret_expires_at"] = 0
	}
	encoded, err := json.Marshal(registered)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(encoded, &answer); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}
