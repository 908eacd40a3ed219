package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/otel"
)

// recorded is a store whose spans and metrics a test can read.
type recorded struct {
	store   *souvenir.Store
	tracers *trace.TracerProvider
	spans   *tracetest.InMemoryExporter
	reader  *metric.ManualReader
}

func open(t *testing.T, o otel.Options, more ...souvenir.Hooks) recorded {
	t.Helper()
	r := recorded{spans: tracetest.NewInMemoryExporter(), reader: metric.NewManualReader()}
	r.tracers = trace.NewTracerProvider(trace.WithSyncer(r.spans))
	o.TracerProvider, o.MeterProvider = r.tracers, metric.NewMeterProvider(metric.WithReader(r.reader))
	hooks, err := otel.Hooks(&o)
	if err != nil {
		t.Fatal(err)
	}
	if r.store, err = souvenir.Open(t.Context(), ":memory:",
		&souvenir.Options{Hooks: append([]souvenir.Hooks{hooks}, more...)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	return r
}

// values returns the attributes of a span by name.
func values(attributes []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		all[string(a.Key)] = a.Value.Emit()
	}
	return all
}

func TestOperationsAreSpans(t *testing.T) {
	s := open(t, otel.Options{StoreID: "memory.db"})
	ctx, outer := s.tracers.Tracer("test").Start(t.Context(), "agent")
	ann := s.store.As(souvenir.Access{User: "ann"})
	m, err := ann.AddMemory(ctx, souvenir.NewMemory{Content: "Tea at four."})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ann.PutMemory(ctx, souvenir.NewMemory{Key: "k", Content: "Coffee at nine."})
	if err == nil {
		_, err = ann.Search(ctx, souvenir.Query{Text: "when is tea", ProjectID: "house"})
	}
	if err == nil {
		err = ann.DeleteMemory(ctx, m.ID, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = ann.DeleteMemory(ctx, m.ID, nil)
	outer.End()
	spans := s.spans.GetSpans()
	if len(spans) != 6 {
		t.Fatalf("%d spans, want 5 and the outer one", len(spans))
	}
	for i, want := range []map[string]string{
		{"gen_ai.operation.name": "create_memory", "gen_ai.memory.record.id": m.ID, "gen_ai.memory.record.count": "1"},
		{"gen_ai.operation.name": "upsert_memory", "souvenir.method": "PutMemories"},
		{"gen_ai.operation.name": "search_memory", "souvenir.project.id": "house", "gen_ai.memory.record.count": "0"},
		{"gen_ai.operation.name": "delete_memory", "gen_ai.memory.record.id": m.ID, "gen_ai.memory.record.count": "1"},
		{"gen_ai.operation.name": "delete_memory", "error.type": "not_found"},
	} {
		span := spans[i]
		got := values(span.Attributes)
		for key, value := range want {
			if got[key] != value {
				t.Errorf("span %d: %s is %q, want %q", i, key, got[key], value)
			}
		}
		if name := want["gen_ai.operation.name"] + " memory.db"; span.Name != name {
			t.Errorf("span %d is called %q, want %q", i, span.Name, name)
		}
		if span.Parent.SpanID() != outer.SpanContext().SpanID() {
			t.Errorf("span %d has the parent %v, want %v", i, span.Parent.SpanID(), outer.SpanContext().SpanID())
		}
		_, failed := want["error.type"]
		if (span.Status.Code == codes.Error) != failed {
			t.Errorf("span %d has the status %v, want an error: %v", i, span.Status, failed)
		}
		for key, value := range got {
			if key == "user.id" || strings.Contains(strings.ToLower(value), "tea") {
				t.Errorf("span %d: %s is %q, which was not asked for, want no such attribute", i, key, value)
			}
		}
	}
}

func TestTextsAndUsersOnlyIfAskedFor(t *testing.T) {
	s := open(t, otel.Options{Texts: true, Users: true})
	if _, err := s.store.As(souvenir.Access{User: "ann"}).Search(t.Context(), souvenir.Query{Text: "tea"}); err != nil {
		t.Fatal(err)
	}
	got := values(s.spans.GetSpans()[0].Attributes)
	if got["gen_ai.memory.query.text"] != "tea" || got["user.id"] != "ann" {
		t.Errorf("got %v, want the text and the user", got)
	}
}

func TestRefusedOperationsAreSpansToo(t *testing.T) {
	s := open(t, otel.Options{}, souvenir.Hooks{
		BeforeStore: func(context.Context, souvenir.Operation, *souvenir.NewMemory) error { return errors.New("no tea") },
	})
	if _, err := s.store.AddMemory(t.Context(), souvenir.NewMemory{Content: "x"}); err == nil {
		t.Fatal("was stored")
	}
	span := s.spans.GetSpans()[0]
	if got := values(span.Attributes); got["error.type"] != "forbidden" || span.Status.Description != "forbidden" ||
		strings.Contains(fmt.Sprint(span), "no tea") {
		t.Errorf("got %v and %v, want the kind of the error and not its text", got, span.Status)
	}
}

func TestAnEmbedderIsWithinTheSpan(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracers := trace.NewTracerProvider(trace.WithSyncer(spans))
	hooks, err := otel.Hooks(&otel.Options{TracerProvider: tracers})
	if err != nil {
		t.Fatal(err)
	}
	embed := func(ctx context.Context, _ souvenir.Purpose, texts []string) ([][]float32, error) {
		_, span := tracers.Tracer("embedder").Start(ctx, "embeddings")
		span.End()
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	}
	embedder := souvenir.EmbedderFunc("own-1", 2, embed)
	store, err := souvenir.Open(t.Context(), ":memory:",
		&souvenir.Options{Hooks: []souvenir.Hooks{hooks}, Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "x"}); err != nil {
		t.Fatal(err)
	}
	all := spans.GetSpans()
	if len(all) != 2 || all[0].Parent.SpanID() != all[1].SpanContext.SpanID() {
		t.Errorf("got %d spans, want the embedder's within the operation's", len(all))
	}
}

func TestMetrics(t *testing.T) {
	s := open(t, otel.Options{StoreID: "m"})
	if _, err := s.store.AddMemories(t.Context(), []souvenir.NewMemory{{Content: "a"}, {Content: "b"}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.store.DeleteMemory(t.Context(), "unknown", nil); err == nil {
		t.Fatal("was deleted")
	}
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			if m.Unit != "s" {
				t.Errorf("%s is in %q, want s", m.Name, m.Unit)
			}
			for _, p := range data.DataPoints {
				got[m.Name+fmt.Sprint(values(p.Attributes.ToSlice()))] = int64(p.Count)
			}
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				got[m.Name+fmt.Sprint(values(p.Attributes.ToSlice()))] = p.Value
			}
		}
	}
	for name, want := range map[string]int64{
		"gen_ai.client.operation.durationmap[gen_ai.memory.store.id:m gen_ai.operation.name:create_memory " +
			"gen_ai.provider.name:souvenir]": 1,
		"gen_ai.client.operation.durationmap[error.type:not_found gen_ai.memory.store.id:m " +
			"gen_ai.operation.name:delete_memory gen_ai.provider.name:souvenir]": 1,
		"souvenir.memory.record.countmap[gen_ai.memory.store.id:m gen_ai.operation.name:create_memory " +
			"gen_ai.provider.name:souvenir]": 2,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("got %v, want nothing else", got)
	}
}
