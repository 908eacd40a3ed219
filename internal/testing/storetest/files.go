package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing/iotest"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func files() concept {
	return concept{"Files", []promise{
		{"come back byte for byte, in every size", filesOfEverySize},
		{"have what they were stored with, and what was found out", fileMetadata},
		{"are read from any place, and written to anything", fileReading},
		{"cannot be read once they are deleted, closed, or the context has ended", fileReadingEnds},
		{"do not exist if reading their content fails", fileContentFails},
		{"of another size than announced are not there", fileSizeDiffers},
		{"with a wrong argument are refused before anything is read", fileArguments},
		{"whose declared type the content contradicts are refused", fileTypeContradicted},
		{"report their progress", fileProgress},
		{"are linked to a memory, to another, and to none", fileLinks},
		{"are described again", fileUpdates},
		{"are listed by all that they have", fileListing},
		{"are listed in pages that neither repeat nor skip", filePages},
		{"may be deleted while they are listed", fileListingDeletes},
		{"stay when their memory is deleted", fileOutlivesMemory},
		{"move with their memory", fileMovesWithMemory},
		{"are listed by searches", fileSearch},
		{"of strangers are not there", fileStranger},
		{"of a limited view are in its projects", fileLimited},
		{"are refused by a view for reading", fileReadOnly},
		{"can be read by a hook before they are there", fileHooks},
	}}
}

// bytesOf returns content that differs from any other.
func bytesOf(size int, seed uint64) []byte {
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	data := make([]byte, size)
	_, _ = random.Read(data) // never fails
	return data
}

// addFile stores a file.
func (f *fixture) addFile(n souvenir.NewFile, content string) souvenir.File {
	f.Helper()
	file, err := f.store.AddFile(f.ctx, n, strings.NewReader(content))
	f.check("AddFile "+brief(n), err)
	return file
}

func (f *fixture) getFile(id string) souvenir.File {
	f.Helper()
	file, err := f.reader.GetFile(f.ctx, id)
	f.check("GetFile "+id, err)
	return file
}

func (f *fixture) updateFile(id string, u souvenir.FileUpdate) souvenir.File {
	f.Helper()
	file, err := f.store.UpdateFile(f.ctx, id, u)
	f.check("UpdateFile "+id, err)
	return file
}

// readFile reads all of a file.
func (f *fixture) readFile(id string) string {
	f.Helper()
	r, err := f.reader.OpenFile(f.ctx, id)
	f.check("OpenFile "+id, err)
	data, err := io.ReadAll(r)
	f.check("reading "+id, err)
	f.check("Close", r.Close())
	return string(data)
}

func filesOfEverySize(f *fixture) {
	const chunk, batch = 256 << 10, 4 << 20
	stored := 0
	for i, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, batch - 1, batch, batch + 1, 2*batch + 3*chunk + 7} {
		data := bytesOf(size, uint64(i))
		for k, announced := range []int{0, size} {
			if !longtest.Part(i+k, 1, 2) {
				continue
			}
			stored++
			name := fmt.Sprintf("%d of %d.bin", size, announced)
			file, err := f.store.AddFile(f.ctx, souvenir.NewFile{Filename: name, Size: int64(announced)},
				iotest.HalfReader(bytes.NewReader(data)))
			f.check("AddFile "+name, err)
			sum := sha256.Sum256(data)
			f.equal("size and SHA-256 of "+name, []any{file.Size, file.SHA256}, []any{int64(size), hex.EncodeToString(sum[:])})
			if f.readFile(file.ID) != string(data) {
				f.Errorf("%s comes back otherwise, want the same", name)
			}
		}
	}
	f.equal("files", len(f.listFiles(souvenir.FileList{})), stored)
}

func fileMetadata(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "apollo"})
	n := souvenir.NewFile{
		Filename: `C:\notes\Plan: one.txt`, MIMEType: "Text/Plain; Charset=UTF-8", Description: "what we do",
		Category: "plans", Tags: []string{" b ", "a", "b"}, MemoryID: m.ID,
	}
	file := f.addFile(n, "first, then")
	sum := sha256.Sum256([]byte("first, then"))
	f.equal("stored", file, souvenir.File{
		ID: file.ID, MemoryID: m.ID, Filename: "Plan_ one.txt", MIMEType: "text/plain; charset=UTF-8", Size: 11,
		SHA256: hex.EncodeToString(sum[:]), Description: "what we do",
		Tags: []string{"b", "a"}, Category: "plans", Owner: souvenir.LocalUser, ProjectID: "apollo", CreatedAt: f.clock.Now(),
		UpdatedAt: f.clock.Now(), Text: souvenir.FileText{State: souvenir.TextWaiting},
	})
	f.equal("read again", f.getFile(file.ID), file)
	f.equal("summary", file.Summary(),
		souvenir.FileSummary{ID: file.ID, Filename: "Plan_ one.txt", MIMEType: "text/plain; charset=UTF-8", Size: 11})
	at, waiting := `"2026-03-01T09:00:00Z"`, `,"text":{"state":"waiting","passages":0,"characters":0}`
	f.equal("as JSON", toJSON(file), `{"id":"`+file.ID+`","memory_id":"`+m.ID+
		`","filename":"Plan_ one.txt","mime_type":"text/plain; charset=UTF-8","size":11,`+
		`"description":"what we do","tags":["b","a"],"category":"plans","sha256":"`+file.SHA256+
		`","owner":"local","project_id":"apollo","created_at":`+at+`,"updated_at":`+at+waiting+`}`)
	bare := f.addFile(souvenir.NewFile{}, "\x89PNG\r\n\x1a\n...")
	f.equal("without a name or type", []string{bare.Filename, bare.MIMEType}, []string{"file.png", "image/png"})
	f.equal("as JSON", toJSON(bare), `{"id":"`+bare.ID+
		`","memory_id":null,"filename":"file.png","mime_type":"image/png","size":11,`+
		`"description":"","tags":[],"category":"","sha256":"`+bare.SHA256+`","owner":"local","created_at":`+at+
		`,"updated_at":`+at+waiting+`}`)
}

func fileReading(f *fixture) {
	data := bytesOf(600<<10, 7)
	id := f.addFile(souvenir.NewFile{}, string(data)).ID
	r, err := f.reader.OpenFile(f.ctx, id)
	f.check("OpenFile", err)
	defer r.Close()
	f.equal("its file", r.File(), f.getFile(id))
	f.check("an io.ReadSeeker and io.ReaderAt", iotest.TestReader(r, data))

	_, err = r.Seek(-300<<10, io.SeekEnd)
	f.check("Seek", err)
	var b bytes.Buffer
	n, err := r.WriteTo(&b)
	f.check("WriteTo", err)
	if n != 300<<10 || !bytes.Equal(b.Bytes(), data[300<<10:]) {
		f.Errorf("WriteTo wrote %d bytes, or other ones, want %v, from %.200q on", n, 300<<10, data[300<<10:])
	}
	n, err = r.WriteTo(&b)
	f.equal("WriteTo at the end", []any{n, err}, []any{int64(0), nil})
	_, err = r.Seek(1<<20, io.SeekStart)
	f.check("Seek past the end", err)
	_, err = r.Read(make([]byte, 1))
	f.equal("Read past the end", err, io.EOF)
	_, err = r.Seek(0, 3)
	f.failsAt("Seek from nowhere", err, souvenir.ErrInvalid, "whence", "3")
	_, err = r.Seek(-1, io.SeekStart)
	f.failsAt("Seek before the beginning", err, souvenir.ErrInvalid, "offset", "-1")
	_, err = r.ReadAt(make([]byte, 1), -1)
	f.failsAt("ReadAt before the beginning", err, souvenir.ErrInvalid, "offset", "-1")

	_, err = r.Seek(0, io.SeekStart)
	f.check("Seek", err)
	broken := errors.New("the pipe is broken")
	_, err = r.WriteTo(failingWriter{broken})
	f.equal("WriteTo to what fails", err, broken)
	_, err = r.WriteTo(failingWriter{})
	f.equal("WriteTo to what takes nothing", err, io.ErrShortWrite)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func fileReadingEnds(f *fixture) {
	id := f.addFile(souvenir.NewFile{}, string(bytesOf(600<<10, 8))).ID
	ctx, cancel := context.WithCancel(f.ctx)
	cancelled, err := f.reader.OpenFile(ctx, id)
	f.check("OpenFile", err)
	closed, err := f.reader.OpenFile(f.ctx, id)
	f.check("OpenFile", err)
	f.check("Close", closed.Close())
	f.check("Close again", closed.Close())
	_, err = closed.Read(make([]byte, 1))
	f.fails("Read after Close", err, souvenir.ErrClosed)
	_, err = closed.Seek(0, io.SeekStart)
	f.fails("Seek after Close", err, souvenir.ErrClosed)
	cancel()
	if _, err := cancelled.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		f.Errorf("Read after the context has ended gives %v, want context.Canceled", err)
	}

	deleted, err := f.reader.OpenFile(f.ctx, id)
	f.check("OpenFile", err)
	_, err = deleted.Read(make([]byte, 1))
	f.check("Read", err)
	f.check("DeleteFile", f.store.DeleteFile(f.ctx, id, nil))
	_, err = deleted.ReadAt(make([]byte, 1), 500<<10)
	f.failsAt("ReadAt of a deleted file", err, souvenir.ErrNotFound, "file_id", id)
	f.failsAt("DeleteFile again", f.store.DeleteFile(f.ctx, id, nil), souvenir.ErrNotFound, "file_id", id)
	_, err = f.reader.GetFile(f.ctx, id)
	f.failsAt("GetFile", err, souvenir.ErrNotFound, "file_id", id)
	_, err = f.reader.OpenFile(f.ctx, id)
	f.failsAt("OpenFile", err, souvenir.ErrNotFound, "file_id", id)
}

// endless reads the same bytes forever.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// impossible is a reader that returns an impossible count.
type impossible int

func (n impossible) Read([]byte) (int, error) { return int(n), nil }

// readerFunc adapts a function to io.Reader.
type readerFunc func(p []byte) (int, error)

func (read readerFunc) Read(p []byte) (int, error) { return read(p) }

func fileContentFails(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x"})
	broken := errors.New("the line went dead")
	for _, size := range []int64{0, 10, 5 << 20, 9 << 20} {
		if size > 5<<20 && !longtest.All() {
			continue
		}
		content := io.MultiReader(io.LimitReader(endless{}, size), iotest.ErrReader(broken))
		_, err := f.store.AddFile(f.ctx, souvenir.NewFile{MemoryID: m.ID, ProjectID: ""}, content)
		f.failsAt(fmt.Sprintf("content that fails after %d bytes", size), err, souvenir.ErrInvalid, "content",
			fmt.Sprint(size), "the line went dead")
		if !errors.Is(err, broken) {
			f.Errorf("its error is not the cause: %v, want %v", err, broken)
		}
		ctx, cancel := context.WithCancel(f.ctx)
		content = io.MultiReader(io.LimitReader(endless{}, size),
			readerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }))
		if _, err = f.store.AddFile(ctx, souvenir.NewFile{MemoryID: m.ID}, content); !errors.Is(err, context.Canceled) {
			f.Errorf("a context that ends after %d bytes gives %v, want context.Canceled", size, err)
		}
		_, err = f.store.AddFile(f.ctx, souvenir.NewFile{}, io.MultiReader(io.LimitReader(endless{}, size), impossible(-1)))
		f.failsAt("a reader that lies", err, souvenir.ErrInvalid, "content", "impossible")
	}
	_, err := f.store.AddFile(f.ctx, souvenir.NewFile{}, impossible(1<<40))
	f.failsAt("a reader that lies", err, souvenir.ErrInvalid, "content", "impossible")
	_, err = f.store.AddFile(f.ctx, souvenir.NewFile{}, impossible(0))
	f.failsAt("a reader that gives nothing", err, souvenir.ErrInvalid, "content")
	_, err = f.store.AddFile(f.ctx, souvenir.NewFile{ProjectID: "unmade"}, iotest.ErrReader(context.DeadlineExceeded))
	f.equal("a reader that comes too late", err, context.DeadlineExceeded)
	same(f, "files", f.listFiles(souvenir.FileList{}), nil)
	f.equal("files of the memory", f.search(souvenir.Query{}).Hits[0].FileCount, 0)
}

func fileSizeDiffers(f *fixture) {
	for _, announced := range []int64{1, 9, 11, 5 << 20} {
		_, err := f.store.AddFile(f.ctx, souvenir.NewFile{Size: announced}, strings.NewReader("ten bytes."))
		f.failsAt(fmt.Sprintf("ten bytes of %d", announced), err, souvenir.ErrInvalid, "size", fmt.Sprint(announced))
	}
	_, err := f.store.AddFile(f.ctx, souvenir.NewFile{Size: 5 << 20}, io.LimitReader(endless{}, 9<<20))
	f.failsAt("too many", err, souvenir.ErrInvalid, "size")
	_, err = f.store.AddFile(f.ctx, souvenir.NewFile{Size: 9 << 20}, io.LimitReader(endless{}, 5<<20))
	f.failsAt("too few", err, souvenir.ErrInvalid, "size")
	same(f, "files", f.listFiles(souvenir.FileList{}), nil)
}

func fileArguments(f *fixture) {
	unread := readerFunc(func([]byte) (int, error) { f.Errorf("the content is read"); return 0, io.EOF })
	m := f.add(souvenir.NewMemory{Content: "x"})
	for _, c := range []struct {
		file     souvenir.NewFile
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{souvenir.NewFile{Size: -1}, souvenir.ErrInvalid, "size", "-1"},
		{souvenir.NewFile{Size: 101 << 20}, souvenir.ErrTooLarge, "size", fmt.Sprint(100 << 20)},
		{souvenir.NewFile{MIMEType: "png"}, souvenir.ErrInvalid, "mime_type", `"png"`},
		{souvenir.NewFile{MIMEType: "image/"}, souvenir.ErrInvalid, "mime_type", `"image/"`},
		{souvenir.NewFile{MIMEType: "text/plain; " + strings.Repeat("a", 300) + "=b"}, souvenir.ErrInvalid, "mime_type",
			"255"},
		{souvenir.NewFile{Category: "a\nb"}, souvenir.ErrInvalid, "category", "U+000A"},
		{souvenir.NewFile{Category: strings.Repeat("c", 65)}, souvenir.ErrTooLarge, "category", "64"},
		{souvenir.NewFile{Description: strings.Repeat("d", 4097)}, souvenir.ErrTooLarge, "description", "4096"},
		{souvenir.NewFile{Description: "\xff"}, souvenir.ErrInvalid, "description", "UTF-8"},
		{souvenir.NewFile{Tags: []string{"ok", ""}}, souvenir.ErrInvalid, "tags", "tags[1]"},
		{souvenir.NewFile{ProjectID: "a\x00"}, souvenir.ErrInvalid, "project_id", "U+0000"},
		{souvenir.NewFile{ProjectID: "ann/none"}, souvenir.ErrInvalid, "project_id", "ann/none"},
		{souvenir.NewFile{MemoryID: "nowhere"}, souvenir.ErrNotFound, "memory_id", `"nowhere"`},
		{souvenir.NewFile{MemoryID: m.ID, ProjectID: "apollo"}, souvenir.ErrInvalid, "project_id", "memory_id"},
	} {
		_, err := f.store.AddFile(f.ctx, c.file, unread)
		f.failsAt("AddFile "+brief(c.file), err, c.kind, c.argument, c.says)
	}
	_, err := f.store.AddFile(f.ctx, souvenir.NewFile{}, nil)
	f.failsAt("AddFile of nil", err, souvenir.ErrInvalid, "content")
	same(f, "files", f.listFiles(souvenir.FileList{}), nil)
}

func fileTypeContradicted(f *fixture) {
	page := "<!doctype html><script>alert(1)</script>"
	for _, declared := range []string{"image/png", "image/svg+xml", "audio/mpeg", "video/mp4", "application/pdf; a=b"} {
		_, err := f.store.AddFile(f.ctx, souvenir.NewFile{MIMEType: declared}, strings.NewReader(page))
		f.failsAt("a page declared as "+declared, err, souvenir.ErrInvalid, "mime_type", declared, "text/html")
	}
	same(f, "files", f.listFiles(souvenir.FileList{}), nil)
	f.equal("a picture declared as another", f.addFile(souvenir.NewFile{MIMEType: "image/jpeg"}, "GIF89a...").MIMEType,
		"image/gif")
	f.equal("a page declared as text", f.addFile(souvenir.NewFile{MIMEType: "text/plain"}, page).MIMEType, "text/plain")
}

func fileProgress(f *fixture) {
	var heard []string
	progress := func(stage string, done, total int) { heard = append(heard, fmt.Sprint(stage, " ", done, "/", total)) }
	_, err := f.store.AddFile(f.ctx, souvenir.NewFile{Size: 9 << 20, Progress: progress}, io.LimitReader(endless{}, 9<<20))
	f.check("AddFile", err)
	same(f, "progress", heard, []string{"store 4194304/9437184", "store 8388608/9437184", "store 9437184/9437184"})
}

func fileLinks(f *fixture) {
	one := f.add(souvenir.NewMemory{Content: "one", ProjectID: "apollo"})
	two := f.add(souvenir.NewMemory{Content: "two"})
	file := f.addFile(souvenir.NewFile{Filename: "a", ProjectName: "Gemini"}, "a")
	gemini := file.ProjectID
	f.equal("unlinked", []string{file.MemoryID, f.add(souvenir.NewMemory{Content: "x", ProjectName: "Gemini"}).ProjectID},
		[]string{"", gemini})
	link := func(memory string) *string { return &memory }

	linked := f.updateFile(file.ID, souvenir.FileUpdate{MemoryID: link(one.ID)})
	f.equal("linked", []string{linked.MemoryID, linked.ProjectID}, []string{one.ID, "apollo"})
	f.equal("the same again", f.updateFile(file.ID, souvenir.FileUpdate{MemoryID: link(one.ID)}), linked)
	_, err := f.store.UpdateFile(f.ctx, file.ID, souvenir.FileUpdate{Project: &souvenir.ProjectRef{ID: gemini}})
	f.failsAt("moving a linked file", err, souvenir.ErrInvalid, "project_id")
	_, err = f.store.UpdateFile(f.ctx, file.ID,
		souvenir.FileUpdate{Project: &souvenir.ProjectRef{ID: gemini}, MemoryID: link(two.ID)})
	f.failsAt("linking and moving", err, souvenir.ErrInvalid, "project_id")
	_, err = f.store.UpdateFile(f.ctx, file.ID, souvenir.FileUpdate{MemoryID: link("nowhere")})
	f.failsAt("linking to nothing", err, souvenir.ErrNotFound, "memory_id", "nowhere")

	moved := f.updateFile(file.ID, souvenir.FileUpdate{MemoryID: link(two.ID)})
	f.equal("linked to another", []string{moved.MemoryID, moved.ProjectID}, []string{two.ID, ""})
	f.updateFile(file.ID, souvenir.FileUpdate{MemoryID: link(one.ID)})
	off := f.updateFile(file.ID, souvenir.FileUpdate{MemoryID: link("")})
	f.equal("unlinked", []string{off.MemoryID, off.ProjectID}, []string{"", "apollo"})
	off = f.updateFile(file.ID, souvenir.FileUpdate{Project: &souvenir.ProjectRef{Name: "fresh"}})
	f.equal("moved", f.listFiles(souvenir.FileList{ProjectName: "fresh"}), []string{"a"})
	off = f.updateFile(off.ID, souvenir.FileUpdate{Project: &souvenir.ProjectRef{}})
	f.equal("moved out", f.getFile(file.ID).ProjectID, "")
	f.updateFile(file.ID, souvenir.FileUpdate{MemoryID: link(one.ID)})
	off = f.updateFile(off.ID, souvenir.FileUpdate{MemoryID: link(""), Project: &souvenir.ProjectRef{ID: gemini}})
	f.equal("unlinked and moved", []string{off.MemoryID, off.ProjectID}, []string{"", gemini})
}

func fileUpdates(f *fixture) {
	file := f.addFile(souvenir.NewFile{Filename: "a.txt", Description: "old", Category: "c", Tags: []string{"a"}}, "a")
	f.clock.Pass(time.Second)
	f.equal("nothing changed", f.updateFile(file.ID, souvenir.FileUpdate{}), file)
	text := func(s string) *string { return &s }
	want := file
	want.Filename, want.Description, want.Category, want.Tags, want.UpdatedAt = "b.txt", "new", "d", []string{"x", "y"},
		f.clock.Now()
	f.equal("changed", f.updateFile(file.ID,
		souvenir.FileUpdate{Filename: text("../b.txt"), Description: text("new"), Category: text("d"),
			Tags: []string{"x ", "y", "x"}}), want)
	f.equal("read again", f.getFile(file.ID), want)
	want.Description, want.Category, want.Tags = "", "", nil
	f.equal("cleared", f.updateFile(file.ID,
		souvenir.FileUpdate{Description: text(""), Category: text(""), Tags: []string{}}), want)
	f.clock.Pass(-time.Hour)
	f.equal("when the clock goes back", f.updateFile(file.ID, souvenir.FileUpdate{Description: text("late")}).UpdatedAt,
		want.UpdatedAt)
	for _, c := range []struct {
		update   souvenir.FileUpdate
		kind     *souvenir.Error
		argument string
	}{
		{souvenir.FileUpdate{Description: text(strings.Repeat("d", 4097))}, souvenir.ErrTooLarge, "description"},
		{souvenir.FileUpdate{Category: text(" ")}, souvenir.ErrInvalid, "category"},
		{souvenir.FileUpdate{Tags: []string{"\n"}}, souvenir.ErrInvalid, "tags"},
		{souvenir.FileUpdate{Project: &souvenir.ProjectRef{Name: "\x01"}}, souvenir.ErrInvalid, "project_name"},
	} {
		_, err := f.store.UpdateFile(f.ctx, file.ID, c.update)
		f.failsAt("UpdateFile "+toJSON(c.update), err, c.kind, c.argument)
	}
	_, err := f.store.UpdateFile(f.ctx, "nowhere", souvenir.FileUpdate{})
	f.failsAt("UpdateFile of nothing", err, souvenir.ErrNotFound, "file_id", `"nowhere"`)
}

func fileOutlivesMemory(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box"})
	for i, remove := range []func(m souvenir.StoredMemory) error{
		func(m souvenir.StoredMemory) error { return f.store.DeleteMemory(f.ctx, m.ID, nil) },
		func(souvenir.StoredMemory) error {
			return f.store.DeleteCollection(f.ctx, "box", &souvenir.DeletionOptions{WithMemories: true})
		},
	} {
		m := f.add(souvenir.NewMemory{Content: "x", Collection: "box", ProjectID: "apollo"})
		file := f.addFile(souvenir.NewFile{MemoryID: m.ID}, "still here")
		f.check("removing", remove(m))
		left := f.getFile(file.ID)
		f.equal(fmt.Sprint("what is left of it, ", i), []string{left.MemoryID, left.ProjectID, f.readFile(file.ID)},
			[]string{"", "apollo", "still here"})
	}
}

func fileMovesWithMemory(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "apollo"})
	file := f.addFile(souvenir.NewFile{MemoryID: m.ID}, "x")
	f.patch(m.ID, map[string]any{"project_id": "gemini"})
	f.equal("its project", f.getFile(file.ID).ProjectID, "gemini")
	same(f, "in the one before", f.as(souvenir.Access{Projects: []string{"apollo"}}).listFiles(souvenir.FileList{}), nil)
	f.equal("in the new one", len(f.as(souvenir.Access{Projects: []string{"gemini"}}).listFiles(souvenir.FileList{})), 1)
}

func fileHooks(f *fixture) {
	var read []byte
	var listed souvenir.FilePage
	h := f.hooked(souvenir.Hooks{
		BeforeFile: func(ctx context.Context, _ souvenir.Operation, t *souvenir.FileTexts) (err error) {
			if listed, err = f.store.FilePage(ctx, souvenir.FileQuery{}); err == nil {
				read, err = io.ReadAll(io.NewSectionReader(t.Other.Content, 0, t.Other.Size))
			}
			return err
		},
	})
	for _, size := range []int{1 << 20, 5 << 20} {
		content := bytesOf(size, 7)
		file, err := h.store.AddFile(f.ctx, souvenir.NewFile{}, bytes.NewReader(content))
		f.check("AddFile", err)
		f.equal("listed meanwhile", listed.Total, 0)
		f.equal("read", bytes.Equal(read, content), true)
		f.check("DeleteFile", f.store.DeleteFile(f.ctx, file.ID, &souvenir.DeletionOptions{Erase: true}))
	}
}
