package projects

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// contentsPage is the data of the pages of a project's memories, files and conversations.
type contentsPage struct {
	Head   projectHead
	Search string
	Found  int
	Pages  web.Leaves
	Error  string // about the search; empty: none

	Memories      []listedMemory
	Files         []souvenir.File
	Conversations []listedConversation
	More          bool // there are conversations past those listed
}

// listedConversation is a conversation in the list.
type listedConversation struct {
	souvenir.ConversationInfo
	Path string // of its page
}

// maxContentsPage bounds page numbers.
const maxContentsPage = 100_000

func (s *Service) showMemoriesOf(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Memories")
	if err != nil {
		return nil, err
	}
	data := contentsPage{Head: head, Search: strings.TrimSpace(r.URL.Query().Get("q"))}
	at := min(max(1, wholeNumber(r.URL.Query().Get("page"), 1)), maxContentsPage)
	page := web.Page{Template: "projectmemories", Title: "Memories of " + head.Name, Part: "project-memories"}
	found, err := c.Store.Search(r.Context(), souvenir.Query{ProjectID: head.Reference().ID, Text: data.Search,
		Limit: web.PerPage, Offset: (at - 1) * web.PerPage})
	if err != nil {
		_, message := failure.Describe(err)
		data.Error = web.Sentence(strings.Replace(message, "query ", "the search text ", 1))
		page.Data = data
		return web.Again(page, err)
	}
	data.Found = found.Total
	if data.Search != "" {
		data.Found = min(found.Found, found.Total)
	}
	for _, hit := range found.Hits {
		data.Memories = append(data.Memories, s.listMemory(hit.Memory, hit.EventType))
	}
	data.Pages = web.LeavesOf(web.Pager{Name: "page", Page: at, Pages: max(1, (found.Total+web.PerPage-1)/web.PerPage)},
		url.Values{"q": {data.Search}})
	page.Data = data
	return page, nil
}

func (s *Service) showFilesOf(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Files")
	if err != nil {
		return nil, err
	}
	data := contentsPage{Head: head}
	at := min(max(1, wholeNumber(r.URL.Query().Get("page"), 1)), maxContentsPage)
	found, err := c.Store.FilePage(r.Context(), souvenir.FileQuery{Limit: web.PerPage, Offset: (at - 1) * web.PerPage,
		FileList: souvenir.FileList{ProjectID: head.Reference().ID}})
	if err != nil {
		return nil, err
	}
	data.Files, data.Found = found.Files, found.Total
	data.Pages = web.LeavesOf(web.Pager{Name: "page", Page: at, Pages: max(1, (found.Total+web.PerPage-1)/web.PerPage)},
		url.Values{})
	return web.Page{Template: "projectfiles", Title: "Files of " + head.Name, Data: data}, nil
}

// conversationCollections are the collections whose conversations are listed: where turns are appended, and where
// memories lie that were stored with the key of a conversation.
var conversationCollections = []string{souvenir.ConversationCollection, souvenir.DefaultCollection}

func (s *Service) showConversationsOf(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.projectAt(r, c, "Conversations")
	if err != nil {
		return nil, err
	}
	if key := r.URL.Query().Get("key"); key != "" {
		return s.showConversation(r, c, head, key)
	}
	data := contentsPage{Head: head}
	at := min(max(1, wholeNumber(r.URL.Query().Get("page"), 1)), maxContentsPage)
	end := at * web.PerPage
	var all []souvenir.ConversationInfo
	for _, collection := range conversationCollections {
		list := souvenir.ConversationList{Collection: collection, ProjectID: head.Reference().ID, Limit: end + 1}
		for info, err := range c.Store.Conversations(r.Context(), list) {
			if err != nil {
				return nil, err
			}
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b souvenir.ConversationInfo) int { return b.LastAt.Compare(a.LastAt) })
	data.More = len(all) > end
	for _, info := range all[min(end-web.PerPage, len(all)):min(end, len(all))] {
		info.Begins = openingLine(info.Begins)
		data.Conversations = append(data.Conversations, listedConversation{info, head.Path + "/conversations?" +
			url.Values{"key": {info.Key}, "in": {info.Collection}}.Encode()})
	}
	pages := at
	if data.More {
		pages++
	}
	data.Pages = web.LeavesOf(web.Pager{Name: "page", Page: at, Pages: pages}, url.Values{})
	return web.Page{Template: "projectconversations", Title: "Conversations of " + head.Name, Data: data}, nil
}

// conversationPage is the data of the page of a conversation.
type conversationPage struct {
	Head  projectHead
	Info  souvenir.ConversationInfo
	Turns []shownTurn
	Later string // address of the turns after these; empty: there are none
	First bool   // the first turns are shown
}

// shownTurn is a turn on the page.
type shownTurn struct {
	souvenir.Turn
	By   string // who said it
	Text textview.Cut
}

const (
	turnsShown = 30
	turnShown  = 2 << 10 // bytes of a turn
)

// showConversation shows turns of a conversation, from a time on.
func (s *Service) showConversation(r *http.Request, c request.Caller, head projectHead, key string) (any, error) {
	query := r.URL.Query()
	place := souvenir.ConversationPlace{Collection: query.Get("in"), ProjectID: head.Reference().ID}
	if !slices.Contains(conversationCollections, cmp.Or(place.Collection, souvenir.ConversationCollection)) {
		return nil, failure.Invalid("in", "in is "+failure.Quote(place.Collection)+"; expected "+
			strings.Join(conversationCollections, " and "))
	}
	from, err := time.Parse(time.RFC3339Nano, cmp.Or(query.Get("from"), time.Time{}.Format(time.RFC3339Nano)))
	if err != nil {
		return nil, failure.Invalid("from", "from is "+failure.Quote(query.Get("from"))+
			"; expected a time such as 2026-03-01T09:00:00Z")
	}
	conversation := c.Store.Conversation(key, place)
	data := conversationPage{Head: head, First: from.IsZero()}
	if data.Info, err = conversation.Info(r.Context()); err != nil {
		return nil, err
	}
	if data.Info.Turns == 0 {
		return nil, &failure.Error{Status: http.StatusNotFound, Message: "there is no conversation " + failure.Quote(key) +
			" in this project"}
	}
	if err := data.read(r.Context(), conversation, from); err != nil {
		return nil, err
	}
	return web.Page{Template: "projectconversation", Title: openingLine(data.Info.Begins), Data: data}, nil
}

// read loads the turns from a time on.
func (p *conversationPage) read(ctx context.Context, conversation *souvenir.Conversation, from time.Time) error {
	for turn, err := range conversation.Since(ctx, from) {
		if err != nil {
			return err
		}
		if len(p.Turns) == turnsShown {
			next := turn.Time // some of these turns again, if they have the same time
			if next.Equal(p.Turns[0].Time) {
				next = next.Add(time.Microsecond)
			}
			p.Later = p.Head.Path + "/conversations?" + url.Values{"key": {p.Info.Key}, "in": {p.Info.Collection},
				"from": {next.UTC().Format(time.RFC3339Nano)}}.Encode()
			break
		}
		p.Turns = append(p.Turns, shownTurn{turn, cmp.Or(turn.Speaker, turn.Role), textview.CutTo(turn.Content, turnShown)})
	}
	return nil
}
