// Package extract learns facts from conversations. An [Extractor], such as a model behind [Chat] or [Anthropic], reads
// the turns of a conversation and proposes what to remember. A [Learner] compares the proposals with stored memories,
// and applies them in one transaction with links to the turns, or keeps them for review.
//
// The text of a conversation is data: a proposal can neither become a rule nor reach a project, collection or user
// other than the learner's.
package extract

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/souvenir-ai/souvenir"
)

// EventFact is the event type of the memories that a [Learner] stores.
const EventFact = "fact"

// Limits of proposals.
const (
	MaxContent   = 2000 // bytes of a proposal's content, and of a memory that it may change
	MaxReason    = 500  // bytes of a reason
	MaxSources   = 64   // turns of a proposal
	MaxProposals = 50   // proposals from a batch of turns
	MaxPending   = 1000 // proposals that wait for review in a place
)

// Action is the action of a [Proposal].
type Action string

// The values of [Action].
const (
	Add       Action = "add"       // stores a new memory
	Update    Action = "update"    // gives a memory new content; the old one stays as a revision
	Supersede Action = "supersede" // stores a memory that replaces one that is no longer true
	Forget    Action = "forget"    // moves a memory to the trash
	None      Action = "none"      // changes nothing: the memory has it already
)

var actions = []Action{Add, Update, Supersede, Forget, None}

// Proposal is a change that a conversation suggests.
type Proposal struct {
	Action     Action   `json:"action"`
	Content    string   `json:"content,omitempty"`    // of Add, Update and Supersede: at most MaxContent bytes
	Target     string   `json:"target,omitempty"`     // the id of the memory that it changes; empty for Add
	Sources    []string `json:"sources,omitempty"`    // the ids of the turns that it comes from
	Reason     string   `json:"reason,omitempty"`     // in a sentence; cut at MaxReason bytes
	Confidence float64  `json:"confidence,omitempty"` // 0 to 1; 0 means not given
	Group      string   `json:"group,omitempty"`      // of [Learner.Consolidate]: what belongs together

	// The state of Target when the proposal was made: its revision, and the digest of its text. Other changes, such as of
	// a tag, do not matter.
	revision int
	was      string

	// stays has the memories of the group that must still be there when Target is forgotten, by id; true: another proposal
	// supersedes it.
	stays map[string]bool
}

// Conversation is the input of an [Extractor].
type Conversation struct {
	Before []souvenir.Turn // the turns before, already read; for context only
	Turns  []souvenir.Turn // the turns to learn from, in order; long contents are cut
	// Known are memories about the same things. A proposal may change only these.
	Known []souvenir.Memory
}

// Usage is the cost of an extraction.
type Usage struct {
	Calls        int `json:"calls"` // requests, not counting those repeated after temporary failures
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

func (u *Usage) add(v Usage) {
	u.Calls += v.Calls
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
}

// Extraction is the result of an [Extractor].
type Extraction struct {
	Proposals []Proposal
	Usage     Usage
}

// Extractor proposes what to remember of a conversation. Sources are ids of Conversation.Turns, and a Target is the id
// of one of Conversation.Known; the learner refuses others. An error that is [ErrAnswer] makes a [Learner] try again
// with fewer turns. The Usage counts with an error, too. It must be safe for concurrent use.
type Extractor interface {
	Extract(ctx context.Context, c Conversation) (Extraction, error)
}

// ErrAnswer means that a model's answer was not as asked for, twice: not JSON, cut off, too large, or refused.
var ErrAnswer = errors.New("the model's answer is not usable")

// invalid is an error about an option or an argument.
func invalid(field, message string) error {
	return &souvenir.Error{Kind: souvenir.KindInvalid, Field: field, Argument: field, Message: field + " " + message}
}

// cut shortens a text to at most a number of bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// cleaned returns a text without what a store refuses: bytes that are not UTF-8, and U+0000.
func cleaned(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

// isVisible reports whether a character makes a text more than white space, as the store sees it.
func isVisible(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }

// writes reports whether the proposal has content.
func (p *Proposal) writes() bool {
	return p.Action == Add || p.Action == Update || p.Action == Supersede
}

// fault returns the problem of a proposal by itself; empty: none.
func (p *Proposal) fault() string {
	writes := p.writes()
	switch {
	case !slices.Contains(actions, p.Action):
		return "the action is unknown"
	case writes && !strings.ContainsFunc(p.Content, isVisible):
		return "the content is empty"
	case writes && len(p.Content) > MaxContent:
		return "the content is too long"
	case writes && cleaned(p.Content) != p.Content:
		return "the content has U+0000, or is not UTF-8"
	case p.Action == Add && p.Target != "":
		return "a new memory has no target"
	case p.Action != Add && p.Action != None && p.Target == "":
		return "the target is missing"
	case len(p.Sources) > MaxSources:
		return "it has too many sources"
	case !(p.Confidence >= 0 && p.Confidence <= 1):
		return "the confidence is not 0 to 1"
	}
	return ""
}

// protectedEvents are the event types of memories that no proposal changes, in lower case.
var protectedEvents = []string{souvenir.EventProjectRule, strings.ToLower(souvenir.EventIdentity),
	souvenir.EventProjectMain, souvenir.EventTurn, souvenir.EventConversation, souvenir.EventCase, eventProposal,
	eventPosition}

// protected reports whether a memory steers agents or keeps a record, so that no proposal may change it.
func protected(m souvenir.Memory) bool {
	return m.RuleType != "" || m.Classification != "" && m.Classification != souvenir.ClassNotes ||
		slices.Contains(protectedEvents, strings.ToLower(m.EventType)) || len(m.Content) > MaxContent
}
