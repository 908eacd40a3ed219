package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
)

// readDocument is the command with which the program starts itself for a PDF file.
const readDocument = "read-document"

// documentReader returns the reader of the files that a server stores.
func documentReader() souvenir.DocumentReader {
	self, err := os.Executable()
	if err != nil { // then PDF files are not read
		return documents.New(nil)
	}
	return documents.New(&documents.Options{Command: []string{self, readDocument}})
}

// readDocumentCommand reads one PDF file for a server.
func (c *cli) readDocumentCommand() *cobra.Command {
	command := &cobra.Command{
		Use: readDocument, Hidden: true, Args: cobra.NoArgs,
		Short: "Read the text of a PDF file, for souvenir serve",
		Long: `Reads a PDF file from standard input and prints its text as JSON. "souvenir serve" starts it for each
file, so that a broken or hostile one cannot harm the server.`,
		Example: `  souvenir read-document < runbook.pdf`,
	}
	return c.command(command, func(ctx context.Context, _ []string) error {
		return documents.Serve(ctx, c.stdin, &c.out)
	})
}
