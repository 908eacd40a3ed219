package storetest

import (
	"io"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

const atHome = "https://memory.example"

// parameterStructs returns every struct that a method takes, with values that the method can be called with.
func parameterStructs() []parameters {
	return slices.Concat(parametersOfMemories(), parametersOfMainMemories(), parametersOfPlaces(), parametersOfUpkeep(),
		parametersOfAccounts(), parametersOfOAuth(), parametersOfStores())
}

// parametersOfMemories are the parameters for storing and finding memories.
func parametersOfMemories() []parameters {
	return []parameters{
		given("AddMemory", souvenir.NewMemory{Content: "x"}, func(f *fields, p souvenir.NewMemory) error {
			_, err := f.store.AddMemory(f.ctx, p)
			return err
		}),
		given("PutMemory", souvenir.NewMemory{Content: "x", Key: "k"}, func(f *fields, p souvenir.NewMemory) error {
			_, err := f.store.PutMemory(f.ctx, p)
			return err
		}),
		given("UpdateMemory", souvenir.MemoryUpdate{}, func(f *fields, p souvenir.MemoryUpdate) error {
			_, err := f.store.UpdateMemory(f.ctx, f.known, p)
			return err
		}),
		given("UpdateMemories", souvenir.MemoriesUpdate{All: true, Change: souvenir.MemoryUpdate{State: new("seen")}},
			func(f *fields, p souvenir.MemoriesUpdate) error {
				_, err := f.store.UpdateMemories(f.ctx, p)
				return err
			}),
		given("DeleteMemories", souvenir.MemoriesDeletion{MemoryList: souvenir.MemoryList{Tags: []string{"none"}}},
			func(f *fields, p souvenir.MemoriesDeletion) error {
				_, err := f.store.DeleteMemories(f.ctx, p)
				return err
			}),
		given("GetMemoryByKey", souvenir.MemoryKey{Key: "k"}, func(f *fields, p souvenir.MemoryKey) error {
			_, err := f.store.GetMemoryByKey(f.ctx, p)
			return err
		}),
		given("Search", souvenir.Query{Text: "x"}, func(f *fields, p souvenir.Query) error {
			_, err := f.store.Search(f.ctx, p)
			return err
		}),
		given("Memories", souvenir.MemoryList{}, func(f *fields, p souvenir.MemoryList) error {
			return firstError(f.store.Memories(f.ctx, p))
		}),
		given("GetContext", souvenir.ContextQuery{Query: "x"}, func(f *fields, p souvenir.ContextQuery) error {
			_, err := f.store.GetContext(f.ctx, p)
			return err
		}),
		given("GetModuleState", souvenir.ModuleQuery{Module: "m"}, func(f *fields, p souvenir.ModuleQuery) error {
			_, err := f.store.GetModuleState(f.ctx, p)
			return err
		}),
		given("AddCollection", souvenir.NewCollection{Name: "c"}, func(f *fields, p souvenir.NewCollection) error {
			_, err := f.store.AddCollection(f.ctx, p)
			return err
		}),
		given("UpdateCollection", souvenir.CollectionUpdate{}, func(f *fields, p souvenir.CollectionUpdate) error {
			_, err := f.store.UpdateCollection(f.ctx, "notes", p)
			return err
		}),
		given("Append", souvenir.Turn{Content: "x"}, func(f *fields, p souvenir.Turn) error {
			_, err := f.store.Conversation("k").Append(f.ctx, p)
			return err
		}),
		given("Info", souvenir.ConversationPlace{}, func(f *fields, p souvenir.ConversationPlace) error {
			_, err := f.store.Conversation("k", p).Info(f.ctx)
			return err
		}),
		given("Conversations", souvenir.ConversationList{}, func(f *fields, p souvenir.ConversationList) error {
			return firstError(f.store.Conversations(f.ctx, p))
		}),
	}
}

// parametersOfMainMemories are the parameters for the identity, rules and to-do documents.
func parametersOfMainMemories() []parameters {
	return []parameters{
		given("SetIdentityMemory", souvenir.IdentityMemory{Content: "x"}, func(f *fields, p souvenir.IdentityMemory) error {
			_, err := f.store.SetIdentityMemory(f.ctx, p)
			return err
		}),
		given("SetRule", souvenir.NewRule{Type: souvenir.RuleDo, Content: "x"}, func(f *fields, p souvenir.NewRule) error {
			_, err := f.store.SetRule(f.ctx, p)
			return err
		}),
		given("SetTodo", souvenir.NewTodo{ProjectName: "p", Content: emptyTodo}, func(f *fields, p souvenir.NewTodo) error {
			_, err := f.store.SetTodo(f.ctx, p)
			return err
		}),
		given("UpdateTodoSection", souvenir.TodoSectionUpdate{Content: "x"},
			func(f *fields, p souvenir.TodoSectionUpdate) error {
				_, err := f.store.UpdateTodoSection(f.ctx, souvenir.ProjectRef{Name: "p"}, souvenir.SectionPlan, p)
				return err
			}),
		given("CompleteTask", souvenir.TaskRef{ProjectName: "p", TaskID: "T1"}, func(f *fields, p souvenir.TaskRef) error {
			_, err := f.store.CompleteTask(f.ctx, p)
			return err
		}),
	}
}

// parametersOfPlaces are the parameters for files, projects and the trash.
func parametersOfPlaces() []parameters {
	return []parameters{
		given("AddFile", souvenir.NewFile{Filename: "x"}, func(f *fields, p souvenir.NewFile) error {
			_, err := f.store.AddFile(f.ctx, p, strings.NewReader("x"))
			return err
		}),
		given("FilePage", souvenir.FileQuery{}, func(f *fields, p souvenir.FileQuery) error {
			_, err := f.store.FilePage(f.ctx, p)
			return err
		}),
		given("Files", souvenir.FileList{}, func(f *fields, p souvenir.FileList) error {
			return firstError(f.store.Files(f.ctx, p))
		}),
		given("UpdateFile", souvenir.FileUpdate{}, func(f *fields, p souvenir.FileUpdate) error {
			_, err := f.store.UpdateFile(f.ctx, f.file, p)
			return err
		}),
		given("AddProject", souvenir.NewProject{Name: "q"}, func(f *fields, p souvenir.NewProject) error {
			_, err := f.store.AddProject(f.ctx, p)
			return err
		}),
		given("GetProject", souvenir.ProjectRef{Name: "p"}, func(f *fields, p souvenir.ProjectRef) error {
			_, err := f.store.GetProject(f.ctx, p)
			return err
		}),
		given("UpdateProject", souvenir.ProjectUpdate{}, func(f *fields, p souvenir.ProjectUpdate) error {
			_, err := f.store.UpdateProject(f.ctx, souvenir.ProjectRef{Name: "p"}, p)
			return err
		}),
		given("DeleteProject", souvenir.DeletionOptions{}, func(f *fields, p souvenir.DeletionOptions) error {
			return f.store.DeleteProject(f.ctx, souvenir.ProjectRef{Name: "p"}, &p)
		}),
		given("AddMember", souvenir.NewMember{Project: souvenir.ProjectRef{Name: "p"}, User: "ben", Role: "reader"},
			func(f *fields, p souvenir.NewMember) error {
				_, err := f.store.AddMember(f.ctx, p)
				return err
			}),
		given("UpdateMember", souvenir.MemberUpdate{}, func(f *fields, p souvenir.MemberUpdate) error {
			_, err := f.store.UpdateMember(f.ctx, souvenir.ProjectRef{Name: "p"}, "ben", p)
			return err
		}),
		given("Trash.Page", souvenir.TrashQuery{}, func(f *fields, p souvenir.TrashQuery) error {
			_, err := f.store.Trash().Page(f.ctx, p)
			return err
		}),
		given("Trash.All", souvenir.TrashList{}, func(f *fields, p souvenir.TrashList) error {
			return firstError(f.store.Trash().All(f.ctx, p))
		}),
	}
}

// parametersOfUpkeep are the parameters for insights into a store and for its upkeep.
func parametersOfUpkeep() []parameters {
	return []parameters{
		given("Graph", souvenir.GraphQuery{}, func(f *fields, p souvenir.GraphQuery) error {
			_, err := f.store.Insights().Graph(f.ctx, p)
			return err
		}),
		given("CountDue", souvenir.DueQuery{Collection: "notes"}, func(f *fields, p souvenir.DueQuery) error {
			_, err := f.store.Insights().CountDue(f.ctx, p)
			return err
		}),
		given("Map", souvenir.MapQuery{}, func(f *fields, p souvenir.MapQuery) error {
			_, err := f.store.Insights().Map(f.ctx, p)
			return err
		}),
		given("Overview", souvenir.OverviewQuery{}, func(f *fields, p souvenir.OverviewQuery) error {
			_, err := f.store.Insights().Overview(f.ctx, p)
			return err
		}),
		given("CallDays", souvenir.CallDaysQuery{}, func(f *fields, p souvenir.CallDaysQuery) error {
			_, err := f.store.Insights().CallDays(f.ctx, p)
			return err
		}),
		given("ActivityPage", souvenir.ActivityQuery{}, func(f *fields, p souvenir.ActivityQuery) error {
			_, err := f.store.Insights().ActivityPage(f.ctx, p)
			return err
		}),
		given("Activities", souvenir.ActivityQuery{}, func(f *fields, p souvenir.ActivityQuery) error {
			return firstError(f.store.Insights().Activities(f.ctx, p))
		}),
		given("RecordActivity", souvenir.NewActivity{Tool: "x"}, func(f *fields, p souvenir.NewActivity) error {
			return f.store.Upkeep().RecordActivity(f.ctx, p)
		}),
		given("Check", souvenir.CheckOptions{}, func(f *fields, p souvenir.CheckOptions) error {
			_, err := f.store.Upkeep().Check(f.ctx, &p)
			return err
		}),
		given("Purge", souvenir.PurgeOptions{}, func(f *fields, p souvenir.PurgeOptions) error {
			_, err := f.store.Upkeep().Purge(f.ctx, &p)
			return err
		}),
		given("Export", souvenir.ExportOptions{}, func(f *fields, p souvenir.ExportOptions) error {
			_, err := f.store.Upkeep().Export(f.ctx, io.Discard, &p)
			return err
		}),
		given("Import", souvenir.ImportOptions{}, func(f *fields, p souvenir.ImportOptions) error {
			_, err := f.store.Upkeep().Import(f.ctx, strings.NewReader(""), &p)
			return err
		}),
	}
}

// parametersOfAccounts are the parameters for users and their credentials.
func parametersOfAccounts() []parameters {
	return []parameters{
		given("AddUser", souvenir.NewUser{Name: "nora", Identity: souvenir.Identity{Issuer: atHome, Subject: "1"}},
			func(f *fields, p souvenir.NewUser) error {
				_, err := f.store.Accounts().AddUser(f.ctx, p)
				return err
			}),
		given("UpdateUser", souvenir.UserUpdate{}, func(f *fields, p souvenir.UserUpdate) error {
			_, err := f.store.Accounts().UpdateUser(f.ctx, "ann", p)
			return err
		}),
		given("UserPage", souvenir.UserQuery{}, func(f *fields, p souvenir.UserQuery) error {
			_, err := f.store.Accounts().UserPage(f.ctx, p)
			return err
		}),
		given("CheckPassword", souvenir.Credentials{Name: "ann", Password: "x"},
			func(f *fields, p souvenir.Credentials) error {
				_, err := f.store.Accounts().CheckPassword(f.ctx, p)
				return err
			}),
		given("ChangePassword", souvenir.PasswordChange{Old: "x", New: "three words here"},
			func(f *fields, p souvenir.PasswordChange) error {
				return f.as(souvenir.Access{User: f.ann}).store.Accounts().ChangePassword(f.ctx, p)
			}),
		given("LinkIdentity", souvenir.NewIdentity{User: "ann", Issuer: "https://id.example", Subject: "1"},
			func(f *fields, p souvenir.NewIdentity) error {
				_, err := f.store.Accounts().LinkIdentity(f.ctx, p)
				return err
			}),
		given("AddInvitation", souvenir.NewInvitation{Role: souvenir.RoleUser},
			func(f *fields, p souvenir.NewInvitation) error {
				_, err := f.store.Accounts().AddInvitation(f.ctx, p)
				return err
			}),
		given("AcceptInvitation", souvenir.InvitationAcceptance{Value: "x", Name: "nora", Password: "three words here"},
			func(f *fields, p souvenir.InvitationAcceptance) error {
				_, err := f.store.Accounts().AcceptInvitation(f.ctx, p)
				return err
			}),
		given("AddToken", souvenir.NewToken{Name: "t"}, func(f *fields, p souvenir.NewToken) error {
			_, err := f.as(souvenir.Access{User: f.ann}).store.Accounts().AddToken(f.ctx, p)
			return err
		}),
		given("AddSignIn", souvenir.NewSignIn{User: "ann"}, func(f *fields, p souvenir.NewSignIn) error {
			_, err := f.store.Accounts().AddSignIn(f.ctx, p)
			return err
		}),
		given("CheckBrowser", souvenir.BrowserCheck{User: "ann", Mark: "x"}, func(f *fields, p souvenir.BrowserCheck) error {
			return f.store.Accounts().CheckBrowser(f.ctx, p)
		}),
	}
}

// parametersOfOAuth are the parameters for OAuth clients and their tokens.
func parametersOfOAuth() []parameters {
	return []parameters{
		given("AddClient", souvenir.NewClient{Name: "app", RedirectURIs: []string{"https://app.example/"}},
			func(f *fields, p souvenir.NewClient) error {
				_, err := f.as(souvenir.Access{User: f.ann}).store.Accounts().AddClient(f.ctx, p)
				return err
			}),
		given("RegisterClient", souvenir.ClientRegistration{RedirectURIs: []string{"https://app.example/"}},
			func(f *fields, p souvenir.ClientRegistration) error {
				_, err := f.store.Accounts().RegisterClient(f.ctx, p)
				return err
			}),
		given("PutDocumentClient", souvenir.DocumentClient{URL: "https://app.example/client.json",
			Registration: souvenir.ClientRegistration{ClientName: "app", RedirectURIs: []string{"https://app.example/"}}},
			func(f *fields, p souvenir.DocumentClient) error {
				_, err := f.store.Accounts().PutDocumentClient(f.ctx, p)
				return err
			}),
		given("CheckClient", souvenir.ClientCredentials{ID: "x"}, func(f *fields, p souvenir.ClientCredentials) error {
			_, err := f.store.Accounts().CheckClient(f.ctx, p)
			return err
		}),
		given("Authorize", souvenir.Authorization{ClientID: "x"}, func(f *fields, p souvenir.Authorization) error {
			_, err := f.as(souvenir.Access{User: f.ann}).store.Accounts().Authorize(f.ctx, p)
			return err
		}),
		given("ExchangeCode", souvenir.CodeExchange{Code: "x", Issuer: atHome, Audience: atHome},
			func(f *fields, p souvenir.CodeExchange) error {
				_, err := f.store.Accounts().ExchangeCode(f.ctx, p)
				return err
			}),
		given("RefreshTokens", souvenir.TokenRefresh{RefreshToken: "x", Issuer: atHome, Audience: atHome},
			func(f *fields, p souvenir.TokenRefresh) error {
				_, err := f.store.Accounts().RefreshTokens(f.ctx, p)
				return err
			}),
		given("RevokeGrantByToken", souvenir.Revocation{Token: "x"}, func(f *fields, p souvenir.Revocation) error {
			return f.store.Accounts().RevokeGrantByToken(f.ctx, p)
		}),
		given("CheckAccessToken", souvenir.AccessTokenCheck{Token: "x", Issuer: atHome, Audience: []string{atHome}},
			func(f *fields, p souvenir.AccessTokenCheck) error {
				_, err := f.store.Accounts().CheckAccessToken(f.ctx, p)
				return err
			}),
	}
}

// parametersOfStores are the parameters of the functions that open, restore or narrow a store.
func parametersOfStores() []parameters {
	return []parameters{
		given("Open", souvenir.Options{}, func(f *fields, p souvenir.Options) error {
			s, err := souvenir.Open(f.ctx, ":memory:", &p)
			if err == nil {
				err = s.Close()
			}
			return err
		}),
		given("Restore", souvenir.Restoration{From: "none.db", To: "new.db"}, func(f *fields, p souvenir.Restoration) error {
			return souvenir.Restore(f.ctx, p)
		}),
		given("As", souvenir.Access{User: "newcomer"}, func(f *fields, p souvenir.Access) error {
			_, err := f.store.As(p).AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectName: "p"})
			return err
		}),
	}
}
