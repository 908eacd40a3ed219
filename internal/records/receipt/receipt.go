// Package receipt makes and reads receipts, a store's proof of an export or of the deletion of a user: what, how many,
// when, by whom, and the hashes, signed with the store's key. docs/receipts.md describes the format.
package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/json/jsonescape"
)

// Format is the version of receipts.
const Format = "souvenir-receipt-1"

// Kinds of receipts.
const (
	Export   = "export"
	Deletion = "deletion"
)

// Claims are the content of a receipt.
type Claims struct {
	Format     string           `json:"format"`
	Kind       string           `json:"kind"`
	Store      string           `json:"store"`                // random id of the store, which its copies share
	Namespace  string           `json:"namespace,omitempty"`  // of the user
	Namespaces []string         `json:"namespaces,omitempty"` // the only ones in the export; "": the default one
	Without    []string         `json:"without,omitempty"`    // kinds that the export leaves out: files, vectors
	User       string           `json:"user,omitempty"`       // id of the user whose data it is; empty: all users
	Name       string           `json:"user_name,omitempty"`  // the name of the account
	At         time.Time        `json:"at"`                   // the time of the export or deletion, to the microsecond
	Actor      Actor            `json:"actor"`                // who did it
	Counts     map[string]int64 `json:"counts"`               // numbers of exported or deleted rows, by kind
	Bytes      int64            `json:"bytes"`                // of the export, or of the deleted files
	SHA256     string           `json:"sha256,omitempty"`     // of the whole file of the export
	Parts      map[string]Part  `json:"parts,omitempty"`      // of the export, by the type of its lines
	Key        *ErasedKey       `json:"key_erased,omitempty"` // of a deletion in a store with user keys
	Audit      Audit            `json:"audit"`                // the entry of the audit log about it
}

// ErasedKey is the erased key of a user: no backup of the store can open data that was sealed under it.
type ErasedKey struct {
	ID string    `json:"id"` // in hexadecimal digits, as in sealed values
	At time.Time `json:"at"`
}

// Actor is the person who did it, as recorded in the audit log.
type Actor struct {
	User       string `json:"user,omitempty"` // empty: the operator
	Via        string `json:"via,omitempty"`
	Credential string `json:"credential,omitempty"`
}

// Part is all lines of one type, in their order.
type Part struct {
	Lines  int64  `json:"lines"`
	SHA256 string `json:"sha256"` // each line with its newline
}

// Audit names an entry of the audit log.
type Audit struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Receipt is a signed receipt. Claims are for reading; the signature also contains them, in canonical form.
type Receipt struct {
	Claims    Claims `json:"receipt"`
	Signature string `json:"signature"` // JWS, compact (RFC 7515, 7.1)
}

// header is the protected header of the JWS.
type header struct {
	Algorithm string `json:"alg"` // EdDSA (RFC 8037)
	Key       JWK    `json:"jwk"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// JWK is a public key of Ed25519 (RFC 8037, 2).
type JWK struct {
	Curve string `json:"crv"`
	Type  string `json:"kty"`
	X     string `json:"x"`
}

const (
	algorithm  = "EdDSA"
	headerType = "souvenir-receipt+jws"
)

var base64URL = base64.RawURLEncoding.Strict()

// Sign returns the signed receipt. sign signs bytes with the private half of the key.
func Sign(c Claims, kid string, public ed25519.PublicKey, sign func([]byte) []byte) (Receipt, error) {
	c.Format = Format
	payload, err := Canonical(c)
	if err != nil {
		return Receipt{}, err
	}
	head, err := Canonical(header{algorithm, JWK{"Ed25519", "OKP", base64URL.EncodeToString(public)}, kid, headerType})
	if err != nil {
		return Receipt{}, err
	}
	signed := base64URL.EncodeToString(head) + "." + base64URL.EncodeToString(payload)
	return Receipt{c, signed + "." + base64URL.EncodeToString(sign([]byte(signed)))}, nil
}

// Opened is a parsed receipt with the result of checking its signature.
type Opened struct {
	Claims Claims // that are signed
	KeyID  string
	Key    ed25519.PublicKey // the signing key named in the receipt
	Valid  bool              // the signature is valid for Key
	Same   bool              // the readable claims equal the signed ones
}

// Parse reads a receipt and checks its signature. It returns an error if data is not a receipt; the result reports
// whether the signature is valid.
func Parse(data []byte) (o Opened, err error) {
	value, err := decode(data)
	if err != nil {
		return o, err
	}
	file, _ := value.(map[string]any) // names are compared exactly, which encoding/json does not
	signature, _ := file["signature"].(string)
	parts := strings.Split(signature, ".")
	if len(file) != 2 || file["receipt"] == nil || len(parts) != 3 {
		return o, errors.New("it is not a receipt; expected the fields receipt and signature, and no others")
	}
	var decoded [3][]byte
	for i, part := range parts {
		if decoded[i], err = base64URL.DecodeString(part); err != nil || strings.ContainsAny(part, "\r\n") {
			return o, errors.New("its signature is not base64url")
		}
	}
	var h header
	if err := json.Unmarshal(decoded[0], &h); err != nil {
		return o, fmt.Errorf("the header of its signature is not JSON: %w", err)
	}
	key, err := base64URL.DecodeString(h.Key.X)
	// There must be no other members, such as crit, which a reader would have to understand (RFC 7515, 4.1.11).
	exact, err2 := Canonical(h)
	if err != nil || err2 != nil || !bytes.Equal(exact, decoded[0]) || len(key) != ed25519.PublicKeySize ||
		h.Algorithm != algorithm || h.Type != headerType || h.Key.Curve != "Ed25519" || h.Key.Type != "OKP" {
		return o, errors.New("its signature is not that of a receipt")
	}
	if exact, err := canonicalJSON(decoded[1]); err != nil || !bytes.Equal(exact, decoded[1]) {
		return o, errors.New("the signed part is not canonical JSON")
	}
	if err := json.Unmarshal(decoded[1], &o.Claims); err != nil {
		return o, fmt.Errorf("the signed part is not a receipt: %w", err)
	}
	if o.Claims.Format != Format {
		return o, fmt.Errorf("its format is %q; this program knows %s", o.Claims.Format, Format)
	}
	readable, err := appendCanonical(nil, file["receipt"])
	if err != nil {
		return o, fmt.Errorf("its readable part is not a receipt: %w", err)
	}
	o.KeyID, o.Key = h.KeyID, key
	o.Valid = ed25519.Verify(o.Key, []byte(parts[0]+"."+parts[1]), decoded[2])
	o.Same = bytes.Equal(readable, decoded[1])
	return o, nil
}

// Canonical returns the JSON of a value in the form of RFC 8785. Its numbers must be whole ones below 2^53.
func Canonical(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return canonicalJSON(encoded)
}

func canonicalJSON(encoded []byte) ([]byte, error) {
	value, err := decode(encoded)
	if err != nil {
		return nil, err
	}
	return appendCanonical(nil, value)
}

// decode reads JSON. It refuses duplicate members and half characters in texts, since readers would show these
// differently.
func decode(encoded []byte) (any, error) {
	if !json.Valid(encoded) || !utf8.Valid(encoded) {
		return nil, errors.New("it is not JSON")
	}
	if escape, at := jsonescape.LoneSurrogate(encoded); at >= 0 {
		return nil, fmt.Errorf("%s at byte %d is half a character", escape, at)
	}
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	return decodeValue(d)
}

func decodeValue(d *json.Decoder) (any, error) { // json.Valid has bounded the depth
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			element, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("it has %q twice", name)
			}
			if object[name], err = decodeValue(d); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return object, err
	}
	return token, nil
}

func appendCanonical(b []byte, value any) (_ []byte, err error) {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v), nil
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number", v)
		}
		return strconv.AppendInt(b, n, 10), nil
	case []any:
		b = append(b, '[')
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendCanonical(b, element); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any: // the keys are ASCII, for which the order of UTF-16 is that of bytes
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendCanonical(append(appendString(b, key), ':'), v[key]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fmt.Errorf("a %T is not JSON", value)
}

// appendString escapes what RFC 8785, 3.2.2.2, requires.
func appendString(b []byte, text string) []byte {
	short := map[rune]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	b = append(b, '"')
	for _, r := range text {
		if c, is := short[r]; is {
			b = append(b, '\\', c)
		} else if r < 0x20 {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
