// Package protobuf reads the part of the Protocol Buffers wire format that model files need.
package protobuf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind is the wire type of a field.
type Kind int

// The values of [Kind] that are read.
const (
	Varint  Kind = 0
	Fixed64 Kind = 1
	Bytes   Kind = 2
	Fixed32 Kind = 5
)

// Field is one field of a message. Bytes have Data, which shares the message's memory; the others have Value.
type Field struct {
	Number int
	Kind   Kind
	Value  uint64
	Data   []byte
}

var errShort = errors.New("a message ends within a field")

// Each calls found for each field of a message, in order, until it returns an error.
func Each(message []byte, found func(Field) error) error {
	for len(message) > 0 {
		f, rest, err := next(message)
		if err != nil {
			return err
		}
		if err := found(f); err != nil {
			return err
		}
		message = rest
	}
	return nil
}

func next(message []byte) (f Field, rest []byte, err error) {
	key, n := binary.Uvarint(message)
	if n <= 0 {
		return f, nil, errShort
	}
	rest = message[n:]
	f.Number, f.Kind = int(key>>3), Kind(key&7)
	if key>>3 == 0 || key>>3 > 1<<29-1 {
		return f, nil, fmt.Errorf("a field has the number %d", key>>3)
	}
	switch f.Kind {
	case Varint:
		if f.Value, n = binary.Uvarint(rest); n <= 0 {
			return f, nil, errShort
		}
		return f, rest[n:], nil
	case Fixed64:
		if len(rest) < 8 {
			return f, nil, errShort
		}
		f.Value = binary.LittleEndian.Uint64(rest)
		return f, rest[8:], nil
	case Fixed32:
		if len(rest) < 4 {
			return f, nil, errShort
		}
		f.Value = uint64(binary.LittleEndian.Uint32(rest))
		return f, rest[4:], nil
	case Bytes:
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return f, nil, errShort
		}
		f.Data = rest[n : n+int(length)]
		return f, rest[n+int(length):], nil
	}
	return f, nil, fmt.Errorf("field %d has the wire type %d, which is not in use", f.Number, f.Kind)
}
