// Command packaging makes the files of a release for desktop clients: a bundle (MCPB) for each system, and the entry
// for the MCP registry that names them with their hashes.
//
//	go run ./packaging --version 1.2.3 --out dist
//
// It runs in the root of the repository, and calls the go tool.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// system is an operating system that bundles are made for.
type system struct {
	goos, goarch string
	platform     string // as in manifests
}

var systems = []system{
	{"darwin", "arm64", "darwin"}, {"darwin", "amd64", "darwin"},
	{"windows", "amd64", "win32"}, {"windows", "arm64", "win32"},
	{"linux", "amd64", "linux"}, {"linux", "arm64", "linux"},
}

// releases is where the bundles of a release are downloaded.
const releases = "https://github.com/souvenir-ai/souvenir/releases/download"

func main() {
	version := flag.String("version", "", "the `version` of the release, without v")
	out := flag.String("out", "dist", "the `folder` that everything goes into")
	only := flag.String("only", "", "a single `system`, such as linux/amd64")
	flag.Parse()
	if err := release(*version, *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// object is a JSON object.
type object = map[string]any

// release makes the bundles and the registry's entry.
func release(version, out, only string) error {
	if version == "" || strings.HasPrefix(version, "v") {
		return fmt.Errorf("--version is %q; give the version of the release, such as 1.2.3", version)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var packages []object
	for _, s := range systems {
		if only != "" && only != s.goos+"/"+s.goarch {
			continue
		}
		name := fmt.Sprintf("souvenir-%s-%s-%s.mcpb", version, s.goos, s.goarch)
		hash, err := bundle(s, version, filepath.Join(out, name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Println(hash, name)
		packages = append(packages, object{
			"registryType": "mcpb", "identifier": fmt.Sprintf("%s/v%s/%s", releases, version, name), "fileSha256": hash,
			"transport": object{"type": "stdio"},
		})
	}
	if packages == nil {
		return fmt.Errorf("--only is %q, for which no bundle is made", only)
	}
	entry, err := readJSON("packaging/registry/server.json")
	if err != nil {
		return err
	}
	entry["version"], entry["packages"] = version, packages
	encoded, err := json.MarshalIndent(entry, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "server.json"), append(encoded, '\n'), 0o644)
}

// bundle makes the bundle of a system and returns its SHA-256.
func bundle(s system, version, path string) (string, error) {
	program := "souvenir"
	if s.goos == "windows" {
		program += ".exe"
	}
	folder, err := os.MkdirTemp("", "souvenir-bundle-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(folder, program),
		"./cmd/souvenir")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+s.goos, "GOARCH="+s.goarch)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	binary, err := os.ReadFile(filepath.Join(folder, program))
	if err != nil {
		return "", err
	}
	manifest, err := manifestFor(s, version, program)
	if err != nil {
		return "", err
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return "", err
	}
	archive, err := pack([]member{{"manifest.json", 0o644, manifest}, {"LICENSE", 0o644, licence},
		{"server/" + program, 0o755, binary}})
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(archive)
	return hex.EncodeToString(hash[:]), os.WriteFile(path, archive, 0o644)
}

// manifestFor is the manifest of a bundle for one system.
func manifestFor(s system, version, program string) ([]byte, error) {
	manifest, err := readJSON("packaging/mcpb/manifest.json")
	if err != nil {
		return nil, err
	}
	manifest["version"] = version
	manifest["compatibility"] = object{"platforms": []string{s.platform}}
	manifest["server"].(object)["entry_point"] = "server/" + program
	return json.MarshalIndent(manifest, "", "  ")
}

type member struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// pack returns a ZIP archive that has the same bytes each time.
func pack(members []member) ([]byte, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	w.RegisterCompressor(zip.Deflate,
		func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	for _, m := range members {
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		header.SetMode(m.mode)
		part, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(m.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

func readJSON(path string) (object, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var value object
	err = json.Unmarshal(content, &value)
	return value, err
}
