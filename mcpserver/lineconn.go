package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lineConn is a connection of messages in lines. It reads a line only when it can be handled, and tracks which
// requests are still unanswered.
type lineConn struct {
	options StdioOptions
	in      io.Reader
	out     io.Writer

	lines      chan inputLine
	inputEnded chan struct{} // closed after the last line
	endInput   sync.Once
	closed     chan struct{}
	closing    sync.Once
	slots      chan struct{} // one slot for each request that is being answered

	queue  []queued // parsed but not yet returned; used only by Read
	failed error    // why the input ended, io.EOF at the end; used only by Read

	writing sync.Mutex // one message at a time

	mu       sync.Mutex
	calls    map[jsonrpc.ID]*call
	active   int           // calls without a written answer, except lasting ones
	lasting  int           // calls that are answered only when the client ends them
	idle     chan struct{} // capacity 1; signals when active becomes 0
	revision string        // agreed on by initialize; empty before, and for clients without initialize
}

// call is a request that was read and is unanswered.
type call struct {
	method string
	lasts  bool
	batch  *batch
}

// queued is a message, and the batch that it came in, if any.
type queued struct {
	message jsonrpc.Message
	batch   *batch
}

// batch collects the answers to requests that came together.
type batch struct {
	missing int // answers
	answers []json.RawMessage
}

// methodInitialize is the request that begins a session.
const methodInitialize = "initialize"

// methodListen is the request that stays open for the notifications that a client subscribes to.
const methodListen = "subscriptions/listen"

// mostLasting bounds the open requests. A client needs one.
const mostLasting = 16

// inputLine is a line, or why the input ended.
type inputLine struct {
	text    []byte
	tooLong *idFinder // of a skipped line
	err     error
}

func newLineConn(in io.Reader, out io.Writer, options StdioOptions) *lineConn {
	return &lineConn{
		options: options, in: in, out: out,
		lines: make(chan inputLine), inputEnded: make(chan struct{}), closed: make(chan struct{}),
		slots: make(chan struct{}, options.MaxRequests), calls: map[jsonrpc.ID]*call{}, idle: make(chan struct{}, 1),
	}
}

// Connect returns the connection itself, since there is only one.
func (c *lineConn) Connect(context.Context) (mcp.Connection, error) {
	go c.readLines()
	return c, nil
}

// SessionID is empty: the streams are the session.
func (c *lineConn) SessionID() string { return "" }

// Close ends Read. It closes neither stream, and always returns nil.
func (c *lineConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return nil
}

// stopReading makes Read end as at the end of the input.
func (c *lineConn) stopReading() { c.endInput.Do(func() { close(c.inputEnded) }) }

// unanswered returns the number of unanswered requests.
func (c *lineConn) unanswered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active
}

// readLines passes on the lines, each when Read asks for it.
func (c *lineConn) readLines() {
	r := bufio.NewReaderSize(c.in, 64<<10)
	for {
		line := c.readLine(r)
		select {
		case c.lines <- line:
		case <-c.inputEnded:
			return
		case <-c.closed:
			return
		}
		if line.err != nil {
			return
		}
	}
}

// readLine reads a line, and skips one that is too long without keeping it.
func (c *lineConn) readLine(r *bufio.Reader) inputLine {
	var line inputLine
	for {
		piece, err := r.ReadSlice('\n')
		if line.tooLong == nil && len(line.text)+len(piece) > c.options.MaxMessage+len("\r\n") {
			line.tooLong = &idFinder{}
			line.tooLong.scan(line.text)
			line.text = nil
		}
		if line.tooLong != nil {
			line.tooLong.scan(piece)
		} else {
			line.text = append(line.text, piece...)
		}
		if err == nil {
			return line
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			line.err = err
			return line
		}
	}
}

// Read returns the next valid message. At the end of the input it waits until all requests are answered: the SDK
// aborts running requests once Read fails.
func (c *lineConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		for len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			switch ok, err := c.accept(next); {
			case err != nil:
				return nil, err
			case ok:
				return next.message, nil
			}
		}
		if c.failed != nil {
			c.stopReading()
			if c.drain(); !errors.Is(c.failed, io.EOF) {
				return nil, c.failed
			}
			return nil, io.EOF
		}
		select {
		case <-c.closed:
			return nil, io.EOF
		case <-c.inputEnded:
			c.drain()
			return nil, io.EOF
		case line := <-c.lines:
			c.failed = line.err
			if err := c.understand(line); err != nil {
				return nil, err
			}
		}
	}
}

// drain waits until every request is answered.
func (c *lineConn) drain() {
	for c.unanswered() > 0 {
		select {
		case <-c.idle:
		case <-c.closed:
			return
		}
	}
}

// accept lets a message through. A request waits until fewer than MaxRequests are being answered. It is refused if its
// id is in use, or if there are too many lasting requests.
func (c *lineConn) accept(next queued) (bool, error) {
	request, ok := next.message.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		return true, nil
	}
	lasts := request.Method == methodListen
	if !lasts {
		select {
		case c.slots <- struct{}{}:
		case <-c.closed:
			return false, io.EOF
		}
	}
	c.mu.Lock()
	var refused *refusal
	switch {
	case c.calls[request.ID] != nil: // its answer would be mistaken for the other request's
		refused = refuse(jsonrpc.CodeInvalidRequest,
			"id %v belongs to an unanswered request; give each request its own id", request.ID.Raw())
	case lasts && c.lasting >= mostLasting:
		refused = refuse(jsonrpc.CodeInvalidRequest, "there are already %d requests %s; end one first", mostLasting,
			methodListen)
		refused.id = rawID(request.ID)
	case lasts:
		c.lasting++
	default:
		c.active++
	}
	if refused == nil {
		c.calls[request.ID] = &call{method: request.Method, lasts: lasts, batch: next.batch}
	}
	c.mu.Unlock()
	if refused == nil {
		return true, nil
	}
	if !lasts {
		<-c.slots
	}
	return false, c.answer(next.batch, refused.encode())
}

// Write writes one of the server's messages.
func (c *lineConn) Write(_ context.Context, message jsonrpc.Message) error {
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		encoded, err := jsonrpc.EncodeMessage(message)
		if err != nil {
			return err
		}
		return c.writeLine(encoded)
	}
	c.mu.Lock()
	answered, asked := c.calls[response.ID]
	delete(c.calls, response.ID) // before the answer is written, since the client may then reuse the id
	if !asked {
		answered = &call{}
	}
	if response.Error != nil {
		response = withCode(response, c.revision == "" || answered.method == methodInitialize)
	} else if answered.method == methodInitialize {
		c.revision = agreedRevision(response.Result)
	}
	c.mu.Unlock()
	encoded, err := jsonrpc.EncodeMessage(response)
	if err == nil {
		err = c.answer(answered.batch, encoded)
	}
	if asked {
		c.finish(answered)
	}
	return err
}

// finish makes room for another request.
func (c *lineConn) finish(answered *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered.lasts {
		c.lasting--
		return
	}
	<-c.slots
	if c.active--; c.active == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// answer writes an answer, or keeps it until the rest of its batch is answered.
func (c *lineConn) answer(to *batch, encoded json.RawMessage) error {
	if to == nil {
		return c.writeLine(encoded)
	}
	c.mu.Lock()
	to.answers = append(to.answers, encoded)
	to.missing--
	complete := to.missing == 0
	c.mu.Unlock()
	if !complete {
		return nil
	}
	all, err := json.Marshal(to.answers)
	if err != nil {
		return err
	}
	return c.writeLine(all)
}

func (c *lineConn) writeLine(encoded []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(encoded, '\n'))
	return err
}
