// Command souvenir is a memory for AI agents: a server over one file, and the commands that look after it.
//
//	souvenir serve --db souvenir.db
//	souvenir help
//
// This package turns flags and environment variables into options, and calls; what is done is done by the packages
// below it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // days of the pages are those of the reader, whatever the machine knows of zones
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal does not wait for anything
	}()
	c := &cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}
	os.Exit(c.run(ctx, os.Args[1:]))
}
