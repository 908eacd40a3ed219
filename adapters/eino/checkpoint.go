package eino

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/cloudwego/eino/compose"

	"github.com/souvenir-ai/souvenir"
)

const (
	checkPointCategory = "eino-checkpoint" // of the files that hold checkpoints

	// checkPointType keeps the store from finding out that a checkpoint is text, which it would search.
	checkPointType = "application/x-eino-checkpoint"
)

// CheckPointStore keeps the checkpoints of graphs and agents in files of a store, apart from its memories: searches do
// not find them. Ids and checkpoints are any bytes. A file's tag is the SHA-256 of the id, in hexadecimal, since tags
// must be text. It is safe for concurrent use, also by several processes.
type CheckPointStore struct{ store *souvenir.Store }

var _ compose.CheckPointStore = (*CheckPointStore)(nil)

// NewCheckPointStore returns a checkpoint store in a store or a view of it, whose user owns the checkpoints.
func NewCheckPointStore(store *souvenir.Store) *CheckPointStore { return &CheckPointStore{store} }

// Get returns the checkpoint that was set last with an id, and whether there is one.
func (c *CheckPointStore) Get(ctx context.Context, checkPointID string) ([]byte, bool, error) {
	for {
		files, err := c.files(ctx, checkPointID)
		if err != nil || len(files) == 0 {
			return nil, false, err
		}
		checkPoint, err := c.read(ctx, files[0])
		if errors.Is(err, souvenir.ErrNotFound) { // another call has just replaced it
			continue
		}
		return checkPoint, err == nil, err
	}
}

// read returns the bytes of a file.
func (c *CheckPointStore) read(ctx context.Context, file string) ([]byte, error) {
	r, err := c.store.OpenFile(ctx, file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Set sets the checkpoint of an id. The previous one is erased. After an error, the previous one or this one is set.
func (c *CheckPointStore) Set(ctx context.Context, checkPointID string, checkPoint []byte) error {
	before, err := c.files(ctx, checkPointID)
	if err != nil {
		return err
	}
	_, err = c.store.AddFile(ctx, souvenir.NewFile{Filename: "checkpoint", MIMEType: checkPointType,
		Category: checkPointCategory, Tags: []string{tagOf(checkPointID)}, Size: int64(len(checkPoint))},
		bytes.NewReader(checkPoint))
	if err != nil {
		return err
	}
	return c.erase(ctx, before)
}

// Delete erases the checkpoint of an id, if there is one.
func (c *CheckPointStore) Delete(ctx context.Context, checkPointID string) error {
	files, err := c.files(ctx, checkPointID)
	if err != nil {
		return err
	}
	return c.erase(ctx, files)
}

// files returns the ids of the files of a checkpoint, the newest first. There is more than one only while several calls
// set it, or after a call was interrupted.
func (c *CheckPointStore) files(ctx context.Context, checkPointID string) (ids []string, err error) {
	list := souvenir.FileList{Category: checkPointCategory, Tags: []string{tagOf(checkPointID)}}
	for file, err := range c.store.Files(ctx, list) {
		if err != nil {
			return nil, err
		}
		if c.store.Access().Projects != nil || file.ProjectID == "" { // others may set it in a project that they share
			ids = append(ids, file.ID)
		}
	}
	return ids, nil
}

// erase erases files for good: each step of a graph replaces its checkpoint, and the trash would keep them all.
func (c *CheckPointStore) erase(ctx context.Context, files []string) error {
	for _, id := range files {
		err := c.store.DeleteFile(ctx, id, &souvenir.DeletionOptions{Erase: true})
		if errors.Is(err, souvenir.ErrForbidden) { // the project of this view is another user's
			err = c.store.DeleteFile(ctx, id, nil)
		}
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			return err
		}
	}
	return nil
}

// tagOf returns the tag of a checkpoint's file.
func tagOf(checkPointID string) string {
	sum := sha256.Sum256([]byte(checkPointID))
	return hex.EncodeToString(sum[:])
}
