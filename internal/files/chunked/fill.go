package chunked

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Strict is a caller's reader, held to the rules of io.Reader. An impossible count is an error. Only io.EOF itself
// is the end: an error that wraps it means that the content ended too early and is incomplete.
type Strict struct{ io.Reader }

func (r Strict) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	switch {
	case n < 0 || n > len(p):
		return 0, errors.New("its Read returned an impossible count")
	case err != io.EOF && errors.Is(err, io.EOF):
		return n, fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, err.Error())
	}
	return n, err
}

// Fill fills the buffer; at the end of content it returns io.EOF with the rest. It checks the context between
// reads.
func Fill(ctx context.Context, content io.Reader, buffer []byte) (n int, err error) {
	for idle := 0; n < len(buffer) && err == nil; {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var more int
		more, err = content.Read(buffer[n:])
		n += more
		if idle++; more > 0 {
			idle = 0
		} else if idle == 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, err
}
