package extract

import (
	"bytes"
	"context"
	_ "embed" // the instructions
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/service"
)

// ModelOptions say which model to ask. The zero value of a field means its documented default.
type ModelOptions struct {
	Key   string // may be empty for other servers than the provider's own
	Model string // the name of the model; required

	// BaseURL is the address without /chat/completions or /messages. Empty means https://api.openai.com/v1 for Chat, and
	// https://api.anthropic.com/v1 for Anthropic.
	BaseURL string

	// Guidance is added to the instructions: what to look for, or in which language to write. Empty means the things that
	// matter to the speakers, in their language.
	Guidance string

	MaxOutput int           // tokens of an answer, 256 to 64,000; zero means 4,000
	Timeout   time.Duration // of an attempt; zero means two minutes
	Client    *http.Client  // for the transport, such as a proxy; nil means a new one. Redirects are always refused.
}

const (
	defaultOutput  = 4000
	maxOutput      = 64_000
	defaultTimeout = 2 * time.Minute
	patience       = 2 * time.Minute // of all pauses between the attempts of a request
	maxAnswer      = 1 << 20         // bytes
	maxGuidance    = 8000            // bytes
	answerName     = "proposals"
)

// Model is an [Extractor] that asks a model over HTTP. Its errors never contain the key. It is safe for concurrent use.
type Model struct {
	link     *service.Link
	encode   func(system, user string) (path string, body any)
	decode   func(body []byte) (reply, error)
	guidance string // follows the instructions
}

var (
	_ Extractor    = (*Model)(nil)
	_ Consolidator = (*Model)(nil)
)

// reply is the answer of a model.
type reply struct {
	text          string // JSON
	input, output int    // tokens
	fault         string // why the text is unusable; empty: it is usable
}

// api describes a provider's requests and answers.
type api struct {
	name, official string // the function that makes a Model, and the provider's own address
	authorize      func(*http.Request, string)
	header         http.Header
	encode         func(o ModelOptions, system, user string) (path string, body any)
	decode         func(body []byte) (reply, error)
}

func newModel(a api, o ModelOptions) (*Model, error) {
	fail := func(format string, args ...any) (*Model, error) { return nil, fmt.Errorf(a.name+": "+format, args...) }
	if o.BaseURL == "" {
		o.BaseURL = a.official
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = defaultOutput
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	switch {
	case o.Model == "":
		return fail("Model is empty; give the name of a model")
	case o.MaxOutput < 256 || o.MaxOutput > maxOutput:
		return fail("MaxOutput is %d; give 256 to %d tokens", o.MaxOutput, maxOutput)
	case len(o.Guidance) > maxGuidance:
		return fail("Guidance has %d bytes; give at most %d", len(o.Guidance), maxGuidance)
	}
	link, err := service.New(service.Settings{Provider: a.name, BaseURL: o.BaseURL, Key: o.Key,
		KeyOptional: strings.TrimSuffix(o.BaseURL, "/") != a.official, Authorize: a.authorize, Header: a.header,
		Client: o.Client, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	m := &Model{link: link, decode: a.decode,
		encode: func(system, user string) (string, any) { return a.encode(o, system, user) }}
	if o.Guidance != "" {
		m.guidance = "\nFurther guidance from the program's author:\n" + o.Guidance
	}
	return m, nil
}

// Extract asks the model. If its answer does not follow the schema, it asks once more and then returns [ErrAnswer].
func (m *Model) Extract(ctx context.Context, c Conversation) (Extraction, error) {
	var x Extraction
	user, err := question(c)
	if err != nil {
		return x, err
	}
	answer, err := m.ask(ctx, instructions+m.guidance, user, &x.Usage)
	x.Proposals = answer.proposals(c)
	return x, err
}

// ask returns the model's proposals, by numbers.
func (m *Model) ask(ctx context.Context, system, user string, usage *Usage) (answer, error) {
	path, body := m.encode(system, user)
	encoded, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	var unusable error
	for range 2 {
		usage.Calls++
		data, err := m.link.Post(ctx, path, encoded, patience, maxAnswer)
		if errors.Is(err, service.ErrAnswer) {
			unusable = err
			continue
		}
		if tooLarge := (*service.StatusError)(nil); errors.As(err, &tooLarge) &&
			tooLarge.Status == http.StatusRequestEntityTooLarge { // fewer turns may do
			return answer{}, fmt.Errorf("extract: %w: %w", ErrAnswer, err)
		}
		if err != nil {
			return answer{}, fmt.Errorf("extract: %w", err)
		}
		r, err := m.decode(data)
		usage.InputTokens += max(0, r.input)
		usage.OutputTokens += max(0, r.output)
		if err == nil && r.fault != "" {
			err = errors.New(r.fault)
		}
		var a answer
		if err == nil {
			a, err = readAnswer(r.text)
		}
		if err == nil {
			return a, nil
		}
		unusable = m.link.Redacted(err)
	}
	return answer{}, fmt.Errorf("extract: %w: %w", ErrAnswer, unusable)
}

// answer is the schema of a model's answer. Memories and turns have their numbers in the question, from 1.
type answer struct {
	Proposals []numbered `json:"proposals"`
}

type numbered struct {
	Action     Action  `json:"action"`
	Content    string  `json:"content"`
	Memory     int     `json:"memory"` // 0: none
	Turns      []int   `json:"turns"`
	Reason     string  `json:"reason"`
	Confidence float64 `json:"confidence"`
}

// readAnswer reads an answer strictly. Some models put JSON into a fence of Markdown.
func readAnswer(text string) (answer, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```")
	}
	var a answer
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return a, fmt.Errorf("the text does not match the schema: %w", err)
	}
	if decoder.More() || a.Proposals == nil {
		return a, errors.New("the text does not match the schema; expected one object with a list of proposals")
	}
	return a, nil
}

// proposals replaces numbers by ids. An unknown number becomes an invalid id, which a learner refuses.
func (a answer) proposals(c Conversation) []Proposal {
	var all []Proposal
	for _, n := range a.Proposals {
		p := Proposal{Action: n.Action, Content: strings.TrimSpace(n.Content), Reason: n.Reason, Confidence: n.Confidence}
		if p.Action == Forget || p.Action == None {
			p.Content = ""
		}
		if n.Memory != 0 && p.Action != Add {
			p.Target = fmt.Sprintf("#%d", n.Memory)
			if n.Memory > 0 && n.Memory <= len(c.Known) {
				p.Target = c.Known[n.Memory-1].ID
			}
		}
		for _, t := range n.Turns {
			id := fmt.Sprintf("#%d", t)
			if t > 0 && t <= len(c.Turns) {
				id = c.Turns[t-1].ID
			}
			p.Sources = append(p.Sources, id)
		}
		all = append(all, p)
	}
	return all
}

// schema is the JSON schema of an answer, in the subset that all providers accept: each member is required.
var schema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["proposals"],"properties":{
"proposals":{"type":"array","items":{"type":"object","additionalProperties":false,
"required":["action","content","memory","turns","reason","confidence"],"properties":{
"action":{"type":"string","enum":["add","update","supersede","forget","none"]},
"content":{"type":"string","description":"the fact in one sentence that stands alone; empty for forget and none"},
"memory":{"type":"integer","description":"the number of the known memory that it is about; 0 for add"},
"turns":{"type":"array","items":{"type":"integer"},"description":"the numbers of the turns that it comes from"},
"reason":{"type":"string","description":"why, in one short sentence"},
"confidence":{"type":"number","description":"0 to 1"}}}}}}`)

//go:embed instructions.txt
var instructions string

// question is the prompt of a model.
func question(c Conversation) (string, error) {
	type turn struct {
		Number  int    `json:"turn,omitempty"`
		Role    string `json:"role,omitempty"`
		Speaker string `json:"speaker,omitempty"`
		Time    string `json:"time,omitempty"`
		Text    string `json:"text"`
	}
	type memory struct {
		Number int    `json:"memory"`
		Text   string `json:"text"`
		Time   string `json:"time,omitempty"`
	}
	var d struct {
		Known  []memory `json:"known"`
		Before []turn   `json:"before,omitempty"`
		Turns  []turn   `json:"turns"`
	}
	numbered := func(number int, t souvenir.Turn) turn {
		return turn{number, t.Role, t.Speaker, day(t.Time), t.Content}
	}
	d.Known, d.Turns = []memory{}, []turn{}
	for i, m := range c.Known {
		d.Known = append(d.Known, memory{i + 1, m.Content, day(timeOf(m))})
	}
	for _, t := range c.Before {
		d.Before = append(d.Before, numbered(0, t))
	}
	for i, t := range c.Turns {
		d.Turns = append(d.Turns, numbered(i+1, t))
	}
	return compactJSON(d)
}

// day formats a time for a model.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("Mon 2006-01-02 15:04")
}

// compactJSON encodes without HTML escapes, which would cost tokens.
func compactJSON(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSpace(b.String()), err
}
