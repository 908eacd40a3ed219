package souvenir

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/txcontext"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// The keys that encrypt a store: the master key of its file, and keys of users. Keys that sign access tokens are in
// servers.go.

// MasterKey encrypts stores: 32 bytes; the zero value means no key. It wraps the random key of each file, which
// encrypts its pages with XChaCha20-Poly1305. docs/encryption.md says what stays readable. Its methods:
//
//	IsZero() bool               // no key
//	Text() string               // the key itself, in the form that ParseMasterKey reads
//	ID() string                 // identifies the key without revealing it
//	String() string             // the ID, as in all formats of package fmt
//	Equal(other MasterKey) bool // in constant time
type MasterKey = sealing.MasterKey

// NewMasterKey returns a master key from 32 bytes, such as a key management service returns.
func NewMasterKey(key []byte) (MasterKey, error) {
	k, err := sealing.NewMasterKey(key)
	if err != nil {
		return k, causedBy(err, invalid("key", "%v", err))
	}
	return k, nil
}

// ParseMasterKey reads a master key as text: 64 hexadecimal digits, or the base64 of 32 bytes. Errors never contain it.
func ParseMasterKey(text string) (MasterKey, error) {
	k, err := sealing.ParseMasterKey(text)
	if err != nil {
		return k, causedBy(err, invalid("text", "%v", err))
	}
	return k, nil
}

// GenerateMasterKey returns a new random master key. Keep its Text where the store is not: without it, nothing in the
// store can be read again.
func GenerateMasterKey() MasterKey { return sealing.GenerateMasterKey() }

// Reencryption says which store [Reencrypt] copies, and under which keys.
type Reencryption struct {
	From, To       string    // files; To must not exist
	FromKey, ToKey MasterKey // the zero value: not encrypted
	Progress       Progress  // receives the stage "check"; nil disables it
}

// Reencrypt copies a store, encrypts the copy with another key, and gives it a new random key of its own. It encrypts
// an unencrypted store, decrypts an encrypted one, or replaces all keys after a leak. For a leak,
// [Upkeep.ChangeMasterKey] does not suffice: with the old key and an old copy of the file, the file's random key can be
// read. Stop programs that write to the store first: later writes are not in the copy. It returns the errors of
// [Restore]. The original stays: delete it when the copy is in use, and overwrite its disk if the content must be gone.
func Reencrypt(ctx context.Context, r Reencryption) (err error) {
	defer setGoNames[Reencryption](&err)
	if r.FromKey.IsZero() && r.ToKey.IsZero() {
		return invalid("ToKey", "{} and FromKey are both missing; give the key of one of the files, or use Restore")
	}
	if r.From == "" || r.From == ":memory:" {
		return invalid("From", "{} is %s; give the path of a store", show(r.From))
	}
	if err := checkPath("From", r.From); err != nil {
		return err
	}
	if err := checkNewPath("To", r.To); err != nil {
		return err
	}
	file, err := openBackup(ctx, r.From, r.FromKey, r.Progress)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.CopyInto(ctx, r.To, r.ToKey); err != nil {
		return newFileError("To", r.To, err)
	}
	return openError("To", r.To, noteRestore(ctx, r.To, r.ToKey))
}

// ChangeMasterKey encrypts the key of the store's file with another master key, at once. The content stays as it is,
// and programs that have the file open, this one included, continue. From then on, opening the file needs the new key.
// Backups keep the key they were made with, so keep the old one for them; after a leak of the old key use [Reencrypt].
//
// A store that is not encrypted is ErrMasterKey. It is for the Store that Open returned; a view gets ErrForbidden. On a
// read-only store it is ErrReadOnly.
func (h *Upkeep) ChangeMasterKey(ctx context.Context, to MasterKey) (err error) {
	defer setGoNames[MasterKey](&err, "to", "to")
	s, err := h.operator(ctx, "ChangeMasterKey")
	if err != nil {
		return err
	}
	if to.IsZero() {
		return invalid("to", "{} is not a key; give one, or make an unencrypted copy with Reencrypt")
	}
	file, inFile := s.engine.(db.Encrypted[MasterKey])
	if !inFile {
		return newError(KindMasterKey, "", "the store is in a database, which is not encrypted by this package")
	}
	return s.noteAlone(ctx, wrap(file.ChangeMasterKey(ctx, to)), event{"key.change", "store", "", nil})
}

// UserKeys seal each user's data under a key of the user's own, within this program: in a file, in a database and in
// object storage. The keys are in a ring apart from the store; no copy of the store contains it. Deleting a user erases
// the user's key, and with it the user's data in all old backups of the store. The zero value means no user keys.
// docs/sealing.md describes which data stays readable, and how to begin, to back up and to erase.
//
// Only an empty store can get user keys. Copy another into a new one, with [Upkeep.Export] and [Upkeep.Import].
type UserKeys struct {
	// MasterKey wraps the ring's keys. The zero value means no user keys, and the other fields must be empty, too. It may
	// be the same key as Options.MasterKey, which also encrypts the store's file.
	MasterKey MasterKey

	// Place is where the ring is: a path or, for a store in a database, also the address of one, whose schema must exist.
	// Empty means beside the store: the file that [UserKeysFile] returns, or the schema NAME_keys for the store's schema
	// NAME. A new store creates its ring, with permissions for its owner only. Backups of the store must not copy it.
	Place string

	// ReadOnly opens the ring without changing it: users without a key can store nothing, and no user can be deleted. Use
	// it for a copy of the store. False means that it is read-only if Options.ReadOnly is set, or its file cannot be
	// written.
	ReadOnly bool

	// AcceptOlder opens the store with an older copy of its ring, which is ErrUserKeys otherwise. Use it when the ring is
	// lost and only the copy is left, and then repair the ring with [Upkeep.CheckUserKeys].
	AcceptOlder bool
}

// check refuses fields without a key.
func (k UserKeys) check() error {
	if k.MasterKey.IsZero() && k != (UserKeys{}) {
		return invalid("UserKeys", "{} have other fields but no MasterKey; set it, or omit all of them")
	}
	return nil
}

// UserKeysFile returns the path of a store's ring, unless the ring has another place: keys-of-souvenir.db.ring beside
// souvenir.db. Patterns such as souvenir.db* and *.db do not match it.
func UserKeysFile(store string) string {
	return filepath.Join(filepath.Dir(store), "keys-of-"+filepath.Base(store)+".ring")
}

// openUserKeys opens the ring of a store, nil if it has none. A ring in the context is for programs within this module.
func openUserKeys(ctx context.Context, engine db.DB, o Options) (ring *keyring.Ring, err error) {
	if given := keyring.Of(ctx); given != nil {
		return given, given.Belongs(ctx, engine)
	}
	k := o.UserKeys
	bound, err := keyring.BoundOf(ctx, engine)
	making := bound.Ring == 0 && !engine.ReadOnly() && !k.ReadOnly
	switch {
	case err != nil:
		return nil, err
	case k.MasterKey.IsZero() && bound.Ring != 0:
		return nil, newError(KindUserKeys, "", "the store has user keys, in the ring %s, but was opened without "+
			"them; set Options.UserKeys to the ring", keyring.RingID(bound.Ring))
	case k.MasterKey.IsZero():
		return nil, nil //nolint:nilnil // none
	case bound.Ring == 0 && bound.Content:
		return nil, newError(KindUserKeys, "", "the store has content that is not sealed with user keys, but was "+
			"opened with such keys; export it and import it into a new store with keys, as souvenir copy does, or leave "+
			"Options.UserKeys out")
	case bound.Ring == 0 && !making:
		return nil, nil //nolint:nilnil // nothing is sealed
	}
	o.UserKeys.ReadOnly = k.ReadOnly || engine.ReadOnly()
	place, where, err := openKeysPlace(ctx, engine, bound, making, o)
	if err != nil {
		return nil, err
	}
	if !making {
		made, err := keyring.IsMade(ctx, place)
		if err == nil && !made {
			err = noUserKeys(where, bound, nil)
		}
		if err != nil {
			_ = place.Close()
			return nil, err
		}
	}
	ring, err = bindUserKeys(ctx, engine, place, where, bound, o)
	if err != nil {
		_ = place.Close()
	}
	return ring, err
}

// bindUserKeys opens the ring in a place, and checks that it belongs to the store.
func bindUserKeys(ctx context.Context, engine db.DB, place db.Keys, where string, bound keyring.Bound,
	o Options) (*keyring.Ring, error) {
	ring, err := openRing(ctx, place, where, o)
	if err != nil {
		return nil, err
	}
	err = ring.Bind(ctx, engine, bound)
	switch {
	case errors.Is(err, keyring.ErrStale) && o.UserKeys.AcceptOlder:
		return ring, nil
	case errors.Is(err, keyring.ErrStale):
		return nil, causedBy(err, newError(KindUserKeys, "", "%v. Give the current ring instead of %s: with this one, "+
			"users that were deleted since are back, and what newer users have stored cannot be read. If it is lost, open "+
			"the store with UserKeys.AcceptOlder, and repair the ring (souvenir key users repair)", err, where))
	case errors.Is(err, keyring.ErrOther):
		return nil, causedBy(err, newError(KindUserKeys, "", "%v; set UserKeys.Place to the ring of this store instead "+
			"of %s, or to a place without one for a new store", err, where))
	}
	return ring, err
}

// bindRecovered gives a recovered store, which has no settings, the time of its last use and the ring of the damaged
// one. A store with sealed values needs the ring.
func bindRecovered(ctx context.Context, path string, options RecoveryOptions) error {
	o, err := (&Options{MasterKey: options.MasterKey, UserKeys: options.UserKeys}).withDefaults()
	if err != nil {
		return err
	}
	engine, err := openFile(ctx, path, o)
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := engine.Write(ctx, func(tx db.Tx) error { return noteLastUse(tx, o.Now().UnixMicro()) }); err != nil {
		return wrap(err)
	}
	sealed, err := keyring.HasSealed(ctx, engine)
	switch {
	case err != nil || !sealed:
		return wrap(err)
	case o.UserKeys.MasterKey.IsZero():
		return newError(KindUserKeys, "", "the store has user keys, and cannot be recovered without them; set "+
			"RecoveryOptions.UserKeys to its ring")
	}
	place, where, err := openKeysPlace(ctx, engine, keyring.Bound{}, false, o)
	if err != nil {
		return err
	}
	ring, err := openRing(ctx, place, where, o)
	if err != nil {
		_ = place.Close()
		return err
	}
	return errors.Join(ring.Adopt(ctx, engine), ring.Close())
}

// openRing opens the ring in a place.
func openRing(ctx context.Context, place db.Keys, where string, o Options) (*keyring.Ring, error) {
	ring, err := keyring.Open(ctx, place, o.UserKeys.MasterKey, o.Now)
	if errors.Is(err, sealing.ErrKeyWrong) || errors.Is(err, sealing.ErrKeyMissing) {
		text := strings.NewReplacer("the file is encrypted", "it is").Replace(err.Error())
		return nil, causedBy(err, newError(KindMasterKey, "", "the key ring (%s) does not open with "+
			"this master key: %s", where, text))
	}
	return ring, err
}

// noUserKeys is the error for a place that does not hold the store's ring.
func noUserKeys(where string, bound keyring.Bound, cause error) error {
	ring := ""
	if bound.Ring != 0 { // a recovered store does not know its id
		ring = ", in the ring " + keyring.RingID(bound.Ring)
	}
	return causedBy(cause, newError(KindUserKeys, "", "the store has user keys%s, but there are none at %s; "+
		"put the ring there, from its backup if it is lost, or set UserKeys.Place to where it is", ring, where))
}

// openKeysPlace opens the place of a ring, and says where it is.
func openKeysPlace(ctx context.Context, engine db.DB, bound keyring.Bound, making bool,
	o Options) (db.Keys, string, error) {
	k := o.UserKeys
	isAddress := valid.Scheme(k.Place) != ""
	if open := db.KeysOpenerOf(ctx); open != nil && (k.Place == "" || isAddress) {
		where := "beside the store"
		if isAddress {
			where = "the address of UserKeys.Place"
		}
		keys, err := open(ctx, k.Place, making, db.Opening{ReadOnly: k.ReadOnly, Readers: 2, Logger: o.Logger, Now: o.Now})
		if errors.Is(err, fs.ErrNotExist) {
			return nil, where, noUserKeys(where, bound, err)
		}
		if err != nil {
			return nil, where, causedBy(err, newError(KindUserKeys, "", "the key ring (%s) cannot be "+
				"opened: %v", where, err))
		}
		return keyring.PlaceOf(keys), where, nil
	}
	path := k.Place
	switch {
	case isAddress:
		return nil, "", invalid("UserKeys", "{}.Place is the address of a database, but the store is in a file; give "+
			"the path of a file")
	case path == "" && !engine.Upkeep().InFile():
		return nil, "", invalid("UserKeys", "{} have no Place, but the store is not in a file; give the path of one "+
			"for the keys")
	case path == "":
		path = UserKeysFile(engine.Upkeep().Path)
	}
	if err := checkPath("UserKeys", path); err != nil {
		return nil, "", err
	}
	if _, err := os.Lstat(path); !making && errors.Is(err, fs.ErrNotExist) {
		return nil, path, noUserKeys(path, bound, err)
	}
	keys, err := sqlite.OpenKeys(ctx, path, k.ReadOnly, o.Logger)
	if err != nil {
		return nil, path, causedBy(err, newError(KindUserKeys, "", "the key ring cannot be opened: "+
			"%v", err))
	}
	return keyring.PlaceOf(keys), path, nil
}

// UserKeysOptions say what [Upkeep.CheckUserKeys] does besides counting. Nil means the zero value.
type UserKeysOptions struct {
	// Check reads all rows of the store, and compares the keys that they name with those of the ring.
	Check bool

	// Repair brings an older copy of the ring up to date: the keys of users deleted in the store are erased again, and
	// keys that rows name but the ring has never had count as erased. Then a check with Repair removes their rows. The
	// store must be the current one, not a copy. With Check, the report describes the state after the repair.
	Repair bool
}

// UserKeysReport is the result of [Upkeep.CheckUserKeys]. It holds no key.
type UserKeysReport struct {
	Ring       string    `json:"ring"`                 // its id
	MasterKey  string    `json:"master_key"`           // id of the master key that wraps the ring's key
	ReadOnly   bool      `json:"read_only"`            // it is opened for reading only
	Keys       int       `json:"keys"`                 // of users
	Erased     int       `json:"erased"`               // keys that were erased
	Leaving    int       `json:"leaving"`              // user keys whose deletion has begun but not ended
	Since      time.Time `json:"since,omitzero"`       // when the first key was made
	LastErased time.Time `json:"last_erased,omitzero"` // when a key was erased last

	// With Check: the number of sealed values in the store, of values under erased keys, as in a store from an older
	// backup (Upkeep.Check with Repair removes them), and of values under keys that the ring has never had.
	Values        int      `json:"values"`
	ErasedValues  int      `json:"erased_values"`
	UnknownValues int      `json:"unknown_values"`
	UnknownKeys   []string `json:"unknown_keys,omitempty"` // the ids of these keys, the first 100
}

// CheckUserKeys counts the user keys in the store's ring and, if asked to, compares them with the rows of the store. A
// store without user keys is ErrUserKeys.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store, Repair is ErrReadOnly.
func (h *Upkeep) CheckUserKeys(ctx context.Context, options *UserKeysOptions) (report UserKeysReport, err error) {
	defer setGoNames[UserKeysOptions](&err)
	s, err := h.ring(ctx, "CheckUserKeys")
	if err != nil {
		return report, err
	}
	o := cmp.Or(options, &UserKeysOptions{})
	if o.Repair {
		if err := s.repairRing(ctx); err != nil {
			return report, wrap(err)
		}
	}
	status, err := s.ring.Status(ctx)
	if err != nil {
		return report, wrap(err)
	}
	report = UserKeysReport{Ring: keyring.RingID(s.ring.ID()), MasterKey: status.MasterKey, ReadOnly: s.ring.ReadOnly(),
		Keys: status.Keys, Erased: status.Erased, Leaving: status.Leaving, Since: status.Since, LastErased: status.Last}
	if !o.Check {
		return report, nil
	}
	named, err := s.ring.Named(ctx, s.db)
	report.Values, report.ErasedValues = named.Values, named.Erased
	report.UnknownValues, report.UnknownKeys = named.Unknown, named.Keys
	return report, wrap(err)
}

// ring returns the store for a method about the ring.
func (h *Upkeep) ring(ctx context.Context, method string) (*Store, error) {
	s, err := h.operator(ctx, method)
	if err == nil {
		err = s.readStore(ctx, func(db.Tx) error { return nil }) // fails on a closed store
	}
	if err == nil && s.ring == nil {
		err = newError(KindUserKeys, "", "the store has no user keys; only a new store gets them, with Options.UserKeys")
	}
	return s, err
}

// repairRing brings an older copy of the ring up to date.
func (s *Store) repairRing(ctx context.Context) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	erased, err := s.ring.EraseDeleted(ctx, s.db)
	if err != nil {
		return err
	}
	lost, err := s.ring.GiveUpUnknown(ctx, s.db)
	if err != nil {
		return err
	}
	if err := s.ring.NoteAnew(ctx, s.db); err != nil {
		return err
	}
	return s.noteAlone(ctx, nil, event{"keys.repair", "store", "", audit.Details{"erased": erased, "lost": lost}})
}

// ChangeUserKeysMaster puts the ring of the store under another master key, at once. The user keys stay as they are,
// and programs that have the store open, this one included, continue. From then on, opening the ring needs the new key.
//
// A store without user keys is ErrUserKeys. It is for the Store that Open returned; a view gets ErrForbidden. On a
// read-only ring it is ErrReadOnly.
func (h *Upkeep) ChangeUserKeysMaster(ctx context.Context, to MasterKey) (err error) {
	defer setGoNames[MasterKey](&err, "to", "to")
	s, err := h.operator(ctx, "ChangeUserKeysMaster")
	if err == nil {
		err = s.checkWritable()
	}
	if err == nil {
		_, err = h.ring(ctx, "ChangeUserKeysMaster")
	}
	if err == nil && to.IsZero() {
		err = invalid("to", "{} is not a key; give one")
	}
	if err != nil {
		return err
	}
	return s.noteAlone(ctx, wrap(s.ring.Rotate(ctx, to)), event{"keys.change", "store", "", nil})
}

// BackupUserKeys copies the ring of the store to a new file, which can take its place, under the same master key. Keep
// it apart from backups of the store, and keep only the newest: an older one makes users who were deleted since
// readable again, in backups that still hold them.
//
// The path must not exist: ErrConflict. A store without user keys is ErrUserKeys. It is for the Store that Open
// returned; a view gets ErrForbidden.
func (h *Upkeep) BackupUserKeys(ctx context.Context, path string) (err error) {
	defer setGoNames[struct{}](&err, "path", "path")
	s, err := h.ring(ctx, "BackupUserKeys")
	if err == nil {
		err = checkNewPath("path", path)
	}
	if err == nil {
		err = checkFree("path", path)
	}
	if err != nil {
		return err
	}
	err = sqlite.NewKeys(ctx, path, func(to sqlite.Keys) error { return s.ring.CopyTo(ctx, to) })
	return s.noteAlone(ctx, newFileError("path", path, err), event{"keys.backup", "store", "", nil})
}

// eraseKey erases the key of a deleted user, and adds that to the receipt. The receipt of the deletion alone, which was
// signed with the deletion, is valid, too.
func (s *Store) eraseKey(ctx context.Context, owner keyring.Owner, since int64, holdings receipt.Claims,
	signed *Receipt) error {
	ctx = context.WithoutCancel(ctx)
	erased, err := s.ring.Erase(ctx, owner, since)
	if err != nil || erased.IsZero() {
		return err
	}
	e := event{"user.key.erase", "user", owner.User, audit.Details{"key": erased.ID,
		"at": erased.At.Format(time.RFC3339Nano)}}
	if signed != nil { // a receipt and its entry hold the same numbers
		e.details["counts"], e.details["bytes"] = holdings.Counts, holdings.Bytes
	}
	var with Receipt
	err = s.writeStore(ctx, func(tx db.Tx) (err error) {
		if signed == nil {
			return s.note(ctx, tx, nil, e)
		}
		c := holdings
		c.Key = &receipt.ErasedKey{ID: erased.ID, At: erased.At}
		with, err = s.sign(ctx, tx, c, e)
		return err
	})
	if err == nil && signed != nil {
		*signed = with
	}
	if err == nil {
		err = s.ring.Note(ctx, s.db)
	}
	return err
}

// deletedBefore says, instead of a time, that a user was deleted before, and that an older backup undid it. Then
// nothing rejects the deletion.
const deletedBefore = -1

// deleteRestoredUsers deletes the users whom an older backup has brought back. Until that is done, and for good in a
// store or with a ring that is only read, their credentials are refused.
func (s *Store) deleteRestoredUsers(ctx context.Context) error {
	back, err := s.ring.Back(ctx, s.db)
	if err != nil || len(back) == 0 {
		return err
	}
	for _, o := range back {
		s.restoredUsers = append(s.restoredUsers, userKey{o.Namespace, o.User})
	}
	if s.engine.ReadOnly() || s.ring.ReadOnly() {
		s.log.Warn("the store is from a backup with users who were deleted since: their credentials are refused, and they "+
			"are deleted when the store is opened for writing with its key ring", "users", len(back))
		return nil
	}
	ctx = txcontext.Always(ctx) // a user whose key was erased does not return, not even to be copied
	ctx = db.Freeing(WithActor(ctx, func() Actor { return Actor{Via: ViaUpkeep} }))
	for _, o := range back {
		of := &Store{shared: s.shared, access: Access{User: LocalUser, Namespace: o.Namespace}, operator: true}
		err := of.deleteInPortions(ctx, false, func(tx db.Tx, v viewer, p trash.Portion) (bool, error) {
			done, err := of.deleteUser(tx, v, o.User, DeletionOptions{WithMemories: true}, deletedBefore, p)
			if !done {
				return false, err
			}
			return true, of.note(ctx, tx, err, event{"user.delete", "user", o.User, audit.Details{"restored": true}})
		})
		if err != nil && !errors.Is(err, ErrNotFound) { // another server has deleted the user
			if ctx.Err() != nil {
				return err
			}
			s.log.Error("a user who was deleted is back from a backup, and could not be deleted again: the credentials "+
				"are refused, and the next start tries again", "user", o.User, "error", err)
			continue
		}
		s.restoredUsers = slices.DeleteFunc(s.restoredUsers,
			func(u userKey) bool { return u == userKey{o.Namespace, o.User} })
		s.log.Warn("deleted a user again who was deleted after this backup was made", "user", o.User)
	}
	s.erased.Store(true) // the worker removes the traces, and the contents of files
	s.worker.Wake()
	return nil
}

// credentialsRefused reports whether all credentials of a user are refused.
func (s *shared) credentialsRefused(namespace string, u User) bool {
	return u.Disabled || slices.Contains(s.restoredUsers, userKey{namespace, u.ID})
}

// restoredUserFindings describes the deleted users whom an older backup has brought back.
func (s *shared) restoredUserFindings() (found []Finding) {
	for _, u := range s.restoredUsers {
		found = append(found, Finding{Table: "users", ID: u.id, Repairable: true, Problem: "the user was deleted after " +
			"this backup was made; opening the store for writing with its key ring deletes the user again"})
	}
	return found
}
