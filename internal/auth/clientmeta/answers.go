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

// Registered has the members that every response to a registration has (RFC 7591, section 3.2.1). The other metadata
// come beside them.
type Registered struct {
	ID            string   `json:"client_id"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	Secret        string   `json:"client_secret,omitempty"`
	ExpiresAt     *int64   `json:"client_secret_expires_at,omitempty"` // with a secret
	RedirectURIs  []string `json:"redirect_uris"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
}

// Registered returns the response to a registration at a time, with the client's secret if it has one.
func (m Metadata) Registered(id, secret string, at time.Time) Registered {
	r := Registered{ID: id, IssuedAt: at.Unix(), Secret: secret, RedirectURIs: m.RedirectURIs,
		AuthMethod: m.TokenEndpointAuthMethod, GrantTypes: m.GrantTypes, ResponseTypes: m.ResponseTypes}
	if secret != "" {
		r.ExpiresAt = new(int64) // never
	}
	return r
}

// Added is the response for a client that a user made.
type Added struct {
	Registered
	Name   string `json:"name"`
	Active bool   `json:"active"`
}

// Answer returns an answer about a client as JSON, with all its metadata.
func (m Metadata) Answer(answer any) ([]byte, error) {
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	object := m.Object()
	if err := json.Unmarshal(encoded, &object); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
