package souvenir

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Calls of every method, found by reflection so that none is missed.

// settled is a store with one of everything, for the local user, who has an account.
type settled struct {
	store                      *Store
	memory, file, token, grant string // ids
	turn                       string // id of a turn of a conversation
	session                    AddedSignIn
	invitation                 AddedInvitation
	invited                    string // id of an invitation to a project
	value                      string // value of the token
	tokens                     TokenSet
	exchange                   CodeExchange // exchange of an unused code
	refresh                    TokenRefresh
	deleted                    string      // id of a memory in the trash
	audit                      AuditAnchor // an entry of the audit log
	dir                        string      // for new files
}

const settledTodo = "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n- [ ] T1 first\n\n## Gaps\n"

// settle fills a store.
func settle(t *testing.T, s *Store) settled {
	t.Helper()
	st := settled{store: s, dir: t.TempDir()}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []NewUser{{ID: LocalUser, Name: "Owner", Role: RoleAdmin, Password: "right password"},
		{ID: "guest", Name: "Guest"}, {ID: "other", Name: "Other"}, {ID: "host", Name: "Host"}, {ID: "pest", Name: "Pest"}} {
		must(s.Accounts().AddUser(t.Context(), n))
	}
	st.memory = mustAdd(t, s, NewMemory{Content: "to be changed", ProjectID: "p"}).ID
	must(s.PutMemory(t.Context(), NewMemory{Content: "kept by key", ProjectID: "p", Key: "the key"}))
	must(s.UpdateMemory(t.Context(), st.memory, MemoryUpdate{Content: content("changed once")}))
	must(s.AddMember(t.Context(), NewMember{Project: ProjectRef{ID: "p"}, User: "guest", Role: MemberReader}))
	for _, sender := range []string{"pest", "host"} {
		view := s.As(Access{User: sender})
		must(view.AddProject(t.Context(), NewProject{ID: "theirs"}))
		must(view.AddMember(t.Context(), NewMember{Project: ProjectRef{ID: "theirs"}, User: LocalUser, Role: MemberReader}))
		waiting, err := s.Accounts().ProjectInvitations(t.Context())
		must(waiting, err)
		if st.invited = waiting[0].ID; sender == "pest" {
			must(s.Accounts().BlockSender(t.Context(), st.invited))
		}
	}
	must(s.SetRule(t.Context(), NewRule{ProjectID: "p", Type: RuleDo, Content: "be kind"}))
	must(s.Accounts().GetSealingKey(t.Context()))
	turns, err := s.Conversation("a talk", ConversationPlace{ProjectID: "p"}).Append(t.Context(), Turn{Content: "hello"})
	must(turns, err)
	st.turn = turns[0].ID
	must(s.SetTodo(t.Context(), NewTodo{ProjectID: "p", Content: settledTodo}))
	must(s.SetIdentityMemory(t.Context(), IdentityMemory{Content: "Ada"}))
	st.deleted = mustAdd(t, s, NewMemory{Content: "to be restored", ProjectID: "p"}).ID
	must(nil, s.DeleteMemory(t.Context(), st.deleted, nil))
	must(s.AddMemory(t.Context(), NewMemory{Content: "what it is about", ProjectID: "p", EventType: EventProjectMain}))
	must(s.Accounts().LinkIdentity(t.Context(), NewIdentity{Issuer: testIssuer, Subject: "1"}))
	st.file = mustAddFile(t, s, NewFile{}, "content").ID
	added := mustAddToken(t, s, NewToken{Name: "laptop"})
	st.token, st.value = added.ID, added.Value
	client, err := s.Accounts().AddClient(t.Context(),
		NewClient{ID: "app", Secret: "secret", RedirectURIs: []string{testCallback}})
	must(client, err)
	st.tokens, st.refresh = mustLetIn(t, s, s, client)
	st.exchange = mustAuthorize(t, s, client)
	grants, err := s.Accounts().Grants(t.Context())
	must(grants, err)
	st.grant = grants[0].ID
	st.session = mustAddSignIn(t, s, NewSignIn{User: LocalUser})
	st.invitation = mustInvite(t, s, NewInvitation{})
	recordCalls(t, s, NewActivity{Tool: "memory", Action: "search"})
	log, err := s.Upkeep().CheckAudit(t.Context(), nil)
	must(nil, err)
	st.audit = log.Head
	return st
}

// arguments returns valid arguments, after the context, for the methods that zero values do not suit.
func (st settled) arguments() map[string][]any {
	all := st.accountArguments()
	maps.Copy(all, st.memoryArguments())
	maps.Copy(all, st.upkeepArguments())
	return all
}

// accountArguments are those of the methods of Accounts.
func (st settled) accountArguments() map[string][]any {
	authorization := Authorization{ClientID: "app", RedirectURI: testCallback, Scopes: []Scope{ScopeMemoryRead}}
	registration := ClientRegistration{ClientName: "App", RedirectURIs: []string{testCallback}}
	return map[string][]any{
		"AcceptInvitation": {InvitationAcceptance{Value: st.invitation.Value, Name: "invited",
			Password: "long and unusual"}},
		"AcceptProjectInvitation":  {st.invited},
		"BlockSender":              {st.invited},
		"DeclineProjectInvitation": {st.invited},
		"UnblockSender":            {"pest"},
		"AddClient":                {NewClient{RedirectURIs: []string{testCallback}}},
		"AddInvitation":            {NewInvitation{}},
		"AddSignIn":                {NewSignIn{User: "owner"}},
		"AddToken":                 {NewToken{Name: "x"}},
		"AddUser":                  {NewUser{Name: "new"}},
		"Authorize":                {authorization},
		"ChangePassword":           {PasswordChange{Old: "right password", New: "another password"}},
		"CheckAccessToken":         {checkOf(st.tokens.AccessToken)},
		"CheckAuthorization":       {authorization},
		"CheckBrowser":             {BrowserCheck{User: LocalUser, Mark: st.session.Mark}},
		"CheckClient":              {ClientCredentials{ID: "app", Secret: "secret"}},
		"CheckInvitation":          {st.invitation.Value},
		"CheckPassword":            {Credentials{Name: "owner", Password: "right password"}},
		"CheckSignIn":              {st.session.Value},
		"CheckToken":               {st.value},
		"ConfirmSignIn":            {st.session.ID},
		"DeactivateClient":         {"app"},
		"RevokeInvitation":         {st.invitation.ID},
		"RevokeSignIn":             {st.session.ID, (*SignOutOptions)(nil)},
		"RevokeToken":              {st.token},
		"UpdateToken":              {st.token, TokenUpdate{Paused: new(true)}},
		"UpdateGrant":              {st.grant, GrantUpdate{Paused: new(true)}},
		"DeleteUser":               {"guest", (*DeletionOptions)(nil)},
		"RevokeAccess":             {"", AccessKinds()},
		"ExchangeCode":             {st.exchange},
		"GetClient":                {"app"},
		"GetUser":                  {"guest"},
		"LinkIdentity":             {NewIdentity{Issuer: testIssuer, Subject: "2"}},
		"RefreshTokens":            {st.refresh},
		"RegenerateClientSecret":   {"app"},
		"RegisterClient":           {registration},
		"RevokeGrant":              {st.grant},
		"RevokeGrantByToken":       {Revocation{Client: st.refresh.Client, Token: st.tokens.RefreshToken}},
		"PutDocumentClient":        {DocumentClient{URL: "https://app.example/client", Registration: registration}},
		"UnlinkIdentity":           {"", testIssuer, "1"},
		"UpdateSharedValues": {SharedValuesUpdate{Keys: []string{"k"}, Life: time.Hour,
			Change: func(values [][]byte) { values[0] = []byte("x") }}},
		"UpdateUser":        {"guest", UserUpdate{Email: content("guest@example.com")}},
		"GetUserByIdentity": {testIssuer, "1"},
	}
}

// memoryArguments are those of the other methods.
func (st settled) memoryArguments() map[string][]any {
	p := ProjectRef{ID: "p"}
	return map[string][]any{
		"InvitedMembers": {p},
		"AddCollection":  {NewCollection{Name: "c"}},
		"AddFile":        {NewFile{}, io.Reader(strings.NewReader("content"))},
		"AddMember":      {NewMember{Project: p, User: "other", Role: MemberWriter}},
		"AddMemories":    {[]NewMemory{{Content: "x"}}},
		"AddMemory":      {NewMemory{Content: "x", Similar: 2}},
		"DeleteMemories": {MemoriesDeletion{MemoryList: MemoryList{Tags: []string{"none"}}}},
		"UpdateMemories": {MemoriesUpdate{MemoryList: MemoryList{Tags: []string{"none"}},
			Change: MemoryUpdate{ShownMetadata: map[string]any{"a": 1}}}},
		"PutMemory":        {NewMemory{Key: "a key", Content: "x"}},
		"PutMemories":      {[]NewMemory{{Key: "b", Content: "x"}}},
		"GetMemoryByKey":   {MemoryKey{ProjectID: "p", Key: "the key"}},
		"Append":           {Turn{Content: "x"}},
		"Around":           {st.turn, 1, 1},
		"Delete":           {st.turn},
		"Last":             {1},
		"Window":           {100},
		"AddProject":       {NewProject{ID: "new"}},
		"CountDue":         {DueQuery{Project: p, Retention: Retention{After: MinRetention}}},
		"CompleteTask":     {TaskRef{ProjectID: "p", TaskID: "T1"}},
		"DeleteCollection": {DefaultCollection, &DeletionOptions{WithMemories: true}},
		"DeleteFile":       {st.file, (*DeletionOptions)(nil)},
		"DeleteMember":     {p, "guest"},
		"DeleteMemory":     {st.memory, &DeletionOptions{Erase: true}},
		"DeleteProject":    {p, &DeletionOptions{WithMemories: true}},
		"DeleteRule":       {p, RuleDo},
		"Erase":            {st.deleted},
		"GetCollection":    {DefaultCollection},
		"GetFile":          {st.file},
		"FileStatus":       {st.file},
		"WaitIndexed":      {st.file},
		"GetMemory":        {st.memory},
		"MemoryStatus":     {st.memory},
		"GetProject":       {p},
		"GetRule":          {p, RuleDo},
		"GetTodo":          {p},
		"GetMainMemory":    {p},
		"Members":          {p},
		"GetModuleState":   {ModuleQuery{Module: "engine"}},
		"Modules":          {p},
		"OpenFile":         {st.file},
		"RelatedMemories":  {st.memory, 1},
		"RestoreRevision":  {st.memory, 1},
		"RevisionPage":     {st.memory, RevisionQuery{}},
		"Revisions":        {st.memory},
		"Restore":          {st.deleted},
		"Get":              {st.deleted},
		"Search":           {Query{Text: "apple"}},
		"Transaction":      {func(ctx context.Context) error { return st.store.DeleteMemory(ctx, st.memory, nil) }},
		"SearchBatch":      {[]Query{{Text: "apple"}, {}}},
		"SearchAll":        {Query{Text: "apple"}},
		"Snapshot": {func(ctx context.Context) error {
			_, err := st.store.GetMemory(ctx, st.memory)
			return err
		}},
		"SetIdentityMemory": {IdentityMemory{Content: "Bea"}},
		"SetRule":           {NewRule{ProjectID: "p", Type: RuleDont, Content: "be rude"}},
		"SetTodo":           {NewTodo{ProjectID: "p", Content: settledTodo}},
		"UpdateCollection":  {DefaultCollection, CollectionUpdate{Description: content("d")}},
		"UpdateFile":        {st.file, FileUpdate{Description: content("d")}},
		"UpdateMember":      {p, "guest", MemberUpdate{Role: MemberWriter}},
		"UpdateMemory":      {st.memory, MemoryUpdate{ShownMetadata: map[string]any{"k": "v"}}},
		"UpdateProject":     {p, ProjectUpdate{Name: content("named")}},
		"UpdateTodoSection": {ProjectRef{ID: "p"}, SectionSpec, TodoSectionUpdate{Content: "new"}},
	}
}

// upkeepArguments are those of the methods of Upkeep.
func (st settled) upkeepArguments() map[string][]any {
	return map[string][]any{
		"CutAudit":   {st.audit},
		"Backup":     {filepath.Join(st.dir, "backup.db")},
		"BackupTo":   {io.Discard},
		"SetSetting": {SettingItems, new(int64)},
		"Export":     {io.Discard},
		"Import": {io.Reader(strings.NewReader(`{"souvenir":"export","version":1}` + "\n" +
			`{"type":"memory","content":"brought"}`))},
		"ChangeMasterKey":      {GenerateMasterKey()},
		"ChangeUserKeysMaster": {GenerateMasterKey()},
		"BackupUserKeys":       {"keys.ring"},
		"MoveFiles":            {InDatabase},
		"RecordActivity":       {NewActivity{Tool: "memory"}},
	}
}

// calls returns a call with valid arguments of every method that takes a context.
func (st settled) calls() map[string]func(context.Context) error {
	calls := map[string]func(context.Context) error{
		"Search by time": func(ctx context.Context) error { _, err := st.store.Search(ctx, Query{}); return err },
	}
	for name, method := range methodsOf(st.store) {
		if takesContext(method.Type()) {
			calls[name] = func(ctx context.Context) error { return callMethod(method, ctx, st.arguments()[name]) }
		}
	}
	return calls
}

// methodsOf returns the methods of a store and of its handles, by name. A method without arguments that returns a
// pointer returns a handle, so none is left out. Method names are unique.
func methodsOf(s *Store) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	var add func(handle reflect.Value)
	add = func(handle reflect.Value) {
		for i := range handle.NumMethod() {
			name, method := handle.Type().Method(i).Name, handle.Method(i)
			if kind := method.Type(); kind.NumIn() == 0 && kind.NumOut() == 1 &&
				kind.Out(0).Kind() == reflect.Pointer && kind.Out(0) != reflect.TypeFor[*Store]() {
				add(method.Call(nil)[0])
				continue
			}
			if name == "Conversation" { // also a handle
				add(reflect.ValueOf(s.Conversation("a talk", ConversationPlace{ProjectID: "p"})))
			}
			if found[name].IsValid() {
				panic("two handles have a method " + name)
			}
			found[name] = method
		}
	}
	add(reflect.ValueOf(s))
	return found
}

func TestThePageOfTheAPIShowsEveryMethod(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range methodsOf(&Store{}) {
		if !strings.Contains(string(page), "\n- `"+name+"(") {
			t.Errorf("docs/api.md does not show %s, want %q in the page", name, "\n- `"+name+"(")
		}
	}
	s := &Store{}
	for handle, of := range map[string]any{"Store": s, "Store.Accounts()": s.Accounts(), "Store.Upkeep()": s.Upkeep(),
		"Store.Insights()": s.Insights(), "Store.Trash()": s.Trash(),
		"Store.Conversation(key)": s.Conversation("k")} {
		if row := fmt.Sprintf("| `%s` | %d |", handle, reflect.TypeOf(of).NumMethod()); !strings.Contains(string(page), row) {
			t.Errorf("docs/api.md: got no row %s, want one", row)
		}
	}
}

func TestThePageOfTheAPIShowsEveryFunctionAndType(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil {
				shown[f.Name.Name] = true
			}
			if g, is := d.(*ast.GenDecl); is && g.Tok == token.TYPE {
				for _, spec := range g.Specs {
					shown[spec.(*ast.TypeSpec).Name.Name] = true
				}
			}
		}
	}
	for name := range shown {
		if row := "\n- `" + name + "`: "; ast.IsExported(name) && !strings.Contains(string(page), row) {
			t.Errorf("docs/api.md does not show %s, want %q in the page", name, row)
		}
	}
}

// methodNames returns the names of the exported methods of a handle.
func methodNames(handle any) (names []string) {
	for method := range reflect.TypeOf(handle).Methods() {
		names = append(names, method.Name)
	}
	return names
}

func takesContext(method reflect.Type) bool {
	return method.NumIn() > 0 && method.In(0) == reflect.TypeFor[context.Context]()
}

// callMethod calls a method with the given arguments, then zero values. It returns the error: the last result, or the
// first error of a listing.
func callMethod(method reflect.Value, ctx context.Context, arguments []any) error {
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for _, argument := range arguments {
		in = append(in, reflect.ValueOf(argument))
	}
	kinds := method.Type()
	for i := len(in); i < kinds.NumIn() && !(kinds.IsVariadic() && i == kinds.NumIn()-1); i++ {
		in = append(in, reflect.Zero(kinds.In(i)))
	}
	out := method.Call(in)
	last := out[len(out)-1]
	if last.Kind() == reflect.Func {
		for _, err := range last.Seq2() {
			return errorOf(err)
		}
		return nil
	}
	if reader, ok := out[0].Interface().(io.Closer); ok && !out[0].IsNil() {
		return errors.Join(errorOf(last), reader.Close())
	}
	return errorOf(last)
}

func errorOf(value reflect.Value) error {
	err, _ := value.Interface().(error)
	return err
}

// writers are the verbs of methods that change something and so are refused by read-only views.
var writers = []string{"Accept", "Add", "AdoptObjects", "Append", "Authorize", "BlockSender", "Change", "Clear",
	"Compact", "Complete",
	"Confirm", "CutAudit",
	"Deactivate", "Decline", "Delete", "Empty", "End", "Erase", "Exchange", "Import", "Link", "Purge", "Put", "Record",
	"Refresh",
	"MoveFiles", "Regenerate", "Register", "Reindex", "StoreIndex",
	"Restore", "Revoke", "Rotate", "Set", "Transaction", "Unblock", "Unlink", "Update"}

func writes(method string) bool {
	return method != "Settings" &&
		slices.ContainsFunc(writers, func(verb string) bool { return strings.HasPrefix(method, verb) })
}

func TestReadOnlyStoresReadOrRefuse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settled.db")
	st := settle(t, openWords(t, path, Options{Changeable: settingNames}))
	before := rowsOf(t, st.store)
	st.store = openWords(t, path, Options{ReadOnly: true, Changeable: settingNames})
	for method, call := range st.calls() {
		err := call(t.Context())
		if want := writes(method); want != errors.Is(err, ErrReadOnly) || !want && err != nil && !withoutOption(method, err) {
			t.Errorf("%s gives %v, want ErrReadOnly from calls that write and no error from others", method, err)
		}
	}
	if rowsOf(t, st.store) != before {
		t.Error("something was changed, want no change")
	}
}

// Without a reason to refuse them, the calls of these tests succeed. So each test's refusal has the reason it is about.
func TestEveryMethodAcceptsValidArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settled.db")
	st := settle(t, openWords(t, path, Options{Changeable: settingNames}))
	backup := filepath.Join(t.TempDir(), "copy.db")
	if err := st.store.Upkeep().Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	for i, method := range slices.Sorted(maps.Keys(st.calls())) {
		// Methods that only read have already been called on a read-only file.
		if !writes(method) || !longtest.Part(i, 1, 12) {
			continue
		}
		copied := filepath.Join(t.TempDir(), "settled.db")
		if err := Restore(t.Context(), Restoration{From: backup, To: copied}); err != nil {
			t.Fatal(err)
		}
		again := st
		again.store = openWords(t, copied, Options{Changeable: settingNames})
		err := again.calls()[method](t.Context())
		if withoutOption(method, err) {
			err = nil // TestAnEncryptedStoreIsCopiedUnderItsKey and TestAnOlderRingIsRefusedAndCanBeRepaired call them
		}
		if err != nil {
			t.Errorf("%s gives %v", method, err)
		}
		if err := again.store.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryMethodOfAClosedStoreSaysSo(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "settled.db"), ":memory:"} {
		st := settle(t, openWords(t, path, Options{Changeable: settingNames}))
		if err := st.store.Close(); err != nil {
			t.Fatal(err)
		}
		for method, call := range st.calls() {
			if err := call(context.Background()); !errors.Is(err, ErrClosed) {
				t.Errorf("%s of a closed store gives %v, want ErrClosed", method, err)
			}
		}
	}
}

func TestEveryMethodEndsWithItsContext(t *testing.T) {
	st := settle(t, openWords(t, filepath.Join(t.TempDir(), "settled.db"), Options{Changeable: settingNames}))
	before := rowsOf(t, st.store)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, release := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer release()
	for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late} {
		for method, call := range st.calls() {
			if err := call(ctx); !errors.Is(err, want) {
				t.Errorf("%s with a context that has ended gives %v, want %v", method, err, want)
			}
		}
	}
	if rowsOf(t, st.store) != before {
		t.Error("a call that had ended left something behind, want no change")
	}
}

// withoutOption reports whether a method has refused a store without a key, user keys or object storage.
func withoutOption(method string, err error) bool {
	switch method {
	case "ChangeMasterKey":
		return errors.Is(err, ErrMasterKey)
	case "ChangeUserKeysMaster", "BackupUserKeys", "CheckUserKeys":
		return errors.Is(err, ErrUserKeys)
	case "AdoptObjects":
		return errors.Is(err, ErrInvalid)
	}
	return false
}
