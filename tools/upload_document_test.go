package tools_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestUploadDocument(t *testing.T) {
	pixel := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	runScenarios(t, []scenario{
		{
			name: "link a file", tool: "upload_document",
			args: `{"file_id": "{loose}", "memory_id": "{pillars}", "description": "pages", "tags": "a, b", "category": ` +
				`"notes"}`,
			want: map[string]any{"id": "{loose}", "memory_id": "{pillars}", "description": "pages", "tags": []any{"a", "b"},
				"category": "notes", "size": 5},
		},
		{
			name: "link it elsewhere and keep its description", tool: "upload_document",
			args: `{"file_id": "{plan}", "memory_id": "{pillars}", "description": "", "tags": []}`,
			want: map[string]any{"id": "{plan}", "memory_id": "{pillars}", "filename": "plan.txt"},
		},
		{
			name: "link with arguments of new files", tool: "upload_document",
			args: `{"file_id": "{loose}", "memory_id": "{pillars}", "filename": "x.txt"}`,
			want: map[string]any{"filename": "loose.txt"}, says: []string{"filename", "new files"},
		},
		{
			name: "a text", tool: "upload_document",
			args: `{"filename": "notes.md", "mime_type": "text/markdown", "content": "# Notes", "memory_id": "{main}"}`,
			want: map[string]any{"filename": "notes.md", "mime_type": "text/markdown", "size": 7, "memory_id": "{main}",
				"project_id": "p-bridge", "owner": "anna", "tags": []any{}},
		},
		{
			name: "bytes", tool: "upload_document", args: `{"filename": "pixel.png", "content_base64": "` + pixel + `"}`,
			want: map[string]any{"filename": "pixel.png", "mime_type": "image/png", "size": 70, "memory_id": nil},
		},
		{
			name: "bytes in a data URL", tool: "upload_document",
			args: `{"filename": "pixel", "content_base64": "data:image/png;base64,` + pixel + `"}`,
			want: map[string]any{"mime_type": "image/png", "size": 70},
		},
		{
			name: "into a project", tool: "upload_document",
			args: `{"filename": "a.txt", "content": "x", "project_name": "Bridge"}`,
			want: map[string]any{"project_id": "p-bridge", "memory_id": nil},
		},
		{
			name: "a path for a name", tool: "upload_document", args: `{"filename": "../../etc/passwd", "content": "x"}`,
			want: map[string]any{"filename": "passwd"},
		},
		{name: "nothing", tool: "upload_document", args: `{}`, kind: invalid, argument: "file_id",
			says: []string{"file_id and memory_id", "content_base64"}},
		{name: "a file without a memory", tool: "upload_document", args: `{"file_id": "{loose}"}`, kind: invalid,
			argument: "memory_id", says: []string{"memory_id is missing"}},
		{name: "a memory without a file", tool: "upload_document", args: `{"memory_id": "{main}"}`, kind: invalid,
			argument: "file_id"},
		{name: "a file and content", tool: "upload_document",
			args: `{"file_id": "{loose}", "memory_id": "{main}", "content": "x"}`, kind: invalid, argument: "file_id"},
		{name: "content twice", tool: "upload_document", args: `{"filename": "a", "content": "x", "content_base64": "eA=="}`,
			kind: invalid, argument: "content_base64"},
		{name: "content without a name", tool: "upload_document", args: `{"content": "x"}`, kind: invalid,
			argument: "filename", says: []string{"filename is missing"}},
		{name: "no base64", tool: "upload_document", args: `{"filename": "a", "content_base64": "!"}`, kind: invalid,
			argument: "content_base64", says: []string{"base64"}},
		{name: "base64 that ends early", tool: "upload_document", args: `{"filename": "a", "content_base64": "eHh4e"}`,
			kind: invalid, argument: "content_base64"},
		{name: "the wrong type", tool: "upload_document",
			args: `{"filename": "a.png", "mime_type": "image/png", "content": "%PDF-1.7"}`, kind: invalid, argument: "mime_type",
			says: []string{"image/png"}},
		{name: "an unknown file", tool: "upload_document", args: `{"file_id": "nothing", "memory_id": "{main}"}`,
			kind: notFound, argument: "file_id", says: []string{`"nothing"`}},
		{name: "an unknown memory", tool: "upload_document", args: `{"file_id": "{loose}", "memory_id": "nothing"}`,
			kind: notFound, argument: "memory_id", says: []string{`"nothing"`}},
		{name: "a memory and a project", tool: "upload_document",
			args: `{"filename": "a", "content": "x", "memory_id": "{main}", "project_id": "p-bridge"}`, kind: invalid,
			argument: "project_id"},
	})
}

func TestUploadedBytesAreTheSentOnesInEveryBase64(t *testing.T) {
	w := newWorld(t)
	content := strings.Repeat("\x00\xfb\xff\xfe bytes", 100) + "?"
	std := base64.StdEncoding.EncodeToString([]byte(content))
	for name, encoded := range map[string]string{
		"standard": std, "without padding": base64.RawStdEncoding.EncodeToString([]byte(content)),
		"for URLs":                 base64.URLEncoding.EncodeToString([]byte(content)),
		"for URLs without padding": base64.RawURLEncoding.EncodeToString([]byte(content)),
		"in lines":                 std[:76] + "\r\n" + std[76:152] + "\n" + std[152:] + "\n",
	} {
		stored := w.must("owner", "upload_document",
			encode(t, map[string]any{"filename": "a.bin", "content_base64": encoded}))
		r, err := w.store.As(personas["owner"].access).OpenFile(t.Context(), fmt.Sprint(stored["id"]))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != content {
			t.Errorf("%s: %d bytes come back (%v), want %d", name, len(got), err, len(content))
		}
		r.Close()
	}
}
