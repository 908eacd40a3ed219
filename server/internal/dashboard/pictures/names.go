package pictures

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// shown keeps the ids of the memories that pictures show, so that a script can name memories by their numbers: ids and
// labels are four fifths of a large picture. The zero value is ready, and safe for concurrent use.
type shown struct {
	kept lru.Cache // of []string, by shownKey
}

// shownKey identifies the memories of a picture.
type shownKey struct{ user, version string }

const (
	mostShown = 16 << 20 // bytes
	mostAsked = 100      // labels at once
)

// note keeps the ids of the memories of a user's picture, and returns the version of their list.
func (s *shown) note(user string, nodes []souvenir.Node) (version string) {
	ids, sum := make([]string, len(nodes)), sha256.New()
	bytes := 200
	for i, node := range nodes {
		ids[i] = node.ID
		sum.Write(binary.AppendUvarint(nil, uint64(len(node.ID))))
		sum.Write([]byte(node.ID))
		bytes += 16 + len(node.ID)
	}
	version = base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:12])
	s.kept.Put(shownKey{user, version}, ids, bytes, mostShown)
	return version
}

// nodesOf reads the memories of a picture.
type nodesOf func(context.Context, request.Caller, pictureQuery) ([]souvenir.Node, error)

func (s *Service) graphNodes(ctx context.Context, c request.Caller, q pictureQuery) ([]souvenir.Node, error) {
	_, query, _, err := s.graphQuery(c, q)
	if err != nil {
		return nil, err
	}
	g, err := s.ReadGraph(ctx, c, query)
	return g.Nodes, err
}

func (s *Service) mapNodes(ctx context.Context, c request.Caller, q pictureQuery) ([]souvenir.Node, error) {
	m, err := s.readMap(ctx, c, q, 0, 0)
	nodes := make([]souvenir.Node, len(m.Points))
	for i, point := range m.Points {
		nodes[i] = point.Node
	}
	return nodes, err
}

// drawn returns the ids of the memories that a script shows. If they are not kept, since another server of the same
// store has drawn the picture, or this one before its start, the picture is read again.
func (s *Service) drawn(r *http.Request, c request.Caller, read nodesOf) (ids []string, err error) {
	version := r.URL.Query().Get("version")
	if ids, known := lru.Get[[]string](&s.shown.kept, shownKey{c.User.ID, version}); known {
		return ids, nil
	}
	nodes, err := read(r.Context(), c, readPictureQuery(r.URL.Query()))
	if err != nil {
		return nil, err
	}
	if s.shown.note(c.User.ID, nodes) != version {
		return nil, &failure.Error{Status: http.StatusConflict,
			Message: "the memories have changed since the picture was drawn; load the page again"}
	}
	ids, _ = lru.Get[[]string](&s.shown.kept, shownKey{c.User.ID, version})
	return ids, nil
}

// names returns the ids of some memories of a picture, and their labels unless ?ids is set. A label is null if the
// memory is no longer there.
func (s *Service) names(read nodesOf) func(http.ResponseWriter, *http.Request, request.Caller) (any, error) {
	return func(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
		ids, err := s.drawn(r, c, read)
		if err != nil {
			return nil, err
		}
		some, err := chosenIDs(ids, r.URL.Query())
		if err != nil {
			return nil, err
		}
		answer := map[string]any{"ids": some}
		if !r.URL.Query().Has("ids") {
			if answer["labels"], err = labels(r.Context(), c, some); err != nil {
				return nil, err
			}
		}
		return nil, answerCompressed(w, r, answer)
	}
}

// chosenIDs returns the ids of the memories whose numbers are asked for, such as ?at=3,17.
func chosenIDs(ids []string, query url.Values) ([]string, error) {
	most := mostAsked
	if query.Has("ids") {
		most = souvenir.MaxNodes
	}
	some := []string{}
	for text := range strings.SplitSeq(query.Get("at"), ",") {
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(ids) || len(some) == most {
			return nil, failure.Invalid("at", "at is "+failure.Quote(query.Get("at"))+"; expected at most "+
				strconv.Itoa(most)+" numbers of memories, each less than "+strconv.Itoa(len(ids)))
		}
		some = append(some, ids[i])
	}
	return some, nil
}

// labels returns the labels of memories; nil: it is no longer there, or no longer visible.
func labels(ctx context.Context, c request.Caller, ids []string) ([]*string, error) {
	known := map[string]*string{}
	values := make([]any, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	for m, err := range c.Store.Memories(ctx, souvenir.MemoryList{Filter: souvenir.Filter{"id": values}}) {
		if err != nil {
			return nil, err
		}
		label := plain(shorten.FirstLine(m.Content))
		known[m.ID] = &label
	}
	all := make([]*string, len(ids))
	for i, id := range ids {
		all[i] = known[id]
	}
	return all, nil
}

// found returns the numbers of the memories of a picture that match a text.
func (s *Service) found(read nodesOf) func(http.ResponseWriter, *http.Request, request.Caller) (any, error) {
	return func(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
		at, text := []int{}, r.URL.Query().Get("q")
		if text == "" {
			return map[string]any{"at": at}, nil
		}
		ids, err := s.drawn(r, c, read)
		if err != nil {
			return nil, err
		}
		l := readPictureQuery(r.URL.Query()).list()
		results, err := c.Store.Search(r.Context(), souvenir.Query{Text: text, Collections: l.Collections,
			ProjectID: l.ProjectID, Tags: l.Tags, Filter: l.Filter, Limit: souvenir.MaxLimit})
		if err != nil {
			return nil, err
		}
		number := make(map[string]int, len(ids))
		for i, id := range ids {
			number[id] = i
		}
		for _, hit := range results.Hits {
			if i, drawn := number[hit.ID]; drawn && hit.Score >= results.Hits[0].Score/2 { // the rest are weak matches
				at = append(at, i)
			}
		}
		return map[string]any{"at": at}, nil
	}
}
