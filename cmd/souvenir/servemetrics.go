package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/metrics"
)

// listenForMetrics opens the listener for metrics; nil for none.
func listenForMetrics(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, misused("--metrics is %q; give HOST:PORT, such as 127.0.0.1:9464: %v", address, err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	return listener, nil
}

// serveMetrics serves metrics on a listener of their own, and returns a function that ends that and waits. It does
// nothing without a listener.
func serveMetrics(ctx context.Context, listener net.Listener, m *metrics.Metrics, log *slog.Logger) (stop func()) {
	if listener == nil {
		return func() {}
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		log.Warn("other machines can read the metrics, which need no credential; let a firewall allow only your monitoring",
			"metrics", listener.Addr().String())
	}
	log.Info("serving metrics at /metrics", "metrics", "http://"+listener.Addr().String()+"/metrics")
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(ctx, listener, m.Handler(), &server.ServeOptions{Logger: log}); err != nil {
			log.Error("the listener for metrics failed", "error", err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
