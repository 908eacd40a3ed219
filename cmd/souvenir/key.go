package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
)

// The variables that give the master key. There are no flags: a key on a command line can be read by others on the
// machine, and every command needs the same one.
const (
	keyVariable        = "SOUVENIR_MASTER_KEY"
	keyFileVariable    = "SOUVENIR_MASTER_KEY_FILE"
	keyCommandVariable = "SOUVENIR_MASTER_KEY_COMMAND"
)

var keyVariables = []string{keyVariable, keyFileVariable, keyCommandVariable}

// otherVariables are environment variables without a flag.
var otherVariables = append([]string{userKeysVariable, keyForVariable}, keyVariables...)

type masterKeyKey struct{}

// masterKeyOf returns the key with which every file of the command is opened. The zero value is none.
func masterKeyOf(ctx context.Context) (souvenir.MasterKey, error) {
	source, set := ctx.Value(masterKeyKey{}).(keySource)
	if !set {
		return souvenir.MasterKey{}, nil
	}
	return source.once()
}

// keySource reads the master key: once reads it when it is first needed, read each time.
type keySource struct {
	once, read func() (souvenir.MasterKey, error)
}

// withKeyAnew returns a context with the key as it is now, for long-running commands.
func withKeyAnew(ctx context.Context) context.Context {
	source, set := ctx.Value(masterKeyKey{}).(keySource)
	if !set {
		return ctx
	}
	return context.WithValue(ctx, masterKeyKey{}, keySource{sync.OnceValues(source.read), source.read})
}

// withMasterKey returns a context with the key of the environment, which is read when it is needed.
func (c *cli) withMasterKey(ctx context.Context) context.Context {
	read := func() (souvenir.MasterKey, error) { return c.masterKey(ctx) }
	return context.WithValue(ctx, masterKeyKey{}, keySource{sync.OnceValues(read), read})
}

func (c *cli) masterKey(ctx context.Context) (key souvenir.MasterKey, err error) {
	var from, text string
	for _, name := range keyVariables {
		value, _ := c.lookup(name)
		switch {
		case value == "":
			continue
		case from != "":
			return key, misused("both %s and %s are set; set one of them", from, name)
		}
		from, text = name, value
	}
	switch from {
	case "":
		return key, nil
	case keyFileVariable:
		key, err = readMasterKey(text)
	case keyCommandVariable:
		key, err = askForMasterKey(ctx, text)
	default:
		key, err = souvenir.ParseMasterKey(text)
	}
	if err != nil {
		return key, fmt.Errorf("%s gives no key: %w", from, err)
	}
	return key, nil
}

func readMasterKey(path string) (key souvenir.MasterKey, err error) {
	content, err := os.ReadFile(path)
	if _, wrong := souvenir.ParseMasterKey(path); err != nil && wrong == nil {
		return key, errors.New("it is a key; give the path of a file with the key")
	}
	if err != nil {
		return key, err
	}
	return souvenir.ParseMasterKey(firstLine(string(content)))
}

// askForMasterKey runs a command, such as one that asks a service for keys, and reads what it prints.
func askForMasterKey(ctx context.Context, line string) (key souvenir.MasterKey, err error) {
	shell := []string{"/bin/sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/C"}
	}
	command := exec.CommandContext(ctx, shell[0], shell[1], line) //nolint:gosec // the operator's own
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return key, fmt.Errorf("the command failed: %w", err)
	}
	return souvenir.ParseMasterKey(firstLine(string(printed)))
}

func (c *cli) keyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "key COMMAND", GroupID: groupFile,
		Short: "Encrypt the store's file, and change its key",
		Long: `A store's file, its log and its backups can be encrypted with a master key of 32 random bytes. Every
command and the server take it from one of these variables:

  SOUVENIR_MASTER_KEY_FILE     a file with the key, as 64 hexadecimal digits or base64
  SOUVENIR_MASTER_KEY_COMMAND  a command line that prints the key, such as one that asks a key service
  SOUVENIR_MASTER_KEY          the key itself

A new store is encrypted from the start if one of them is set. Without the key the store cannot be
read, so keep a copy of the key elsewhere. See docs/encryption.md.`,
	}, c.keyGenerateCommand(), c.keyChangeCommand(), c.keyEncryptCommand(), c.keyDecryptCommand(), c.keyUsersCommand())
}

func (c *cli) keyGenerateCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "generate FILE",
		Short:   "Write a new master key to a file",
		Long:    "Writes a new random master key to a new file, which only its owner can read.",
		Example: "  souvenir key generate /etc/souvenir/master.key",
		Args:    wants(1, 1, "FILE"),
	}
	asJSON := jsonFlag(command)
	return c.command(command, func(_ context.Context, args []string) error {
		key := souvenir.GenerateMasterKey()
		file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("FILE cannot be created: %w", err)
		}
		_, err = fmt.Fprintln(file, key.Text())
		if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("FILE cannot be written: %w", err)
		}
		return c.printResult(*asJSON, object{"file": args[0], "id": key.ID()},
			"wrote the master key %s to %s; keep a copy of it elsewhere", key.ID(), args[0])
	})
}

func (c *cli) keyChangeCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "change --to FILE [flags]",
		Short: "Change the master key",
		Long: `Encrypts the key of the store's file, and that of its key ring if it has one, with another master key.
This is quick, and running servers continue; give them the new key, in the same file or by the same
command, for their next backup and start. Backups keep the master key they were made with.

If the old key has leaked, this is not enough: use "souvenir key encrypt", which also gives the file
a new key of its own.`,
		Example: "  SOUVENIR_MASTER_KEY_FILE=old.key souvenir key change --db souvenir.db --to new.key",
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	to := command.Flags().String("to", "", "`file` with the new master key")
	return c.command(command, func(ctx context.Context, _ []string) error {
		if *to == "" {
			return misused("--to is missing; give a file with the new master key, which \"souvenir key generate\" creates")
		}
		key, err := readMasterKey(*to)
		if err != nil {
			return fmt.Errorf("--to gives no key: %w", err)
		}
		end := c.busy("changing the key")
		err = changeMasterKey(ctx, *db, key)
		end()
		if err != nil {
			return err
		}
		return c.printResult(*asJSON, object{"file": db.String(), "id": key.ID()},
			"%s needs the master key %s from now on", *db, key.ID())
	})
}

func (c *cli) keyEncryptCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "encrypt IN OUT [flags]",
		Short: "Copy a store into an encrypted file",
		Long: `Copies the store IN into the new file OUT, encrypted with the master key of the environment. IN may
itself be encrypted, with the key of --from. Stop the server first: later writes are not in OUT. IN does
not change; delete it when OUT is in use.`,
		Example: `  souvenir key generate master.key
  SOUVENIR_MASTER_KEY_FILE=master.key souvenir key encrypt souvenir.db encrypted.db`,
		Args: wants(2, 2, "IN and OUT"),
	}
	asJSON := jsonFlag(command)
	from := command.Flags().String("from", "", "`file` with the master key of IN, if IN is encrypted")
	return c.command(command, func(ctx context.Context, args []string) error {
		key, err := masterKeyOf(ctx)
		if err != nil {
			return err
		}
		r := souvenir.Reencryption{From: args[0], To: args[1], ToKey: key}
		if r.ToKey.IsZero() {
			return misused("there is no master key: set %s, or %s", keyFileVariable, keyCommandVariable)
		}
		if *from != "" {
			if r.FromKey, err = readMasterKey(*from); err != nil {
				return fmt.Errorf("--from gives no key: %w", err)
			}
		}
		return c.reencrypt(ctx, r, *asJSON, "encrypted")
	})
}

func (c *cli) keyDecryptCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "decrypt IN OUT [flags]",
		Short: "Copy an encrypted store into an unencrypted file",
		Long: `Copies the store IN, which is encrypted with the master key of the environment, into the new file OUT,
which anyone with access to it can read. Stop the server first: later writes are not in OUT.`,
		Example: "  SOUVENIR_MASTER_KEY_FILE=master.key souvenir key decrypt encrypted.db souvenir.db",
		Args:    wants(2, 2, "IN and OUT"),
	}
	asJSON := jsonFlag(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		key, err := masterKeyOf(ctx)
		if err != nil {
			return err
		}
		r := souvenir.Reencryption{From: args[0], To: args[1], FromKey: key}
		if r.FromKey.IsZero() {
			return misused("there is no master key: set %s, or %s", keyFileVariable, keyCommandVariable)
		}
		return c.reencrypt(ctx, r, *asJSON, "decrypted")
	})
}

func (c *cli) reencrypt(ctx context.Context, r souvenir.Reencryption, asJSON bool, what string) error {
	progress, end := c.progress()
	defer end()
	r.Progress = progress
	err := souvenir.Reencrypt(ctx, r)
	end()
	if err != nil {
		return renamed(renamed(err, "From", "IN"), "To", "OUT")
	}
	return c.printCopy(asJSON, what, r.To)
}
