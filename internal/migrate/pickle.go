package migrate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// unpickle reads a value written by Python's pickle (protocol 2 to 5), and never calls the functions it names: an
// object becomes its state, if that is a dict, and a call becomes its last argument. Dicts become map[string]any,
// without keys that are not strings; lists, tuples and sets become []any; numbers become int64 and float64. Other
// operations are an error. No value is larger than the data that it was read from.
func unpickle(data []byte) (any, error) {
	p := pickle{data: data, memo: map[uint64]any{}}
	for {
		op, err := p.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' {
			return p.pop(), p.failed
		}
		if err := p.run(op[0]); err != nil {
			return nil, err
		}
		if p.failed != nil {
			return nil, p.failed
		}
	}
}

var errPickle = errors.New("the pickled value cannot be read")

// pickle is the machine of the format; pickletools of Python describes its operations.
type pickle struct {
	data   []byte
	stack  []any
	marks  []int
	memo   map[uint64]any
	failed error
}

// list is a list or set. It may still grow while other values refer to it.
type list struct{ items []any }

// object is an instance of a class; its state is a dict or nil.
type object struct{ state any }

func (p *pickle) take(n uint64) ([]byte, error) {
	if n > uint64(len(p.data)) {
		return nil, fmt.Errorf("%w: it ended early", errPickle)
	}
	taken := p.data[:n]
	p.data = p.data[n:]
	return taken, nil
}

// number reads an unsigned number of n bytes, at most 8.
func (p *pickle) number(n uint64) uint64 {
	bytes, err := p.take(n)
	p.failed = errors.Join(p.failed, err)
	var whole [8]byte
	copy(whole[:], bytes)
	return binary.LittleEndian.Uint64(whole[:])
}

// text reads a text, or bytes, after its length of n bytes.
func (p *pickle) text(n uint64) string {
	bytes, err := p.take(p.number(n))
	p.failed = errors.Join(p.failed, err)
	return string(bytes)
}

func (p *pickle) push(v any) { p.stack = append(p.stack, v) }

func (p *pickle) pop() any {
	if len(p.stack) == 0 {
		p.failed = fmt.Errorf("%w: a value is missing", errPickle)
		return nil
	}
	v := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	return v
}

// top is the value on the stack that the next operation changes.
func (p *pickle) top() any {
	v := p.pop()
	p.push(v)
	return v
}

// marked takes all values since the last mark.
func (p *pickle) marked() []any {
	if len(p.marks) == 0 || p.marks[len(p.marks)-1] > len(p.stack) {
		p.failed = fmt.Errorf("%w: a mark is missing", errPickle)
		return nil
	}
	start := p.marks[len(p.marks)-1]
	p.marks = p.marks[:len(p.marks)-1]
	values := append([]any(nil), p.stack[start:]...)
	p.stack = p.stack[:start]
	return values
}

func (p *pickle) run(op byte) error {
	switch op {
	case 0x80: // PROTO
		p.number(1)
	case 0x95: // FRAME
		p.number(8)
	case '(':
		p.marks = append(p.marks, len(p.stack))
	case '0': // POP
		p.pop()
	case 0x94, 'q', 'r', 'h', 'j': // MEMOIZE, BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
		p.remember(op)
	case 'N':
		p.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		p.push(op == 0x88)
	case 'G': // BINFLOAT, the only one in big endian
		bytes, err := p.take(8)
		if err != nil {
			return err
		}
		p.push(math.Float64frombits(binary.BigEndian.Uint64(bytes)))
	case 'K', 'M', 'J', 0x8a: // BININT1, BININT2, BININT, LONG1
		p.push(p.integer(op))
	case 0x8c, 'X', 0x8d, 'C', 'B', 0x8e, 'U': // texts and bytes, by the size of their length
		p.push(p.text(map[byte]uint64{0x8c: 1, 'X': 4, 0x8d: 8, 'C': 1, 'B': 4, 0x8e: 8, 'U': 1}[op]))
	default:
		return p.compound(op)
	}
	return nil
}

func (p *pickle) remember(op byte) {
	switch op {
	case 0x94:
		p.memo[uint64(len(p.memo))] = p.top()
	case 'q':
		p.memo[p.number(1)] = p.top()
	case 'r':
		p.memo[p.number(4)] = p.top()
	case 'h':
		p.push(p.memo[p.number(1)])
	case 'j':
		p.push(p.memo[p.number(4)])
	}
}

func (p *pickle) integer(op byte) any {
	switch op {
	case 'K':
		return int64(p.number(1))
	case 'M':
		return int64(p.number(2))
	case 'J':
		return int64(int32(p.number(4)))
	}
	n := p.number(1)
	if n > 8 {
		p.failed = fmt.Errorf("%w: a number of %d bytes", errPickle, n)
		return nil
	}
	v := p.number(n)
	return int64(v<<(64-8*n)) >> (64 - 8*n) // with its sign
}

// compound makes and fills lists, dicts and objects.
func (p *pickle) compound(op byte) error {
	switch op {
	case ']', ')', 0x8f: // EMPTY_LIST, EMPTY_TUPLE, EMPTY_SET
		p.push(&list{})
	case '}':
		p.push(map[string]any{})
	case 't', 0x91, 'l': // TUPLE, FROZENSET, LIST
		p.push(&list{p.marked()})
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		values := make([]any, op-0x84)
		for i := range values {
			values[len(values)-1-i] = p.pop()
		}
		p.push(&list{values})
	case 'a', 'e', 0x90: // APPEND, APPENDS, ADDITEMS
		values := []any{nil}
		if op == 'a' {
			values[0] = p.pop()
		} else {
			values = p.marked()
		}
		if l, ok := p.top().(*list); ok {
			l.items = append(l.items, values...)
		}
	case 's', 'u', 'd': // SETITEM, SETITEMS, DICT
		p.setItems(op)
	case 'c', 0x93: // GLOBAL, STACK_GLOBAL: the name of a class or function, which is not needed
		if op == 'c' {
			return fmt.Errorf("%w: its protocol is too old", errPickle)
		}
		p.pop()
		p.pop()
		p.push(&object{})
	case 0x81, 'R', 0x92: // NEWOBJ, REDUCE, NEWOBJ_EX
		p.call(op)
	case 'b': // BUILD
		state := p.pop()
		if o, ok := p.top().(*object); ok {
			o.state = state
		}
	default:
		return fmt.Errorf("%w: it has the operation %#x", errPickle, op)
	}
	return nil
}

// call pushes a value in place of the instance or result of a call with arguments.
func (p *pickle) call(op byte) {
	if op == 0x92 {
		p.pop() // named arguments
	}
	arguments, _ := p.pop().(*list)
	p.pop()
	o := &object{}
	if arguments != nil && len(arguments.items) > 0 {
		o.state = arguments.items[len(arguments.items)-1]
	}
	p.push(o)
}

func (p *pickle) setItems(op byte) {
	var values []any
	if op == 's' {
		value := p.pop()
		values = []any{p.pop(), value}
	} else {
		values = p.marked()
	}
	if op == 'd' {
		p.push(map[string]any{})
	}
	if m, ok := p.top().(map[string]any); ok {
		for ; len(values) > 1; values = values[2:] {
			if key, ok := values[0].(string); ok {
				m[key] = values[1]
			}
		}
	}
}

// plainer turns unpickled values into the types of JSON. Values nested deeper than 32 levels, or after the first
// 100,000, become nil: a value may contain itself, or another one many times.
type plainer struct{ depth, values int }

func (p *plainer) plain(v any) any {
	if p.values++; p.depth >= 32 || p.values > 100_000 {
		return nil
	}
	p.depth++
	defer func() { p.depth-- }()
	switch v := v.(type) {
	case *object:
		return p.plain(v.state)
	case *list:
		values := make([]any, 0, min(len(v.items), 1000))
		for _, item := range v.items {
			if p.values > 100_000 {
				break
			}
			values = append(values, p.plain(item))
		}
		return values
	case map[string]any:
		values := map[string]any{}
		for key, item := range v {
			values[key] = p.plain(item)
		}
		return values
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	return v
}
