// Package mcpserver serves a store over the Model Context Protocol: its tools, its memories, rules, to-do documents
// and files as resources, and prompts. [New] returns the server of the protocol's Go SDK, which speaks all
// revisions from 2024-11-05 to 2026-07-28 over any of the SDK's transports:
//
//	server := mcpserver.New(store, nil)
//	err := mcpserver.ServeStdio(ctx, server, os.Stdin, os.Stdout, nil)
//
// Package server mounts it at /mcp, for many callers at once.
//
// The view of the store that serves a request, and the scopes of its credential, decide what a caller sees and may do.
// An error in a tool is a result that tells a model how to correct its call; an error in a message is an error of the
// protocol.
package mcpserver
