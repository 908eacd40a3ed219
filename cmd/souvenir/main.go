// Command souvenir is a memory for AI agents: a server over one file, and the commands to maintain it.
//
//	souvenir serve --db souvenir.db
//	souvenir help
//
// This package turns flags and environment variables into options and calls; the packages below it do the work.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the pages use the reader's time zone, even if the machine has no zone data
)

func main() {
	paceCollection(os.Getenv("GOGC"))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}()
	c := &cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv}
	os.Exit(c.run(ctx, os.Args[1:]))
}
