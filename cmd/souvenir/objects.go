package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/s3"
)

// objectFlags say in which bucket the content of files is.
type objectFlags struct {
	config   s3.Config
	secret   *secret
	newFiles *string
}

func newObjectFlags(command *cobra.Command) *objectFlags {
	flags := command.Flags()
	f := &objectFlags{newFiles: flags.String("new-files", "",
		"`where` to store the content of new files: database, or objects (the bucket); if empty, the bucket if one is given")}
	flags.StringVar(&f.config.Endpoint, "s3-endpoint", "",
		"`url` of an S3-compatible service, for the content of files")
	flags.StringVar(&f.config.Bucket, "s3-bucket", "",
		"`name` of the bucket there; without one, files stay in the database")
	flags.StringVar(&f.config.Prefix, "s3-prefix", "", "`prefix` of the names of all objects, such as souvenir/")
	flags.StringVar(&f.config.Region, "s3-region", "", "`name` of the region; if empty, us-east-1")
	flags.StringVar(&f.config.AccessKey, "s3-access-key", "", "`id` of the access key for the bucket")
	f.secret = secretFlag(command, "s3-secret-key", "the secret of the key for the bucket")
	_ = command.RegisterFlagCompletionFunc("new-files", cobra.FixedCompletions(
		[]string{string(souvenir.InDatabase), string(souvenir.InObjects)}, cobra.ShellCompDirectiveNoFileComp))
	return f
}

// storing is like command, for commands that read or write the content of files: it adds the flags for object storage.
func (c *cli) storing(command *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	f := newObjectFlags(command)
	return c.command(command, func(ctx context.Context, args []string) error {
		o, err := f.objects()
		if err != nil {
			return err
		}
		return run(context.WithValue(ctx, objectsKey{}, o), args)
	})
}

// objects is the object storage of a command; the zero value: none.
type objects struct {
	storage  *s3.Storage
	newFiles souvenir.FilePlace
}

// objectsKey is the key of the context's object storage, which every store of the command is opened with.
type objectsKey struct{}

func objectsOf(ctx context.Context) objects {
	o, _ := ctx.Value(objectsKey{}).(objects)
	return o
}

// objects returns the storage from the flags.
func (f *objectFlags) objects() (objects, error) {
	o := objects{newFiles: souvenir.FilePlace(*f.newFiles)}
	secret, err := f.secret.read()
	if err != nil {
		return o, err
	}
	if *f.newFiles != "" && o.newFiles != souvenir.InDatabase && o.newFiles != souvenir.InObjects {
		return o, misused("--new-files is %q; give database or objects", *f.newFiles)
	}
	c := f.config
	c.SecretKey = secret
	if c.Bucket == "" {
		if c.Endpoint+c.Prefix+c.Region+c.AccessKey+secret != "" || o.newFiles == souvenir.InObjects {
			return o, misused("the flags --s3-... and --new-files objects need --s3-bucket; give the bucket")
		}
		return o, nil
	}
	if o.storage, err = s3.New(c); err != nil {
		text := strings.TrimPrefix(err.Error(), "s3: ")
		for field, flag := range map[string]string{"Endpoint is": "--s3-endpoint is", "Prefix is": "--s3-prefix is",
			"AccessKey or SecretKey is empty": "--s3-access-key, or --s3-secret-key and --s3-secret-key-file, are empty"} {
			text = strings.Replace(text, field, flag, 1)
		}
		return o, misused("%s", text)
	}
	return o, nil
}

// into returns options with the storage.
func (o objects) into(options *souvenir.Options) *souvenir.Options {
	with := *options
	if with.NewFiles = o.newFiles; o.storage != nil {
		with.Objects = o.storage
	}
	return &with
}

// warn logs when the storage does not answer. The server starts all the same: only files need it.
func (o objects) warn(ctx context.Context, log *slog.Logger) {
	if o.storage == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := o.storage.Check(ctx); err != nil && ctx.Err() == nil || ctx.Err() == context.DeadlineExceeded {
		log.Warn("the object storage is not available; only the content of files there is affected",
			"storage", o.storage.String(),
			"error", err)
		return
	}
	log.Info("the content of files is in object storage", "storage", o.storage.String())
}

func (c *cli) filesCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "files COMMAND", GroupID: groupFile,
		Short: "Move the content of files to object storage, or back",
		Long: `The content of files is in the database or, with the --s3-... flags of "souvenir serve", in a bucket of
an S3-compatible service. "files move" moves it; "files adopt" is for a database that was restored or
copied.`,
	}, c.filesMoveCommand(), c.filesAdoptCommand())
}

func (c *cli) filesAdoptCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "adopt",
		Short: "Make this the only database that deletes objects in the bucket",
		Long: `A copy of a database refers to the same objects as the original. So each database updates a marker in
the bucket every few minutes, and deletes no objects while another one does. Run this command for the
database to use from now on: after a restore, a copy or a move, when the original is no longer in use.`,
		Example: `  souvenir files adopt --db postgres://souvenir@db.example/souvenir`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.storing(command, func(ctx context.Context, _ []string) error {
		storage := objectsOf(ctx).storage
		if storage == nil {
			return misused("files adopt needs the bucket: give --s3-endpoint, --s3-bucket and its keys")
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			if err := store.Upkeep().AdoptObjects(ctx); err != nil {
				return err
			}
			return c.printResult(*asJSON, object{"storage": storage.String()}, "adopted %s: only this database deletes "+
				"objects there", storage)
		})
	})
}

func (c *cli) filesMoveCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "move --to objects [flags]",
		Short: "Move the content of files to object storage, or back",
		Long: `Moves the content of all files, those in the trash included, from the database to the bucket of the
--s3-... flags, or back. The server may run meanwhile; give it the same flags first. It reads files
from both places. If the move is interrupted, run it again: it moves the rest. Afterwards "souvenir
purge --compact" returns the space in the file.

To stop using a bucket, start the server with --new-files database, move everything with --to database,
and then remove the --s3-... flags.`,
		Example: `  souvenir files move --to objects
  souvenir files move --to database`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	to := command.Flags().String("to", "", "`where` to move the content: objects (the bucket) or database")
	return c.storing(command, func(ctx context.Context, _ []string) error {
		switch {
		case *to != string(souvenir.InDatabase) && *to != string(souvenir.InObjects):
			return misused("--to is %q; give objects or database", *to)
		case objectsOf(ctx).storage == nil:
			return misused("files move needs the bucket: give --s3-endpoint, --s3-bucket and its keys")
		}
		return withStore(ctx, *db, forWriting, func(store *souvenir.Store) error {
			progress, end := c.progress()
			defer end()
			moved, err := store.Upkeep().MoveFiles(ctx, souvenir.FilePlace(*to),
				&souvenir.FileMoveOptions{Progress: progress})
			end()
			if err != nil {
				return err
			}
			if moved.Damaged > 0 {
				c.warn("%d chunks are damaged and were not moved; run \"souvenir check\"",
					moved.Damaged)
			}
			if err := c.printResult(*asJSON, object{"chunks": moved.Chunks, "bytes": moved.Bytes, "damaged": moved.Damaged},
				"moved %s in %d chunks", size(moved.Bytes), moved.Chunks); err != nil || moved.Damaged == 0 {
				return err
			}
			return errSilent
		})
	})
}
