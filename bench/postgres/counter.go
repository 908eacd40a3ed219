package main

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
)

// counter forwards connections to a database, and counts round trips: how often a client sends something after an
// answer.
type counter struct {
	address string
	trips   atomic.Int64
}

func newCounter(ctx context.Context, address string) (*counter, error) {
	to, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	server := to.Host
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	to.Host = listener.Addr().String()
	c := &counter{address: to.String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.pass(client, server)
		}
	}()
	return c, nil
}

// pass forwards a connection until one of its sides ends it.
func (c *counter) pass(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var answered atomic.Bool
	answered.Store(true)
	go func() {
		defer func() { _ = client.Close() }()
		copied(client, server, func() { answered.Store(true) })
	}()
	copied(server, client, func() {
		if answered.Swap(false) {
			c.trips.Add(1)
		}
	})
}

func copied(to, from net.Conn, before func()) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			before()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// literal returns a vector in pgvector's syntax.
func literal(vector []float32) string {
	text := []byte{'['}
	for i, x := range vector {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendFloat(text, float64(x), 'g', -1, 32)
	}
	return string(append(text, ']'))
}
