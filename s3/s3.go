// Package s3 keeps the content of files in a bucket of a service that speaks the protocol of Amazon S3: AWS, Ceph,
// MinIO, Garage, SeaweedFS and many others. Set souvenir.Options.Objects to a [Storage].
package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Config has the place of a bucket, and the keys to use it. The keys need permission to get, put and delete objects in
// it.
type Config struct {
	Endpoint  string // of the service, such as https://s3.eu-central-1.amazonaws.com; http only for this machine
	Bucket    string // must exist
	Prefix    string // of the names of all objects; end it with / for a folder. Each store needs its own
	Region    string // empty: us-east-1, which most services other than AWS accept
	AccessKey string
	SecretKey string
}

// String describes the place, without the keys.
func (c Config) String() string {
	return strings.TrimSuffix(c.Endpoint, "/") + "/" + c.Bucket + "/" + c.Prefix
}

// GoString is String, so that %#v prints no keys either.
func (c Config) GoString() string { return c.String() }

// Storage is the object storage in a bucket. It is safe for concurrent use.
type Storage struct {
	config Config
	client *minio.Core
}

const (
	defaultRegion = "us-east-1"
	tries         = 3
	largest       = 1 << 20 // maximum bytes of an object to read, more than a store writes
)

// New returns the storage in a bucket. It checks the configuration but does not connect; see [Storage.Check].
func New(c Config) (*Storage, error) {
	endpoint, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || endpoint.Scheme != "https" && endpoint.Scheme != "http" || endpoint.Host == "":
		return nil, fmt.Errorf("s3: Endpoint is %q; give the URL of a service, such as https://s3.example.com",
			hidden(c.Endpoint))
	case endpoint.User != nil || strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" ||
		endpoint.Fragment != "":
		return nil, fmt.Errorf("s3: Endpoint is %q; give the service alone, such as https://%s: the bucket and the keys "+
			"have fields of their own", hidden(c.Endpoint), endpoint.Host)
	case c.Bucket == "":
		return nil, errors.New("s3: Bucket is empty; give the bucket for the objects")
	case c.AccessKey == "" || c.SecretKey == "":
		return nil, errors.New("s3: AccessKey or SecretKey is empty; give both")
	case strings.HasPrefix(c.Prefix, "/") || strings.Contains(c.Prefix, "//") || strings.ContainsFunc(c.Prefix, odd):
		return nil, fmt.Errorf("s3: Prefix is %q; give letters, digits and .-_/ such as souvenir/, not beginning with /",
			c.Prefix)
	}
	if c.Region == "" {
		c.Region = defaultRegion
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(c.AccessKey, c.SecretKey, ""),
		Secure: endpoint.Scheme == "https", Region: c.Region, MaxRetries: tries,
	})
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	return &Storage{config: c, client: client}, nil
}

// odd reports whether a character should not be in a prefix.
func odd(r rune) bool {
	return !strings.ContainsRune("-_./", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// hidden returns an address without a possible password.
func hidden(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return "..." + address[at:]
	}
	return address
}

// String describes the storage, without its keys.
func (s *Storage) String() string { return s.config.String() }

// Check returns an error if the bucket cannot be reached, or does not exist, or the keys are wrong.
func (s *Storage) Check(ctx context.Context) error {
	_, err := s.Get(ctx, "check-that-it-answers")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Put stores an object. The service compares it with its hash, which is signed. Requests are not sent in signed chunks,
// which some services do not accept.
func (s *Storage) Put(ctx context.Context, key string, data []byte) error {
	sum := sha256.Sum256(data)
	_, err := s.client.PutObject(ctx, s.config.Bucket, s.config.Prefix+key, bytes.NewReader(data), int64(len(data)), "",
		hex.EncodeToString(sum[:]), minio.PutObjectOptions{
			ContentType:          "application/octet-stream",
			DisableContentSha256: true, // of a stream; the hash is given
		})
	return s.failed(ctx, "put", err)
}

// Get returns an object. The error is fs.ErrNotExist if it does not exist.
func (s *Storage) Get(ctx context.Context, key string) ([]byte, error) {
	body, info, _, err := s.client.GetObject(ctx, s.config.Bucket, s.config.Prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, s.failed(ctx, "get", err)
	}
	defer body.Close()
	data := bytes.NewBuffer(make([]byte, 0, min(max(info.Size, 0), largest)+bytes.MinRead))
	switch n, err := io.Copy(data, io.LimitReader(body, largest+1)); {
	case err != nil:
		return nil, s.failed(ctx, "get", err)
	case n > largest:
		return nil, fmt.Errorf("s3: the object %s has more than %d bytes, so no store wrote it", key, largest)
	}
	return data.Bytes(), nil
}

// Delete deletes objects. It ignores missing ones.
func (s *Storage) Delete(ctx context.Context, keys []string) error {
	if len(keys) == 1 {
		err := s.client.RemoveObject(ctx, s.config.Bucket, s.config.Prefix+keys[0], minio.RemoveObjectOptions{})
		return s.deletionFailed(ctx, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	results, err := s.client.RemoveObjectsWithIter(ctx, s.config.Bucket, func(yield func(minio.ObjectInfo) bool) {
		for _, key := range keys {
			if !yield(minio.ObjectInfo{Key: s.config.Prefix + key}) {
				return
			}
		}
	}, minio.RemoveObjectsOptions{})
	if err != nil {
		return s.deletionFailed(ctx, err)
	}
	var first error
	for result := range results {
		if err := s.deletionFailed(ctx, result.Err); err != nil && first == nil {
			first = err
		}
	}
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// deletionFailed is failed for a deletion, where a missing object is not an error.
func (s *Storage) deletionFailed(ctx context.Context, err error) error {
	if err = s.failed(ctx, "delete", err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// failed describes the error of a request, without the secret key, even if the service answered with it.
func (s *Storage) failed(ctx context.Context, verb string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var response minio.ErrorResponse
	text := err.Error()
	if errors.As(err, &response) {
		switch {
		case response.Code == minio.NoSuchKey, response.Code == "" && response.StatusCode == http.StatusNotFound:
			return fmt.Errorf("s3: %s: %w", s.config.Bucket, fs.ErrNotExist)
		case response.Code != "":
			text = fmt.Sprintf("%s (%s, status %d)", text, response.Code, response.StatusCode)
		}
	}
	return fmt.Errorf("s3: %s in %s: %s", verb, s, strings.ReplaceAll(text, s.config.SecretKey, "..."))
}
