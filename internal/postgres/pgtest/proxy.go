package pgtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
)

// Cut is what a [Proxy] does at the next COMMIT: mostly it closes the connection.
type Cut int32

// The moments at which a connection is closed.
const (
	Never        Cut = iota
	BeforeCommit     // the server does not get the COMMIT
	AfterCommit      // the server has answered; the client does not get the answer
	AtLost           // at the next message with the text [Lost], which other connections do not send
	Silent           // the server does not get the COMMIT, and the connection stays open
)

// Lost is the text of a statement that [AtLost] cuts.
const Lost = "a statement is lost"

// Proxy passes on connections to the server, until it has to cut one.
type Proxy struct {
	Address string // of the same database, through the proxy
	Cut     atomic.Int32
	Held    atomic.Bool // a COMMIT has come that the server does not get, with Silent
	// Weak removes the isolation from the statement that begins a Write, so that the transaction has that of the setting
	// default_transaction_isolation.
	Weak atomic.Bool
	// Trips is how often a client has sent something after an answer. A ROLLBACK does not count: after a read, nothing
	// waits for its answer.
	Trips atomic.Int64
}

// NewProxy starts a proxy in front of a database. It ends with the test.
func NewProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	through, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := through.Host
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	through.Host = listener.Addr().String()
	p := &Proxy{Address: through.String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(context.WithoutCancel(t.Context()), client, server)
		}
	}()
	return p
}

// preparedCommit occurs in the message that executes a COMMIT prepared by the driver.
var preparedCommit = func() []byte {
	sum := sha256.Sum256([]byte("COMMIT"))
	return []byte("\x00stmtcache_" + hex.EncodeToString(sum[:24]) + "\x00")
}()

var serializable = []byte(" ISOLATION LEVEL SERIALIZABLE")

// pass connects a client with the server until one of them ends, or the connection is cut.
func (p *Proxy) pass(ctx context.Context, client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var swallow, answered atomic.Bool
	answered.Store(true)
	go func() {
		defer func() { _ = client.Close() }()
		answer := make([]byte, 1<<16)
		for {
			n, err := server.Read(answer)
			if err != nil || swallow.Load() {
				return
			}
			answered.Store(true)
			if _, err := client.Write(answer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if answered.Swap(false) && !bytes.HasSuffix(buffer[:n], []byte("ROLLBACK\x00")) {
			p.Trips.Add(1)
		}
		if p.Weak.Load() {
			copy(buffer, bytes.ReplaceAll(buffer[:n], serializable, bytes.Repeat([]byte(" "), len(serializable))))
		}
		commits := bytes.Contains(buffer[:n], []byte("COMMIT\x00")) && !bytes.HasPrefix(buffer[:n], []byte("P")) ||
			bytes.Contains(buffer[:n], preparedCommit)
		switch cut := Cut(p.Cut.Load()); {
		case cut == AtLost && bytes.Contains(buffer[:n], []byte(Lost)), cut == BeforeCommit && commits:
			p.Cut.Store(int32(Never))
			return
		case cut == Silent && commits:
			p.Cut.Store(int32(Never))
			p.Held.Store(true)
			for n, err := client.Read(buffer); err == nil && n > 0 && buffer[0] != 'X'; n, err = client.Read(buffer) {
			}
			return // the client gives up
		case cut == AfterCommit && commits:
			p.Cut.Store(int32(Never))
			swallow.Store(true)
			if _, err := server.Write(buffer[:n]); err == nil {
				_, _ = io.Copy(io.Discard, client) // until the answer is there, and closes the client's side
			}
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}
