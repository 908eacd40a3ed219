// Command seed makes a store file for tests of the dashboard and fills it. It prints what the tests must know about it,
// as JSON.
//
//	seed [-memories N | -hostile | -wide N] FILE
//
// With 100,000 memories it takes some minutes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/souvenir-ai/souvenir/internal/seed"
)

func main() {
	memories := flag.Int("memories", 40, "how many `memories` to store; 0: a user and nothing else")
	hostile := flag.Bool("hostile", false, "store text that would do harm if it were taken for anything but text")
	wide := flag.Int("wide", 0, "store `number` of everything that pages list: collections, types, users, tokens ...")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: seed [-memories N | -hostile | -wide N] FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *memories, *hostile, *wide); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(path string, memories int, hostile bool, wide int) error {
	ctx := context.Background()
	var filled seed.Filled
	var err error
	switch {
	case wide > 0:
		filled, err = seed.Wide(ctx, path, wide)
	case hostile:
		filled, err = seed.Hostile(ctx, path)
	default:
		filled, err = seed.Fill(ctx, path, memories)
	}
	if err == nil && wide == 0 && filled.Project != "" {
		err = propose(ctx, path, filled, hostile)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(filled)
}
