// Package souvenir is a memory for AI agents: a Go package over one SQLite file. It stores memories (text, metadata,
// vectors) in named collections and finds them again by meaning and by word, offline, without a key, a C compiler or a
// download: a small embedding model is part of the package.
//
// # Quick start
//
//	store, err := souvenir.Open(ctx, "agent.db", nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer store.Close()
//
//	for _, text := range []string{
//		"We deploy on Thursdays, never on Fridays.",
//		"Anna is allergic to peanuts.",
//		"The staging database is restored from production every night at 3.",
//	} {
//		if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: text}); err != nil {
//			log.Fatal(err)
//		}
//	}
//	found, err := store.Search(ctx, souvenir.Query{Text: "What food must we avoid for Anna?", Limit: 1})
//	if err != nil {
//		log.Fatal(err)
//	}
//	fmt.Println(found.Hits[0].Content)
//
// # Overview
//
// A [Store] is opened with [Open] and is safe for concurrent use; several processes may have the same file open.
// [Store.As] returns a view of it for one user, optionally limited to some projects or to reading.
// Methods of [Accounts], [Upkeep] and [Insights] are called on the handles that [Store.Accounts], [Store.Upkeep] and
// [Store.Insights] return: store.Accounts().AddUser(ctx, ...). [Store.Snapshot] makes several calls read the state of
// one moment, [Store.Transaction] makes several writes one.
//
//   - Memories: [Store.AddMemory], [Store.AddMemories], [Store.GetMemory], [Store.UpdateMemory], [Store.DeleteMemory],
//     [Store.Memories]; [Store.Revisions] returns the history of one, [Store.RelatedMemories] follows links. They are
//     in collections ([Store.AddCollection]). [Store.Search] finds them.
//   - The trash keeps deleted items for a time: [Store.Trash], [Trash.Restore], [Trash.Erase].
//   - Projects: [Store.AddProject], [Store.MainMemory], [Store.ModuleState]. They are shared by invitation:
//     [Store.AddMember], [Accounts.ProjectInvitations], [Accounts.AcceptProjectInvitation], [Accounts.BlockSender].
//   - What an agent begins with: [Store.GetContext], [Store.SetIdentityMemory].
//   - Rules and the to-do document of a project: [Store.SetRule], [Store.SetTodo], [Store.UpdateTodoSection],
//     [Store.CompleteTask], [ParseTodo].
//   - Files: [Store.AddFile], [Store.OpenFile], [Store.Files].
//   - People: [Accounts.AddUser], [Accounts.CheckPassword], [Accounts.AddSignIn], [Accounts.CheckSignIn],
//     [Accounts.AddInvitation], [Accounts.AddToken], [Accounts.CheckToken], [Store.Preferences].
//   - The state of an OAuth 2.1 server: [Accounts.RegisterClient], [Accounts.Authorize], [Accounts.ExchangeCode],
//     [Accounts.RefreshTokens], [Accounts.CheckAccessToken].
//   - Upkeep: [Upkeep.Backup], [Restore], [Upkeep.Check], [Upkeep.Export], [Upkeep.Import], [Upkeep.Reindex],
//     [Upkeep.Purge]. [Recover] makes a new store from the readable parts of a damaged file.
//   - Counts, pictures and recent activity: [Insights.Overview], [Insights.Activities], [Insights.Tags],
//     [Insights.Modules], [Insights.Graph], [Insights.Usage].
//
// # Promises
//
// A write that has returned is durable, even after a crash or loss of power, and every later search, in any process,
// finds it. Errors, except those of contexts, are of type [*Error] and say which field or parameter is wrong and what
// would be right; match them with errors.Is and ErrInvalid, ErrNotFound and the other Err values. Methods honour their
// context, even while they wait for a lock. Nothing leaves the process unless an [Embedder] of your own does so.
package souvenir
