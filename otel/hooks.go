// Package otel turns the hooks of a Souvenir store into OpenTelemetry spans and metrics. It is a separate module, so
// that programs without OpenTelemetry do not depend on it.
//
//	hooks, err := otel.Hooks(nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	store, err := souvenir.Open(ctx, "memory.db", &souvenir.Options{Hooks: []souvenir.Hooks{hooks}})
//
// Put these hooks first in the list, so that they see the refusals of others and the time they take.
//
// Each operation is a span. Its parent is the span in the context of the call, and its children are the spans of an
// embedder. Names and attributes follow the semantic conventions for memory operations of generative AI,
// https://github.com/open-telemetry/semantic-conventions-genai, which are in development (as of November 2026):
//
//   - gen_ai.operation.name: create_memory, upsert_memory (by key, rules, to-dos, identities), update_memory,
//     delete_memory or search_memory. With the store's id, it is the span's name.
//   - gen_ai.memory.store.id: Options.StoreID
//   - gen_ai.memory.record.id: of the one memory that the operation is about
//   - gen_ai.memory.record.count: memories stored, changed, deleted or found
//   - gen_ai.memory.query.text: what was searched for; only with Options.Texts
//   - gen_ai.provider.name: souvenir
//   - error.type: the kind of the error, such as not_found; nothing of its message
//   - gen_ai.conversation.id: the key of the conversation, of its methods
//   - souvenir.method: the Go method; souvenir.project.id: the project that the call names
//   - user.id: the user; only with Options.Users
//
// The metric gen_ai.client.operation.duration is a histogram in seconds; souvenir.memory.record.count counts memories.
// Both have gen_ai.operation.name, gen_ai.provider.name, gen_ai.memory.store.id and error.type: attributes with few
// values.
package otel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/souvenir-ai/souvenir"
)

const scope = "github.com/souvenir-ai/souvenir/otel"

// Attributes of spans and metrics. The names with gen_ai are those of the semantic conventions.
const (
	keyOperation = attribute.Key("gen_ai.operation.name")
	keyProvider  = attribute.Key("gen_ai.provider.name")
	keyStore     = attribute.Key("gen_ai.memory.store.id")
	keyRecord    = attribute.Key("gen_ai.memory.record.id")
	keyCount     = attribute.Key("gen_ai.memory.record.count")
	keyTalk      = attribute.Key("gen_ai.conversation.id")
	keyQuery     = attribute.Key("gen_ai.memory.query.text")
	keyError     = attribute.Key("error.type")
	keyUser      = attribute.Key("user.id")
	keyMethod    = attribute.Key("souvenir.method")
	keyProject   = attribute.Key("souvenir.project.id")
)

// Options change what [Hooks] records. Nil means the zero value.
type Options struct {
	// TracerProvider makes the spans. Nil means the global one when Hooks is called.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics. Nil means the global one when Hooks is called.
	MeterProvider metric.MeterProvider

	// StoreID is the name of the store in spans and metrics, such as its file's name. Empty means none.
	StoreID string

	// Users records user ids, which are personal data, in spans. False records none.
	Users bool

	// Texts records the texts of searches in spans. Contents of memories are never recorded.
	Texts bool
}

// Hooks returns hooks that record spans and metrics. They neither change nor refuse anything.
func Hooks(options *Options) (souvenir.Hooks, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	r := recorder{options: o, tracer: o.TracerProvider.Tracer(scope)}
	meter := o.MeterProvider.Meter(scope)
	var err error
	if r.duration, err = meter.Float64Histogram("gen_ai.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("How long operations on memories take."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
	); err != nil {
		return souvenir.Hooks{}, err
	}
	if r.records, err = meter.Int64Counter("souvenir.memory.record.count", metric.WithUnit("{memory}"),
		metric.WithDescription("Memories that were stored, changed, deleted or found.")); err != nil {
		return souvenir.Hooks{}, err
	}
	return souvenir.Hooks{Start: r.start, After: r.after, Texts: o.Texts}, nil
}

// recorder makes the spans and metrics of one store.
type recorder struct {
	options  Options
	tracer   trace.Tracer
	duration metric.Float64Histogram
	records  metric.Int64Counter
}

// spanKey is the key of an operation's span in its context, since another hook may have set its own span as the current
// one.
type spanKey struct{ r *recorder }

func (r *recorder) start(ctx context.Context, o souvenir.Operation) context.Context {
	attributes := r.common(o)
	name := nameOf(o)
	if r.options.StoreID != "" {
		name += " " + r.options.StoreID
	}
	attributes = append(attributes, keyMethod.String(o.Method))
	if r.options.Users {
		attributes = append(attributes, keyUser.String(o.Access.User))
	}
	ctx, span := r.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attributes...))
	return context.WithValue(ctx, spanKey{r}, span)
}

func (r *recorder) after(ctx context.Context, o souvenir.Operation, result souvenir.OperationResult) {
	attributes := r.common(o)
	failure := ""
	if result.Err != nil {
		failure = string(souvenir.OutcomeOf(result.Err))
		attributes = append(attributes, keyError.String(failure))
	}
	with := metric.WithAttributeSet(attribute.NewSet(attributes...))
	r.duration.Record(ctx, result.Duration.Seconds(), with)
	if result.Count > 0 {
		r.records.Add(ctx, int64(result.Count), with)
	}
	span, ok := ctx.Value(spanKey{r}).(trace.Span)
	if !ok {
		return
	}
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(keyCount.Int(result.Count))
	if o.Project.ID != "" {
		span.SetAttributes(keyProject.String(o.Project.ID))
	}
	if o.Conversation != "" {
		span.SetAttributes(keyTalk.String(o.Conversation))
	}
	if ids := append(o.IDs, result.IDs...); o.Kind != souvenir.OperationSearch && len(ids) > 0 && same(ids) {
		span.SetAttributes(keyRecord.String(ids[0]))
	}
	if r.options.Texts && result.Query != "" {
		span.SetAttributes(keyQuery.String(result.Query))
	}
	if failure != "" {
		span.SetAttributes(keyError.String(failure))
		span.SetStatus(codes.Error, failure)
	}
}

// common returns the attributes that spans and metrics share.
func (r *recorder) common(o souvenir.Operation) []attribute.KeyValue {
	all := []attribute.KeyValue{keyOperation.String(nameOf(o)), keyProvider.String("souvenir")}
	if r.options.StoreID != "" {
		all = append(all, keyStore.String(r.options.StoreID))
	}
	return all
}

// nameOf returns the name of an operation in the semantic conventions.
func nameOf(o souvenir.Operation) string {
	switch {
	case o.Kind != souvenir.OperationStore:
		return string(o.Kind) + "_memory"
	case strings.HasPrefix(o.Method, "Put"), strings.HasPrefix(o.Method, "Set"):
		return "upsert_memory"
	}
	return "create_memory"
}

// same reports whether all ids are equal.
func same(ids []string) bool {
	for _, id := range ids {
		if id != ids[0] {
			return false
		}
	}
	return true
}
