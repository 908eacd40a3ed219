package souvenir

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A refusal of each method that can be called with invalid arguments.

// refusal is a call that must be refused, with the error's kind and argument.
type refusal struct {
	arguments []any // after the context; missing ones are zero values
	kind      *Error
	argument  string
}

// brokenWriter fails on every write.
type brokenWriter struct{ io.Writer }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the other end is gone") }

// refusals returns those of all methods.
func (st settled) refusals() map[string]refusal {
	all := st.memoryRefusals()
	for _, some := range []map[string]refusal{st.accountRefusals(), st.oauthRefusals(), st.upkeepRefusals()} {
		maps.Copy(all, some)
	}
	return all
}

// memoryRefusals are of memories, files, collections and projects.
func (st settled) memoryRefusals() map[string]refusal {
	p, nowhere := ProjectRef{ID: "p"}, ProjectRef{ID: "nowhere"}
	return map[string]refusal{
		"InvitedMembers": {[]any{nowhere}, ErrNotFound, "project_id"},
		"AddCollection":  {[]any{NewCollection{}}, ErrInvalid, "collection_name"},
		"AddFile": {[]any{NewFile{MemoryID: "nowhere"}, io.Reader(strings.NewReader("x"))}, ErrNotFound,
			"memory_id"},
		"AddMember":         {[]any{NewMember{Project: p, User: "guest", Role: "king"}}, ErrInvalid, "role"},
		"AddMemories":       {[]any{[]NewMemory{{Content: "x"}, {}}}, ErrInvalid, "content"},
		"AddMemory":         {[]any{NewMemory{}}, ErrInvalid, "content"},
		"DeleteMemories":    {[]any{MemoriesDeletion{}}, ErrInvalid, "filter"},
		"UpdateMemories":    {[]any{MemoriesUpdate{All: true}}, ErrInvalid, "Change"},
		"PutMemory":         {[]any{NewMemory{Content: "x"}}, ErrInvalid, "key"},
		"PutMemories":       {[]any{[]NewMemory{{Key: "k"}}}, ErrInvalid, "content"},
		"GetMemoryByKey":    {[]any{MemoryKey{Key: "nowhere"}}, ErrNotFound, "key"},
		"Append":            {[]any{Turn{}}, ErrInvalid, "content"},
		"Around":            {[]any{st.turn, -1}, ErrInvalid, "before"},
		"Conversations":     {[]any{ConversationList{Offset: -1}}, ErrInvalid, "offset"},
		"Delete":            {[]any{"nowhere"}, ErrNotFound, "id"},
		"Last":              {[]any{0}, ErrInvalid, "n"},
		"Window":            {[]any{0}, ErrInvalid, "tokens"},
		"AddProject":        {[]any{NewProject{ID: "a/b"}}, ErrInvalid, "project_id"},
		"CompleteTask":      {[]any{TaskRef{ProjectID: "p", TaskID: "T2"}}, ErrNotFound, "task_id"},
		"DeleteCollection":  {[]any{"nowhere", (*DeletionOptions)(nil)}, ErrNotFound, "collection_name"},
		"DeleteFile":        {[]any{"nowhere", &DeletionOptions{Erase: true}}, ErrNotFound, "file_id"},
		"DeleteMember":      {[]any{p, "noah"}, ErrNotFound, "user"},
		"DeleteMemory":      {[]any{"nowhere", (*DeletionOptions)(nil)}, ErrNotFound, "id"},
		"DeleteProject":     {[]any{p, (*DeletionOptions)(nil)}, ErrConflict, "project_id"},
		"DeleteRule":        {[]any{p, RuleType("maybe")}, ErrInvalid, "rule_type"},
		"Files":             {[]any{FileList{Sort: "newest"}}, ErrInvalid, "sort_order"},
		"FilePage":          {[]any{FileQuery{Offset: -1}}, ErrInvalid, "offset"},
		"GetCollection":     {[]any{"nowhere"}, ErrNotFound, "collection_name"},
		"GetContext":        {[]any{ContextQuery{Related: 51}}, ErrInvalid, "related"},
		"GetFile":           {[]any{"nowhere"}, ErrNotFound, "file_id"},
		"FileStatus":        {[]any{"nowhere"}, ErrNotFound, "file_id"},
		"WaitIndexed":       {[]any{"nowhere"}, ErrNotFound, "file_id"},
		"GetMemory":         {[]any{"nowhere"}, ErrNotFound, "id"},
		"MemoryStatus":      {[]any{"nowhere"}, ErrNotFound, "id"},
		"GetProject":        {[]any{nowhere}, ErrNotFound, "project_id"},
		"GetRule":           {[]any{p, RuleDont}, ErrNotFound, "project_id"},
		"GetTodo":           {[]any{nowhere}, ErrNotFound, "project_id"},
		"GetMainMemory":     {[]any{nowhere}, ErrNotFound, "project_id"},
		"Members":           {[]any{nowhere}, ErrNotFound, "project_id"},
		"Memories":          {[]any{MemoryList{Sort: "newest"}}, ErrInvalid, "sort_order"},
		"GetModuleState":    {[]any{ModuleQuery{}}, ErrInvalid, "module_name"},
		"OpenFile":          {[]any{"nowhere"}, ErrNotFound, "file_id"},
		"RelatedMemories":   {[]any{st.memory, 11}, ErrInvalid, "depth"},
		"Restore":           {[]any{"nowhere"}, ErrNotFound, "id"},
		"Get":               {[]any{"nowhere"}, ErrNotFound, "id"},
		"All":               {[]any{TrashList{Kinds: []TrashKind{"user"}}}, ErrInvalid, "kinds"},
		"Page":              {[]any{TrashQuery{Limit: 1001}}, ErrInvalid, "limit"},
		"Erase":             {[]any{"nowhere"}, ErrNotFound, "id"},
		"RestoreRevision":   {[]any{st.memory, 7}, ErrNotFound, "revision"},
		"RevisionPage":      {[]any{"nowhere", RevisionQuery{Limit: 101}}, ErrInvalid, "limit"},
		"Revisions":         {[]any{"nowhere"}, ErrNotFound, "id"},
		"Rules":             {[]any{ProjectRef{ID: "p", Name: "another"}}, ErrInvalid, "project_name"},
		"Search":            {[]any{Query{Limit: -1}}, ErrInvalid, "limit"},
		"SearchBatch":       {[]any{[]Query{{Text: "apple"}, {Limit: -1}}}, ErrInvalid, "limit"},
		"SearchAll":         {[]any{Query{Limit: 1}}, ErrInvalid, "limit"},
		"SetIdentityMemory": {[]any{IdentityMemory{}}, ErrInvalid, "content"},
		"SetRule":           {[]any{NewRule{ProjectID: "p", Type: RuleDo}}, ErrInvalid, "content"},
		"SetTodo":           {[]any{NewTodo{ProjectID: "p", Content: "## Spec"}}, ErrInvalid, "content"},
		"UpdateCollection":  {[]any{"nowhere", CollectionUpdate{}}, ErrNotFound, "collection_name"},
		"UpdateFile":        {[]any{"nowhere", FileUpdate{}}, ErrNotFound, "file_id"},
		"UpdateMember": {[]any{p, "noah", MemberUpdate{Role: MemberReader}}, ErrNotFound,
			"user"},
		"UpdateMemory":      {[]any{st.memory, MemoryUpdate{Content: content("")}}, ErrInvalid, "content"},
		"UpdateProject":     {[]any{nowhere, ProjectUpdate{}}, ErrNotFound, "project_id"},
		"UpdateTodoSection": {[]any{ProjectRef{ID: "p"}, Section("wishes"), TodoSectionUpdate{}}, ErrInvalid, "section"},
	}
}

func (st settled) accountRefusals() map[string]refusal {
	guest := RoleUser
	return map[string]refusal{
		"AcceptInvitation": {[]any{InvitationAcceptance{Value: st.invitation.Value, Name: "owner",
			Password: "long and unusual"}}, ErrConflict, "name"},
		"AcceptProjectInvitation":  {[]any{"nowhere"}, ErrNotFound, "id"},
		"BlockSender":              {[]any{"nowhere"}, ErrNotFound, "id"},
		"DeclineProjectInvitation": {[]any{"nowhere"}, ErrNotFound, "id"},
		"UnblockSender":            {[]any{"host"}, ErrNotFound, "user"},
		"AddInvitation":            {[]any{NewInvitation{Purpose: InvitationSetup}}, ErrConflict, "purpose"},
		"AddSignIn":                {[]any{NewSignIn{User: "noah"}}, ErrNotFound, "user"},
		"AddToken":                 {[]any{NewToken{Name: "x", Scopes: []Scope{"everything"}}}, ErrInvalid, "scopes"},
		"AddUser":                  {[]any{NewUser{Name: "owner"}}, ErrConflict, "name"},
		"ChangePassword": {[]any{PasswordChange{Old: "wrong password", New: "another password"}},
			ErrUnauthenticated, "old_password"},
		"CheckBrowser":     {[]any{BrowserCheck{Mark: "wrong"}}, ErrUnauthenticated, "mark"},
		"CheckInvitation":  {[]any{"inv_wrong"}, ErrNotFound, "invitation"},
		"CheckPassword":    {[]any{Credentials{Name: "owner", Password: "wrong password"}}, ErrUnauthenticated, ""},
		"CheckSignIn":      {[]any{"ses_wrong"}, ErrUnauthenticated, ""},
		"CheckToken":       {[]any{"mcp_wrong"}, ErrUnauthenticated, ""},
		"ConfirmSignIn":    {[]any{"nowhere"}, ErrNotFound, "id"},
		"RevokeInvitation": {[]any{"nowhere"}, ErrNotFound, "id"},
		"RevokeSignIn":     {[]any{"nowhere", (*SignOutOptions)(nil)}, ErrNotFound, "id"},
		"RevokeToken":      {[]any{"nowhere"}, ErrNotFound, "id"},
		"UpdateToken":      {[]any{"nowhere", TokenUpdate{}}, ErrNotFound, "id"},
		"DeleteUser":       {[]any{"noah", (*DeletionOptions)(nil)}, ErrNotFound, "user"},
		"RevokeAccess":     {[]any{"", []AccessKind(nil)}, ErrInvalid, "kinds"},
		"GetUser":          {[]any{"noah"}, ErrNotFound, "user"},
		"Identities":       {[]any{"noah"}, ErrNotFound, "user"},
		"LinkIdentity":     {[]any{NewIdentity{Issuer: testIssuer}}, ErrInvalid, "subject"},
		"SetPreferences": {[]any{map[string]any{"x": strings.Repeat("x", MaxPreferences)}}, ErrTooLarge,
			"preferences"},
		"UnlinkIdentity":     {[]any{"", testIssuer, "2"}, ErrNotFound, "subject"},
		"UpdateSharedValues": {[]any{SharedValuesUpdate{Keys: []string{"k"}, Life: -1}}, ErrInvalid, "Life"},
		"UpdatePreferences":  {[]any{map[string]any{"x": func() {}}}, ErrInvalid, "preferences"},
		"UserPage":           {[]any{UserQuery{Offset: -1}}, ErrInvalid, "offset"},
		"UpdateUser":         {[]any{"owner", UserUpdate{Role: &guest}}, ErrConflict, "user"},
		"GetUserByIdentity":  {[]any{testIssuer, "2"}, ErrNotFound, "subject"},
	}
}

func (st settled) oauthRefusals() map[string]refusal {
	authorization := Authorization{ClientID: "app", RedirectURI: testCallback + "/other", Scopes: []Scope{ScopeMemoryRead}}
	wrong := ClientCredentials{ID: "app", Secret: "wrong"}
	exchange, refresh := st.exchange, st.refresh
	exchange.Code, refresh.RefreshToken = "wrong", "wrong"
	return map[string]refusal{
		"AddClient": {[]any{NewClient{RedirectURIs: []string{"javascript:alert(1)"}}}, ErrInvalid,
			"redirect_uris"},
		"Authorize":              {[]any{authorization}, ErrInvalid, "redirect_uri"},
		"CheckAccessToken":       {[]any{checkOf("x.y.z")}, ErrUnauthenticated, "token"},
		"CheckAuthorization":     {[]any{authorization}, ErrInvalid, "redirect_uri"},
		"CheckClient":            {[]any{wrong}, ErrUnauthenticated, "client_id"},
		"DeactivateClient":       {[]any{"noah"}, ErrNotFound, "client_id"},
		"UpdateGrant":            {[]any{"nowhere", GrantUpdate{}}, ErrNotFound, "id"},
		"ExchangeCode":           {[]any{exchange}, ErrInvalid, "code"},
		"GetClient":              {[]any{"noah"}, ErrNotFound, "client_id"},
		"RefreshTokens":          {[]any{refresh}, ErrInvalid, "refresh_token"},
		"RegenerateClientSecret": {[]any{"noah"}, ErrNotFound, "client_id"},
		"RegisterClient":         {[]any{ClientRegistration{}}, ErrInvalid, "redirect_uris"},
		"RevokeGrant":            {[]any{"nowhere"}, ErrNotFound, "id"},
		"RevokeGrantByToken": {[]any{Revocation{Client: wrong, Token: st.tokens.RefreshToken}}, ErrUnauthenticated,
			"client_id"},
		"PutDocumentClient": {[]any{DocumentClient{URL: "http://app.example/client"}}, ErrInvalid, "client_id"},
	}
}

// upkeepRefusals are of Upkeep and Insights.
func (st settled) upkeepRefusals() map[string]refusal {
	return map[string]refusal{
		"Activities":           {[]any{ActivityQuery{Limit: 1}}, ErrInvalid, "limit"},
		"ActivityPage":         {[]any{ActivityQuery{Before: "nowhere"}}, ErrNotFound, "before"},
		"Backup":               {[]any{filepath.Join(st.dir, "no", "such", "folder.db")}, ErrNotFound, "path"},
		"BackupTo":             {[]any{io.Writer(brokenWriter{})}, ErrInternal, ""},
		"SetSetting":           {[]any{SettingName("colour")}, ErrInvalid, "name"},
		"Export":               {[]any{io.Writer(brokenWriter{})}, ErrInternal, ""},
		"CallDays":             {[]any{CallDaysQuery{Days: -1}}, ErrInvalid, "days"},
		"CountDue":             {[]any{DueQuery{Collection: "nowhere"}}, ErrNotFound, "collection_name"},
		"Graph":                {[]any{GraphQuery{Similar: 2}}, ErrInvalid, "similar"},
		"Import":               {[]any{io.Reader(strings.NewReader("a,b\n"))}, ErrForeign, ""},
		"Map":                  {[]any{MapQuery{Limit: -1}}, ErrInvalid, "limit"},
		"Modules":              {[]any{ProjectRef{ID: strings.Repeat("x", 129)}}, ErrTooLarge, "project_id"},
		"ChangeMasterKey":      {[]any{MasterKey{}}, ErrInvalid, "to"},
		"ChangeUserKeysMaster": {[]any{MasterKey{}}, ErrUserKeys, ""},
		"BackupUserKeys":       {[]any{""}, ErrUserKeys, ""},
		"CheckUserKeys":        {[]any{}, ErrUserKeys, ""},
		"MoveFiles":            {[]any{FilePlace("cloud")}, ErrInvalid, "to"},
		"Overview":             {[]any{OverviewQuery{Days: -1}}, ErrInvalid, "days"},
		"Purge":                {[]any{&PurgeOptions{KeepRevisions: -1}}, ErrInvalid, "KeepRevisions"},
		"CutAudit":             {[]any{AuditAnchor{Seq: 1, Hash: "ff"}}, ErrInvalid, "hash"},
		"CheckAudit":           {[]any{&AuditAnchor{Seq: -1}}, ErrInvalid, "seq"},
		"AuditEntries":         {[]any{AuditQuery{Before: -1}}, ErrInvalid, "before"},
		"RecordActivity":       {[]any{NewActivity{}}, ErrInvalid, "tool"},
		"Tags":                 {[]any{"nowhere"}, ErrNotFound, "collection_name"},
	}
}

// cannotBeWrong are the methods without invalid arguments, and methods without a context.
var cannotBeWrong = map[string]bool{"Check": true, "Clear": true, "RevokeSignIns": true, "Since": true,
	"LoadIndex": true, "Reindex": true, "StoreIndex": true,
	"Access": true, "As": true, "Conversation": true, "Key": true, "Close": true, "Snapshot": true, "Confined": true,
	"Transaction": true, "Namespace": true}

func TestInvalidArgumentsAreNamed(t *testing.T) {
	st := settle(t, openWords(t, filepath.Join(t.TempDir(), "settled.db"),
		Options{Now: func() time.Time { return time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC) }}))
	refusals := st.refusals()
	methods := methodsOf(st.store)
	for name, method := range methods {
		if takesContext(method.Type()) && method.Type().NumIn() == 1 {
			continue // other tests cover canceled contexts, closed stores and views
		}
		if refusals[name].kind == nil != cannotBeWrong[name] {
			t.Errorf("%s: want it either with a call that is refused, or among those that cannot be wrong", name)
		}
	}
	before := rowsOf(t, st.store)
	for name, r := range refusals {
		method := methods[name]
		if !method.IsValid() {
			t.Errorf("got %s in refusals, want only methods of Store and its handles", name)
			continue
		}
		err := callMethod(method, t.Context(), r.arguments)
		var known *Error
		if !errors.As(err, &known) || !errors.Is(err, r.kind) || known.Argument != r.argument {
			t.Errorf("%s gives %#v (%v), want kind %q about %q", name, known, err, r.kind.Kind, r.argument)
		}
		if err == nil || len(err.Error()) < 20 || len(err.Error()) > 1000 {
			t.Errorf("%s: got %v, want an error of 20 to 1000 bytes", name, err)
		}
		if rowsOf(t, st.store) != before {
			t.Errorf("%s was refused and changed something, want no change", name)
			before = rowsOf(t, st.store)
		}
	}
}
