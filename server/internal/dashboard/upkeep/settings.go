package upkeep

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// settingsPage is the data of the settings page: the user's preferences and, for an admin, the server's settings.
type settingsPage struct {
	web.Form               // to set one preference
	Preferences []web.Fact // of a page
	Pages       web.Pager  // of them
	Count       int        // total
	Whole       web.Field  // all of them, as JSON
	Before      string     // their state when Whole was rendered
	Facts       []web.Fact // about the server; nil unless the user is an admin
	Flags       []Flag     // likewise
	Server      []serverSetting
}

// settings loads the page before any input.
func (s *Service) settings(r *http.Request, c request.Caller) (web.Page, *settingsPage, error) {
	data := &settingsPage{
		Form: web.Form{Fields: []web.Field{
			{Name: "key", Label: "Name", Type: "text", Autocomplete: "off", Hint: "Such as language or answers."},
			{Name: "value", Label: "Value", Type: "text", Autocomplete: "off",
				Hint: "Text, or any JSON value: a number, true, false, a list or an object."},
		}},
		Whole: web.Field{Name: "whole", Argument: "preferences", Label: "All preferences, as JSON"},
	}
	all, err := c.Store.GetPreferences(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	encoded, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return web.Page{}, nil, err
	}
	data.Count, data.Whole.Value, data.Before = len(all), string(encoded), digest(string(encoded))
	keys, pages := web.Paginate(slices.Sorted(maps.Keys(all)), r, "preferences")
	data.Pages = pages
	for _, key := range keys {
		data.Preferences = append(data.Preferences, web.Fact{Key: key, Value: textview.Plain(all[key])})
	}
	if c.User.Role == souvenir.RoleAdmin {
		data.Flags = s.config.Flags
		if data.Server, err = s.serverSettings(r.Context()); err != nil {
			return web.Page{}, nil, err
		}
		data.Facts, err = s.facts(r.Context())
	}
	return web.Page{Template: "settings", Title: "Settings", Data: data}, data, err
}

// facts returns the configuration of the server, each value with its origin, for admins.
func (s *Service) facts(ctx context.Context) ([]web.Fact, error) {
	c, err := s.store.Upkeep().Configuration(ctx)
	if err != nil {
		return nil, err
	}
	limit := func(n int64, none string) string {
		if n <= 0 || n >= 1<<50 {
			return none
		}
		return web.Bytes(n)
	}
	provider := "none: people sign in with a name and a password"
	if s.config.Provider != "" {
		provider = s.config.Provider
	}
	store := web.Fact{Key: "File", Value: s.from("--db", c.Path)}
	if c.Path == "" {
		store = web.Fact{Key: "Database", Value: s.from("--db", c.Engine)}
	}
	yes := map[bool]string{true: "yes", false: "no"}
	return []web.Fact{
		{Key: "Public address", Value: s.from("--public-url", s.site.PublicURL)},
		store,
		{Key: "Embedding model", Value: s.from("--embedder", c.Model+", "+web.Count(c.Dimensions, "dimension")) +
			s.choices("--embedder") + ". After a start with another one, all memories are embedded again in the " +
			"background, and searches use words until that is done. The other programs on this store need the same flag."},
		{Key: "Scheduled backups", Value: s.backups()},
		{Key: "Largest file", Value: s.from("--max-file", limit(c.MaxFile, "no limit"))},
		{Key: "Longest request", Value: web.Bytes(s.site.MaxBody) + " · built in"},
		{Key: "Concurrent requests", Value: s.from("--max-running", strconv.Itoa(s.config.MaxRunning))},
		{Key: "Concurrent requests of one user beside others", Value: s.from("--max-running-per-user",
			strconv.Itoa(s.config.MaxRunningPerUser))},
		{Key: "Queued requests per user", Value: s.from("--queue-per-user", strconv.Itoa(s.config.QueuePerUser))},
		{Key: "Longest wait in the queue", Value: s.from("--queue-wait", web.Wait(s.config.QueueWait))},
		{Key: "Memory for requests", Value: s.from("--body-memory", web.Bytes(s.config.BodyMemory))},
		{Key: "Recorded activity", Value: s.from("--no-activity",
			map[bool]string{true: "nothing", false: "calls"}[s.config.NoActivity])},
		{Key: "External sign-in", Value: s.from("--oidc-issuer", provider)},
		{Key: "Tokens in URLs", Value: s.from("--no-query-tokens",
			map[bool]string{true: "refused", false: "accepted"}[s.config.NoQueryTokens])},
		{Key: "Read-only tools", Value: s.from("--read-only", yes[s.config.ReadOnly])},
		{Key: "Failed sign-ins before a delay", Value: strconv.Itoa(s.signin.FreeTries()) + " · built in"},
	}, nil
}

// choices lists what a flag takes, as its help says; empty where the program gave no flags.
func (s *Service) choices(name string) string {
	for _, flag := range s.config.Flags {
		if _, values, is := strings.Cut(flag.Meaning, ": "); is && flag.Name == name {
			return ". It takes " + values
		}
	}
	return ""
}

// from adds to a value what set it, and for a default the flag that changes it.
func (s *Service) from(flag, value string) string {
	by := s.setBy(flag)
	if by == "the default" {
		by += "; " + flag + " changes it"
	}
	return value + " · " + by
}

// backups describes the scheduled backups: only where they go, since how often and how many are settings that admins
// change.
func (s *Service) backups() string {
	to := ""
	for _, flag := range s.config.Flags {
		if flag.Name == "--backup-to" {
			to = flag.Value
		}
	}
	if to == "" {
		return "none; --backup-to schedules them"
	}
	return s.from("--backup-to", "to "+to+", each verified by restoring it")
}

// LongSpan formats a configured duration exactly.
func LongSpan(d time.Duration) string {
	if d >= web.Day && d%web.Day == 0 {
		return web.Count(int(d/web.Day), "day")
	}
	text := d.String() // 72h0m0s
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (s *Service) showSettings(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, _, err := s.settings(r, c)
	return p, err
}

// changeSettings sets or removes one preference; the former value can be restored.
func (s *Service) changeSettings(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	before, err := c.Store.GetPreferences(r.Context())
	if err != nil {
		return nil, err
	}
	key := values.Get("key")
	former := before[key] // nil, which removes it, if it was not set
	change, text := any(nil), "The preference "+web.Shortened(key)+" is removed."
	if !values.Has("remove") {
		change, text = preferenceOf(values.Get("value")), "The preference "+web.Shortened(key)+" is saved."
	}
	switch {
	case strings.TrimSpace(key) == "":
		err = failure.Invalid("key", "key is empty; a preference needs a name")
	case !values.Has("remove") && change == nil:
		err = failure.Invalid("value",
			"value is null, which removes a preference; give another one, or remove it in the list")
	default:
		err = setPreference(r.Context(), c.Store, key, change)
	}
	if err != nil {
		p, data, failed := s.settings(r, c)
		if failed != nil {
			return nil, failed
		}
		data.Fill(values.Get)
		data.Refuse(err)
		return web.Again(p, err)
	}
	stored, err := c.Store.GetPreferences(r.Context())
	if err != nil {
		return nil, err
	}
	view, after := c.Store, digest(textview.Plain(stored[key]))
	return s.site.StepDone(c, "/settings",
		web.Step{Text: text, Path: "/settings", Bytes: int64(len(textview.Plain(former))),
			Back: backTo(view, func(now map[string]any) bool { return digest(textview.Plain(now[key])) == after },
				func(ctx context.Context) error { return setPreference(ctx, view, key, former) })}), nil
}

// setPreference sets one preference and leaves the others unchanged; nil removes it.
func setPreference(ctx context.Context, view *souvenir.Store, key string, value any) error {
	before, err := view.GetPreferences(ctx)
	if err == nil {
		_, err = view.UpdatePreferences(ctx, map[string]any{key: replacing(before[key], value)})
	}
	return err
}

// replacing returns the merge patch that turns one value into another. A patch merges objects, so keys missing from
// the new one are removed explicitly.
func replacing(before, after any) any {
	old, isObject := before.(map[string]any)
	wanted, isToBe := after.(map[string]any)
	if !isObject || !isToBe {
		return after
	}
	patch := map[string]any{}
	for key := range old {
		patch[key] = nil
	}
	for key, value := range wanted {
		patch[key] = replacing(old[key], value)
	}
	return patch
}

// preferenceOf parses a value from the form: JSON, or else text. Numbers keep all their digits.
func preferenceOf(typed string) any {
	var value any
	decoder := json.NewDecoder(strings.NewReader(typed))
	decoder.UseNumber()
	if !json.Valid([]byte(typed)) || decoder.Decode(&value) != nil {
		return typed
	}
	return value
}

// replaceSettings replaces all preferences, unless they have changed since the page was shown.
func (s *Service) replaceSettings(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadLongForm(w, r)
	if err != nil {
		return nil, err
	}
	p, data, err := s.settings(r, c)
	if err != nil {
		return nil, err
	}
	former, err := c.Store.GetPreferences(r.Context())
	if err != nil {
		return nil, err
	}
	all, err := objectOf(values.Get("whole"))
	if err == nil && values.Get("before") != data.Before {
		err = &souvenir.Error{Kind: souvenir.KindConflict, Argument: "preferences",
			Message: "preferences were changed elsewhere since this page was opened; copy what you typed, open the " +
				"page again and paste it there"}
	}
	if err == nil {
		_, err = c.Store.SetPreferences(r.Context(), all)
	}
	if err != nil {
		form := web.Form{Fields: []web.Field{data.Whole}}
		form.Refuse(err)
		data.Whole = form.Fields[0]
		if form.Error != "" {
			data.Whole.Error = form.Error
		}
		data.Whole.Value, data.Before, data.Whole.Focus = values.Get("whole"), values.Get("before"), true
		return web.Again(p, err)
	}
	stored, err := c.Store.GetPreferences(r.Context())
	if err != nil {
		return nil, err
	}
	view, after, size := c.Store, digestOf(stored), int64(len(textview.Plain(former)))
	return s.site.StepDone(c, "/settings",
		web.Step{Text: "Your preferences are replaced.", Path: "/settings", Bytes: size,
			Back: backTo(view, func(now map[string]any) bool { return digestOf(now) == after },
				func(ctx context.Context) error {
					_, err := view.SetPreferences(ctx, former)
					return err
				})}), nil
}

// settingsChanged is the error for a step that cannot be undone.
var settingsChanged = &failure.Error{Status: http.StatusConflict,
	Message: "this cannot be undone: the preferences have been changed again since"}

// backTo returns a function that undoes a change of preferences, in one transaction, if they are still as the change
// left them.
func backTo(view *souvenir.Store, still func(now map[string]any) bool,
	back func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		return view.Transaction(ctx, func(ctx context.Context) error {
			now, err := view.GetPreferences(ctx)
			if err == nil && !still(now) {
				err = settingsChanged
			}
			if err != nil {
				return err
			}
			return back(ctx)
		})
	}
}

// digestOf identifies a state of the preferences.
func digestOf(all map[string]any) string { return digest(textview.Plain(all)) }

// objectOf parses a JSON object from the form.
func objectOf(typed string) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(typed))
	decoder.UseNumber()
	var all map[string]any
	err := decoder.Decode(&all)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		line, column := placeIn(typed, int(syntax.Offset))
		return nil, failure.Invalid("preferences",
			fmt.Sprintf("preferences are not valid JSON in line %d, character %d: %v", line, column, syntax))
	case errors.Is(err, io.EOF) || err == nil && all == nil:
		return nil, failure.Invalid("preferences", "preferences are empty; expected an object, such as {}")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, failure.Invalid("preferences", "preferences are not valid JSON: unexpected end")
	case err != nil:
		return nil, failure.Invalid("preferences", "preferences are not a JSON object; {} is an empty one")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		line, column := placeIn(typed, int(decoder.InputOffset()))
		return nil, failure.Invalid("preferences",
			fmt.Sprintf("preferences have more text after their object, in line %d, character %d; expected one object", line,
				column))
	}
	return all, nil
}

// placeIn converts a byte offset into a line and column, as editors count.
func placeIn(text string, offset int) (line, column int) {
	before := text[:min(max(offset-1, 0), len(text))]
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
}

// digest is a short hash of a text, to detect changes.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
