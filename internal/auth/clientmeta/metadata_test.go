package clientmeta_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

var methods = []string{"client_secret_basic", "client_secret_post", "none"}

func TestMetadataAreCheckedAndWrittenInTheirStoredForm(t *testing.T) {
	for request, want := range map[string]string{
		`{"redirect_uris":["https://app.example/cb","https://app.example/cb"],"client_id":"x",` +
			`"client_secret":"y"}`: `{"grant_types":["authorization_code","refresh_token"],` +
			`"redirect_uris":["https://app.example/cb"],"response_types":["code"],` +
			`"token_endpoint_auth_method":"client_secret_basic"}`,
		`{"redirect_uris":["cursor://x/y"],"grant_types":["password","authorization_code"],"client_uri":null,
			"token_endpoint_auth_method":"none","x":{"y":[1,null]}}`: `{"grant_types":["authorization_code"],` +
			`"redirect_uris":["cursor://x/y"],` +
			`"response_types":["code"],"token_endpoint_auth_method":"none","x":{"y":[1,null]}}`,
	} {
		var m clientmeta.Metadata
		if err := json.Unmarshal([]byte(request), &m); err != nil {
			t.Fatal(err)
		}
		checked, err := m.Checked(methods)
		if err != nil {
			t.Errorf("%s is refused: %v", request, err)
			continue
		}
		if got, err := json.Marshal(checked); err != nil || string(got) != want {
			t.Errorf("%s becomes %s (%v), want %s", request, got, err, want)
		}
		for i := range m.RedirectURIs {
			m.RedirectURIs[i] = "changed later"
		}
		if got, err := json.Marshal(checked); err != nil || string(got) != want {
			t.Errorf("after the caller's change: got %s, %v; want %v", got, err, want)
		}
	}
}

func TestUnstorableMetadataIsRefused(t *testing.T) {
	for request, argument := range map[string]string{
		`{"redirect_uris":["a:/"],"token_endpoint_auth_method":"jwt"}`: "token_endpoint_auth_method", `[]`: "",
		`null`: "", `{"redirect_uris":"https://app.example/cb"}`: "redirect_uris", `{"contacts":7}`: "contacts",
		`{}`: "redirect_uris", `{"redirect_uris":["http://app.example/cb"]}`: "redirect_uris",
		`{"redirect_uris":["a:/"],"client_name":"\u202egnp.exe"}`:                                   "client_name",
		`{"redirect_uris":["a:/"],"client_name":"\u200b"}`:                                          "client_name",
		`{"redirect_uris":["a:/"],"grant_types":["refresh_token"]}`:                                 "grant_types",
		`{"redirect_uris":["a:/"],"response_types":["token"]}`:                                      "response_types",
		`{"redirect_uris":["a:/"],"logo_uri":"javascript:alert(1)"}`:                                "logo_uri",
		`{"redirect_uris":["a:/"],"x":"` + strings.Repeat("x", clientmeta.MaxBytes) + `"}`:          "",
		`{"redirect_uris":["a:/"],"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: "",
	} {
		var m clientmeta.Metadata
		err := m.UnmarshalJSON([]byte(request))
		if err == nil {
			_, err = m.Checked(methods)
		}
		var known *fault.Error
		if !errors.As(err, &known) || known.Argument != argument ||
			known.Kind != fault.KindInvalid && known.Kind != fault.KindTooLarge {
			t.Errorf("%.80s gives %v, want an error of the argument %q", request, err, argument)
		}
	}
}

func TestURLsOfClientMetadataDocuments(t *testing.T) {
	for id, want := range map[string]bool{
		"https://app.example/client.json": true, "https://app.example:8443/a/b": true,
		"http://app.example/client.json": false, "https://app.example": false, "https://app.example/": false,
		"https://app.example/a/../b": false, "https://u@app.example/c": false, "https://app.example/c?x": false,
		"https://app.example/c#": false, "https://app.example/c?": false, `https://app.example\c`: false, "": false,
		"https://app.example/" + strings.Repeat("x", 3000): false,
	} {
		if got := clientmeta.CheckDocumentURL(id) == nil; got != want {
			t.Errorf("%.60s: %v, want %v", id, got, want)
		}
	}
}

func TestValuesOfVisibleASCII(t *testing.T) {
	for value, kind := range map[string]fault.Kind{"abc-~!": "", "a b": fault.KindInvalid, "a\x7f": fault.KindInvalid,
		"ü": fault.KindInvalid, "123456789": fault.KindTooLarge} {
		err := clientmeta.CheckVisibleASCII("client_secret", value, 8)
		var known *fault.Error
		if errors.As(err, &known); (err == nil) != (kind == "") || known != nil && known.Kind != kind {
			t.Errorf("%q gives %v, want it refused as its row says", value, err)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("the error repeats %q, want an error without it", value)
		}
	}
}
