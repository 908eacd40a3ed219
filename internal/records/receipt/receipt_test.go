package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// The examples are from RFC 8785, 3.2.2 and 3.2.3, as far as they have whole numbers.
func TestCanonicalJSON(t *testing.T) {
	for given, want := range map[string]string{
		`{"b": [1, -2, true, null], "a": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"}`: `{"a":"€$\u000f` + `\nA'B\"\\\\\"/",` +
			`"b":[1,-2,true,null]}`,
		`{"1": {}, "": [], "<b>&\u2028": "中文"}`: "{\"\":[],\"1\":{},\"<b>&\u2028\":\"中文\"}",
	} {
		if got, err := canonicalJSON([]byte(given)); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", given, got, err, want)
		}
	}
	for _, given := range []string{"1.5", "1e400", `{"a": 0.1}`, "{", "", `"\ud800"`, `{"\udc00": 1}`} {
		if got, err := canonicalJSON([]byte(given)); err == nil {
			t.Errorf("%s: got %s, want an error", given, got)
		}
	}
}

func signed(tb testing.TB, c Claims) ([]byte, ed25519.PublicKey) {
	tb.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	r, err := Sign(c, "k", public, func(b []byte) []byte { return ed25519.Sign(private, b) })
	if err != nil {
		tb.Fatal(err)
	}
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return encoded, public
}

var example = Claims{Kind: Deletion, User: "安娜<&\u2028>", At: time.Unix(1, 5000).UTC(),
	Counts: map[string]int64{"memory": 3}, Audit: Audit{Seq: 4, Hash: "ff"}}

func TestAReceiptIsWhatWasSigned(t *testing.T) {
	encoded, public := signed(t, example)
	o, err := Parse(encoded)
	if err != nil || !o.Valid || !o.Same || !o.Key.Equal(public) || o.KeyID != "k" || o.Claims.User != example.User {
		t.Fatalf("got %+v, %v; want what was signed", o, err)
	}
	for _, forged := range []string{"", "null", "[]", `{"receipt": {}, "signature": "a.b"}`,
		strings.Replace(string(encoded), "eyJ", "eyI", 1),
		strings.Replace(string(encoded), `"signature": "`, `"signature": "\n`, 1),
		strings.Replace(string(encoded), "{", `{"Receipt": {"kind": "export"},`, 1), // as encoding/json would read it, too
	} {
		if o, err := Parse([]byte(forged)); err == nil {
			t.Errorf("%s: got %+v, want an error", forged, o)
		}
	}
	// If the readable part names a field twice, it may be read differently from what was compared.
	twice := strings.Replace(string(encoded), `"kind": "deletion"`, `"kind": "export", "kind": "deletion"`, 1)
	if o, err := Parse([]byte(twice)); err == nil {
		t.Errorf("a field given twice: got %+v, want an error", o)
	}
}

// A valid signature is refused if its header demands something unknown, or if its parts can be read in two ways.
func TestASignatureInAnotherFormIsRefused(t *testing.T) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	encoded, _ := signed(t, example)
	var r Receipt
	if err := json.Unmarshal(encoded, &r); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(r.Signature, ".")
	change := func(part int, old, new string) string {
		changed := slices.Clone(parts[:2])
		text, err := base64URL.DecodeString(parts[part])
		if err != nil || !bytes.Contains(text, []byte(old)) {
			t.Fatalf("part %d is %s, %v; want %s in it", part, text, err, old)
		}
		changed[part] = base64URL.EncodeToString(bytes.Replace(text, []byte(old), []byte(new), 1))
		sum := strings.Join(changed, ".")
		r.Signature = sum + "." + base64URL.EncodeToString(ed25519.Sign(private, []byte(sum)))
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(again)
	}
	if o, err := Parse([]byte(change(0, `"alg"`, `"alg"`))); err != nil || !o.Valid || !o.Same {
		t.Errorf("unchanged: got %+v, %v; want it valid", o, err)
	}
	for what, forged := range map[string]string{
		"crit":            change(0, `{"alg"`, `{"crit":["exp"],"alg"`),
		"a header twice":  change(0, `"kid":"k"`, `"kid":"x","kid":"k"`),
		"a header's case": change(0, `"kid"`, `"KID"`),
		"a claim twice":   change(1, `"kind":"deletion"`, `"kind":"export","kind":"deletion"`),
		"a space":         change(1, `"kind":`, `"kind": `),
	} {
		if o, err := Parse([]byte(forged)); err == nil {
			t.Errorf("%s: got %+v, want an error", what, o)
		}
	}
}

func FuzzParse(f *testing.F) {
	encoded, _ := signed(f, example)
	f.Add(encoded)
	f.Add([]byte(`{"receipt": {"a": 1}, "signature": "e30.e30.e30"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse(data)
		if err == nil && o.Valid && o.Claims.Format != Format {
			t.Errorf("got %+v, want an error for another format", o)
		}
		_, _ = o.CompareExport(bytes.NewReader(data))
	})
}
