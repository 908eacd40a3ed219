package fault_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

type ref struct{ ID, Name string }

type base struct{ Collections []string }

type draft struct {
	base
	Content    string
	MIMEType   string
	ProjectID  string
	Related    []string
	Owner      *ref
	unexported string //nolint:unused // it must not be found
}

func TestAnErrorNamesArgumentsAndFields(t *testing.T) {
	long := fault.Invalid("tags[2]", "{} is %d%% full; leave {mime_type} out, not {this one}", 5)
	long.Argument = "tags"
	for _, c := range []struct {
		err           *fault.Error
		pairs         []string
		message, inGo string
		field         string
	}{
		{err: fault.Invalid("content", "{} is empty"), message: "content is empty", inGo: "draft.Content is empty",
			field: "draft.Content"},
		{err: fault.Invalid("mime_type", "{} is %s; leave {} out", fault.Show("{}")), field: "draft.MIMEType",
			message: `mime_type is "{}"; leave mime_type out`,
			inGo:    `draft.MIMEType is "{}"; leave draft.MIMEType out`},
		{err: fault.Invalid("id", "{} and {name} and {collection_name}"), message: "id and name and collection_name",
			inGo: "draft.Owner.ID and draft.Owner.Name and draft.Collections", field: "draft.Owner.ID"},
		{err: fault.Invalid("id", "{} is unknown"), pairs: []string{"id", "memory"}, message: "id is unknown",
			inGo: "memory is unknown", field: "memory"},
		{err: long, pairs: []string{"tags", "labels"}, field: "labels",
			message: "tags[2] is 5% full; leave mime_type out, not {this one}",
			inGo:    "labels[2] is 5% full; leave draft.MIMEType out, not {this one}"},
		{err: fault.Invalid("unexported", "{} is %s", "x"), message: "unexported is x", inGo: "unexported is x"},
		{err: fault.Invalid("100%s", "{} is odd"), message: "100%s is odd", inGo: "100%s is odd"},
		{err: fault.At(fault.Invalid("related_memory_ids", "{}[1] is unknown"), "drafts[3]"), field: "draft.Related",
			pairs:   []string{"drafts", "drafts"},
			message: "drafts[3]: related_memory_ids[1] is unknown", inGo: "drafts[3].Related[1] is unknown"},
		{err: fault.MoveTo(fault.At(fault.Invalid("content", "the quota is full"), "drafts[3]"), "drafts", "turns"),
			pairs: []string{"turns", "add"}, field: "draft.Content",
			message: "turns[3]: the quota is full", inGo: "add[3]: the quota is full"},
		{err: &fault.Error{Kind: fault.KindInvalid, Argument: "content", Message: "content is {}"},
			message: "content is {}", inGo: "content is {}"},
		{err: fault.Invalid("mime_type", "{} does not exist (see {create_collection})"), field: "draft.Kept.mime_type",
			pairs: []string{"mime_type", ".Kept.mime_type"}, message: "mime_type does not exist (see create_collection)",
			inGo: "draft.Kept.mime_type does not exist (see AddCollection)"},
	} {
		if got := c.err.Error(); got != c.message || c.err.Field != "" {
			t.Errorf("got %q about the field %q before it has names, want %q about none", got, c.err.Field, c.message)
		}
		named := fault.In(c.err, reflect.TypeFor[draft](), c.pairs...)
		if named.Error() != c.inGo || named.Field != c.field || named.Message != c.message {
			t.Errorf("got %q, the field %q and the message %q, want %q, %q and %q", named.Error(), named.Field,
				named.Message, c.inGo, c.field, c.message)
		}
		wrapped := fmt.Errorf("in a batch: %w", named)
		if got, want := fault.Text(wrapped), "in a batch: "+c.message; got != want {
			t.Errorf("got the text %q, want %q", got, want)
		}
		plain := fault.ByArgument(named)
		var known *fault.Error
		if !errors.As(plain, &known) || plain.Error() != c.message || known.Field != "" || known.Kind != c.err.Kind {
			t.Errorf("got %q for callers who give arguments, want %q", plain, c.message)
		}
	}
}

func TestNamesStayWhenOthersAreGiven(t *testing.T) {
	type place struct{ Content, Project string }
	err := fault.At(fault.Invalid("content", "{} is empty; see {mime_type} and {project}"), "drafts[1]")
	err = fault.In(err, reflect.TypeFor[draft](), "drafts", "add")
	err = fault.In(err, reflect.TypeFor[place](), "content", "text")
	if got, want := err.Error(), "add[1].Content is empty; see add[1].MIMEType and place.Project"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := err.Field, "draft.Content"; got != want {
		t.Errorf("got the field %q, want %q", got, want)
	}
}
