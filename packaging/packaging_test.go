package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/tools"
)

func schema(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("packaging", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(content, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

const (
	manifestSchema = "mcpb-manifest-v0.3.schema.json"
	registrySchema = "registry-server.schema.json"
)

func mustReadJSON(t *testing.T, path string) object {
	t.Helper()
	value, err := readJSON(path)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPackagingFilesMatchTheirSchemas(t *testing.T) {
	t.Chdir("..")
	for path, name := range map[string]string{"packaging/mcpb/manifest.json": manifestSchema,
		"packaging/registry/server.json": registrySchema} {
		s, file := schema(t, name), mustReadJSON(t, path)
		if err := s.Validate(file); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		// The schema must be able to refuse something.
		for member, wrong := range map[string]any{"name": 5, "version": nil, "description": []any{}} {
			right := file[member]
			if file[member] = wrong; s.Validate(file) == nil {
				t.Errorf("%s: the schema allows %s to be %v, want it refused", path, member, wrong)
			}
			file[member] = right
		}
	}
}

func TestTheManifestDescribesTheProgram(t *testing.T) {
	t.Chdir("..")
	content, err := os.ReadFile("packaging/mcpb/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Tools      []struct{ Name, Description string }
		UserConfig map[string]struct{ Default any } `json:"user_config"`
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		t.Fatal(err)
	}
	known := tools.List()
	if len(manifest.Tools) != len(known) {
		t.Fatalf("the manifest has %d tools; want %d", len(manifest.Tools), len(known))
	}
	for i, tool := range known {
		if manifest.Tools[i].Name != tool.Name || manifest.Tools[i].Description != tool.Title {
			t.Errorf("tool %d of the manifest is %+v; want %s, %s", i, manifest.Tools[i], tool.Name, tool.Title)
		}
	}
	used := map[string]bool{}
	for _, match := range regexp.MustCompile(`\$\{user_config\.([a-z_]+)\}`).FindAllStringSubmatch(string(content), -1) {
		used[match[1]] = true
	}
	for name, setting := range manifest.UserConfig {
		// Hosts leave a setting without a value unchanged, as ${user_config...}.
		if setting.Default == nil || !used[name] {
			t.Errorf("the setting %s has the default %v and is used: %v", name, setting.Default, used[name])
		}
		delete(used, name)
	}
	if len(used) > 0 {
		t.Errorf("settings that do not exist: %v, want used empty", used)
	}
}

func TestABundleStarts(t *testing.T) {
	longtest.Only(t) // it compiles everything as released
	t.Chdir("..")
	out := t.TempDir()
	if err := release("1.2.3", out, runtime.GOOS+"/"+runtime.GOARCH); err != nil {
		t.Fatal(err)
	}
	name := "souvenir-1.2.3-" + runtime.GOOS + "-" + runtime.GOARCH + ".mcpb"
	archive, err := os.ReadFile(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	entry := mustReadJSON(t, filepath.Join(out, "server.json"))
	if err := schema(t, registrySchema).Validate(entry); err != nil {
		t.Error(err)
	}
	hash := sha256.Sum256(archive)
	offered := entry["packages"].([]any)[0].(object)
	if offered["fileSha256"] != hex.EncodeToString(hash[:]) ||
		!strings.HasSuffix(offered["identifier"].(string), "/v1.2.3/"+name) {
		t.Errorf("the registry gets %v, want the hash and the address of the file", offered)
	}

	folder := t.TempDir()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, r); err != nil {
		t.Fatal(err)
	}
	manifest := mustReadJSON(t, filepath.Join(folder, "manifest.json"))
	if err := schema(t, manifestSchema).Validate(manifest); err != nil {
		t.Error(err)
	}
	server := manifest["server"].(object)
	program := filepath.Join(folder, server["entry_point"].(string))
	if info, err := os.Stat(program); err != nil || runtime.GOOS != "windows" && info.Mode()&0o100 == 0 {
		t.Fatalf("%s: %v, %v; want a program", program, info, err)
	}

	// As hosts start it when nothing is set: with the defaults of the settings.
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "mcp")
	cmd.Env = []string{"HOME=" + home, "LocalAppData=" + home, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
	for variable, value := range server["mcp_config"].(object)["env"].(object) {
		setting := strings.TrimSuffix(strings.TrimPrefix(value.(string), "${user_config."), "}")
		set, err := json.Marshal(manifest["user_config"].(object)[setting].(object)["default"])
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, variable+"="+strings.Trim(string(set), `"`))
	}
	cmd.Stdin = strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}` + "\n")
	answer, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(answer), `{"jsonrpc":"2.0","id":1,"result":`) ||
		strings.Count(string(answer), "\n") != 1 {
		t.Errorf(`the program of the bundle answers %q, %v, want no error and one line that begins with `+
			`{"jsonrpc":"2.0","id":1,"result":`, answer, err)
	}
	made := false
	_ = filepath.WalkDir(home, func(path string, _ os.DirEntry, _ error) error {
		made = made || filepath.Base(path) == "souvenir.db"
		return nil
	})
	if !made {
		t.Error("got no file in the data folder, want one")
	}
}

func TestReleasesNeedAVersionAndAKnownSystem(t *testing.T) {
	t.Chdir("..")
	for _, test := range [][2]string{{"", ""}, {"v1.2.3", ""}, {"1.2.3", "plan9/mips"}} {
		if err := release(test[0], t.TempDir(), test[1]); err == nil {
			t.Errorf("a release of version %q for %q was made, want an error", test[0], test[1])
		}
	}
}
