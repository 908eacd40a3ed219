package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
)

func (c *cli) receiptCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "receipt COMMAND", GroupID: groupFile,
		Short: "Verify receipts of exports and deletions",
		Long: `"souvenir export --receipt" and "souvenir user delete --receipt" write receipts: what was exported or
deleted, how many, when and by whom, with hashes, signed by the store. Verifying one needs no store and
no network, only the store's public key, which "souvenir receipt key" prints. See docs/receipts.md.`,
	}, c.receiptVerify(), c.receiptKey())
}

// verified is the outcome of a verification.
type verified struct {
	OK       bool              `json:"ok"`
	Receipt  receipt.Claims    `json:"receipt"` // as it is signed
	KeyID    string            `json:"kid"`
	Key      string            `json:"key"`
	Findings []receipt.Finding `json:"findings"`
}

func (c *cli) receiptVerify() *cobra.Command {
	command := &cobra.Command{
		Use:   "verify FILE [flags]",
		Short: "Verify a receipt",
		Long: `Verifies the signature of a receipt and prints the result of each check. With --export it compares an
export file with the hashes in the receipt. With --key it compares the receipt's key with a copy of the
store's public key; without it, a receipt proves only that it has not changed since it was signed. The
command reads only these files.

The exit status is 0 if all checks pass, otherwise 1.`,
		Example: `  souvenir receipt verify receipt.json --key "$(cat keys/souvenir.key)"
  souvenir receipt verify receipt.json --export anna.jsonl --key keys/souvenir.key
  souvenir receipt verify receipt.json --json | jq .ok`,
		Args: wants(1, 1, "FILE"),
	}
	asJSON := jsonFlag(command)
	export := command.Flags().String("export", "", "the export `file`")
	key := command.Flags().String("key", "", "the store's public `key`, or a file with keys, one per line")
	limits(command, "export", "key")
	return c.command(command, func(_ context.Context, args []string) error {
		data, err := readSmall(args[0])
		if err != nil {
			return fmt.Errorf("FILE cannot be read: %w", err)
		}
		opened, err := receipt.Parse(data)
		if err != nil {
			return fmt.Errorf("FILE is not a receipt: %w", err)
		}
		known, err := publicKeys(*key)
		if err != nil {
			return err
		}
		v := verified{Receipt: opened.Claims, KeyID: opened.KeyID, Key: publicText(opened.Key)}
		note := func(holds bool, right, wrong string) {
			if !holds {
				right = wrong
			}
			v.Findings = append(v.Findings, receipt.Finding{Holds: holds, What: right})
		}
		note(opened.Valid, "the signature is valid: the receipt is unchanged",
			"the signature is invalid: the receipt was changed, or never signed")
		note(opened.Same, "the readable part matches the signed part",
			"the readable part differs from the signed part; trust only the values below")
		v.Findings = append(v.Findings, opened.CompareKey(known))
		if *export != "" {
			found, err := compareExport(opened, *export)
			if err != nil {
				return err
			}
			v.Findings = append(v.Findings, found...)
		}
		v.OK = !slices.ContainsFunc(v.Findings, func(f receipt.Finding) bool { return !f.Holds })
		return c.printReceipt(*asJSON, v)
	})
}

// readSmall reads a file that should be small.
func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && len(data) > most {
		err = errors.New("it is larger than 1 MiB, the maximum size of a receipt")
	}
	return data, err
}

func compareExport(opened receipt.Opened, path string) ([]receipt.Finding, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--export cannot be read: %w", err)
	}
	defer file.Close()
	found, err := opened.CompareExport(file)
	if err != nil {
		return nil, fmt.Errorf("--export cannot be read: %w", err)
	}
	return found, nil
}

func publicText(key ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(key) }

// publicKeys reads a key, or a file with keys; nil for none.
func publicKeys(given string) (known []ed25519.PublicKey, err error) {
	if given == "" {
		return nil, nil
	}
	lines := []string{given}
	if content, err := readSmall(given); err == nil {
		lines = strings.Split(string(content), "\n")
	}
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		key, err := base64.RawURLEncoding.DecodeString(fields[0])
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, misused("--key is neither a public key, as \"souvenir receipt key\" prints it, nor a file with keys")
		}
		known = append(known, key)
	}
	if known == nil {
		return nil, misused("--key is a file that contains no key")
	}
	return known, nil
}

func (c *cli) printReceipt(asJSON bool, v verified) error {
	if asJSON {
		if err := printJSON(&c.out, v); err != nil {
			return err
		}
	} else {
		for _, f := range v.Findings {
			word := c.out.in(green, "holds:")
			switch {
			case f.Open:
				word = c.out.in(yellow, "open: ")
			case !f.Holds:
				word = c.out.in(red, "wrong:")
			}
			fmt.Fprintf(&c.out, "%s %s\n", word, plain(f.What))
		}
		r := v.Receipt
		whose := "all users' data"
		if len(r.Namespaces) > 0 {
			whose = fmt.Sprintf("only the data of the namespaces %q", r.Namespaces)
		}
		if r.User != "" {
			whose = "user " + r.User
			if r.Name != "" {
				whose = r.Name + " (" + r.User + ")"
			}
			if r.Namespace != "" {
				whose += " in namespace " + r.Namespace
			}
		}
		if len(r.Without) > 0 {
			whose += " without " + strings.Join(r.Without, " and ")
		}
		by := r.Actor.User
		if by == "" {
			by = "operator"
		}
		if r.Actor.Via != "" {
			by += " (" + r.Actor.Via + ")"
		}
		fmt.Fprintf(&c.out, "\n%s of %s, %s, by %s, from store %s\n", plain(r.Kind), plain(whose), moment(r.At), plain(by),
			plain(r.Store))
		for _, kind := range slices.Sorted(maps.Keys(r.Counts)) {
			fmt.Fprintf(&c.out, "  %s: %d\n", plain(kind), r.Counts[kind])
		}
		if k := r.Key; k != nil {
			fmt.Fprintf(&c.out, "key erased: %s, %s; data sealed with it cannot be read, not even from backups\n", plain(k.ID),
				moment(k.At))
		}
		fmt.Fprintf(&c.out, "audit log: %d:%s\nkey: %s (%s)\n", r.Audit.Seq, plain(r.Audit.Hash), v.Key, plain(v.KeyID))
	}
	if !v.OK {
		return errSilent
	}
	return nil
}

func (c *cli) receiptKey() *cobra.Command {
	command := &cobra.Command{
		Use:   "key [flags]",
		Short: "Print the store's public keys",
		Long: `Prints the public keys with which the store signs receipts and access tokens, the current one first.
Keep a copy where the operators of the store cannot change it, and a new one after each "key.rotate" in
the audit log: the store drops an old key an hour after it is replaced.`,
		Example: `  souvenir receipt key >> /media/elsewhere/souvenir.keys`,
	}
	db, asJSON := dbFlag(command), jsonFlag(command)
	return c.command(command, func(ctx context.Context, _ []string) error {
		return withStore(ctx, *db, forReading, func(store *souvenir.Store) error {
			keys, err := store.Accounts().SigningKeys(ctx)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(&c.out, object{"keys": keys})
			}
			if len(keys) == 0 {
				return c.none("the store has signed nothing yet")
			}
			for _, k := range keys {
				fmt.Fprintf(&c.out, "%s %s\n", publicText(k.Public), k.ID)
			}
			return nil
		})
	})
}

// writeReceipt writes a receipt into a new file. If that fails, it prints the receipt, since the operation that the
// receipt proves is done.
func (c *cli) writeReceipt(path string, r souvenir.Receipt) error {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	encoded = append(encoded, '\n')
	err = writeNewFile(path, func(w io.Writer) error {
		_, err := w.Write(encoded)
		return err
	})
	if err != nil {
		_, _ = c.stderr.Write(encoded)
		return fmt.Errorf("the command succeeded, but --receipt cannot be written; the receipt is printed above: %w", err)
	}
	return nil
}

// proving allocates a receipt if there is a path for it, which must be free, and returns how to open the store.
func proving(path string, into **souvenir.Receipt) (opening, error) {
	if path == "" {
		return forRecord, nil
	}
	if _, err := os.Lstat(path); err == nil {
		return forRecord, misused("--receipt is %q, which already exists; give a new path", path)
	}
	*into = &souvenir.Receipt{}
	return forWriting, nil
}
