package upkeep

import (
	"context"
	"fmt"
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

// serverSetting is a setting of the server that admins may change, or that a flag fixes.
type serverSetting struct {
	Label      string
	Name       souvenir.SettingName
	Value      string // for people
	By         string // what set it
	Unit       string // of Typed
	Typed      string // the value of the input
	Changeable bool
	Changed    bool // here, by an admin
	Error      string
}

// ID is the id of the input on the page.
func (s serverSetting) ID() string { return "server-" + string(s.Name) }

// kindOfSetting says how a setting is shown.
type kindOfSetting struct {
	name        souvenir.SettingName
	label, flag string
	unit        string
	size        int64 // of a unit
	none        string
	value       func(c souvenir.Configuration) int64
}

const mebibytes = "MiB"

// kindsOfSettings are the settings in the order of the page.
var kindsOfSettings = []kindOfSetting{
	{souvenir.SettingMemories, "Memories per user", "--memory-quota", "memory", 1, noLimit,
		func(c souvenir.Configuration) int64 { return int64(c.Quota.Memories) }},
	{souvenir.SettingRevisions, "Past versions per user", "--revision-quota", "version", 1, noLimit,
		func(c souvenir.Configuration) int64 { return int64(c.Quota.Revisions) }},
	{souvenir.SettingItems, "Collections, projects and files per user, each", "--item-quota", "", 1, noLimit,
		func(c souvenir.Configuration) int64 { return int64(c.Quota.Items) }},
	{souvenir.SettingBytes, "Text per user", "--text-quota", mebibytes, 1 << 20, noLimit,
		func(c souvenir.Configuration) int64 { return c.Quota.Bytes }},
	{souvenir.SettingFileBytes, "Files per user", "--file-quota", mebibytes, 1 << 20, noLimit,
		func(c souvenir.Configuration) int64 { return c.FileQuota }},
	{souvenir.SettingTrash, "Trash", "--trash-days", "day", 1, "off: deletions are permanent",
		func(c souvenir.Configuration) int64 { return int64(max(c.KeepTrash, 0) / web.Day) }},
	{souvenir.SettingActivity, "Calls kept for", "--keep-activity", "day", 1, "less than a day",
		func(c souvenir.Configuration) int64 { return int64(c.KeepActivity / web.Day) }},
	{souvenir.SettingCalls, "Maximum recorded calls", "--max-activity", "call", 1, noLimit,
		func(c souvenir.Configuration) int64 { return int64(c.MaxActivity) }},
	{souvenir.SettingIndex, "Memory for the search index", "--index-memory", mebibytes, 1 << 20, "none",
		func(c souvenir.Configuration) int64 { return max(c.IndexMemory, 0) }},
	{souvenir.SettingBackups, "Hours between backups", "--backup-every", "hour", 1, "no backups",
		func(c souvenir.Configuration) int64 { return int64(c.BackupEvery / time.Hour) }},
	{souvenir.SettingKept, "Backups kept", "--keep-backups", "backup", 1, "no backups",
		func(c souvenir.Configuration) int64 { return int64(c.KeepBackups) }},
}

// applies reports whether a store has a setting: without scheduled backups there is nothing to set.
func (k kindOfSetting) applies(c souvenir.Configuration) bool {
	return c.BackupEvery > 0 || k.name != souvenir.SettingBackups && k.name != souvenir.SettingKept
}

// lowering holds a question for each setting whose lower value deletes data, or hides it from admins.
var lowering = map[souvenir.SettingName]web.Question{
	souvenir.SettingActivity: callsLost,
	souvenir.SettingCalls:    callsLost,
	souvenir.SettingBackups: {Title: "Keep fewer days of backups?", Button: "Make backups more often",
		Text: "The number of backups stays the same, so they cover less time: check how many are kept, too."},
	souvenir.SettingKept: {Title: "Keep fewer backups?", Button: "Change, and delete the oldest",
		Text: "The next backup permanently deletes the oldest ones above this number. Until then, Undo keeps them."},
}

var callsLost = web.Question{Title: "Delete recorded calls?", Button: "Change, and delete them",
	Text: "Older calls of all users, and those above the limit, are deleted permanently when the next ones are " +
		"recorded. Undo restores the setting, but not the calls."}

const noLimit = "no limit"

// inWords is a value for people.
func (k kindOfSetting) inWords(value int64) string {
	switch {
	case value == 0:
		return k.none
	case k.unit == mebibytes:
		return web.Bytes(value)
	}
	return strings.TrimSuffix(web.Thousands(int(value))+" "+k.units(value), " ")
}

// units returns the unit for a number.
func (k kindOfSetting) units(n int64) string {
	if k.unit == "" || k.unit == mebibytes {
		return k.unit
	}
	_, units, _ := strings.Cut(web.Count(int(n), k.unit), " ")
	return units
}

// serverSettings loads the settings with the origin of each.
func (s *Service) serverSettings(ctx context.Context) ([]serverSetting, error) {
	c, err := s.store.Upkeep().Configuration(ctx)
	if err != nil {
		return nil, err
	}
	changeable, err := s.store.Upkeep().Settings(ctx)
	if err != nil {
		return nil, err
	}
	var all []serverSetting
	for _, k := range kindsOfSettings {
		if !k.applies(c) {
			continue
		}
		value := k.value(c)
		one := serverSetting{Label: k.label, Name: k.name, By: s.setBy(k.flag)}
		at := slices.IndexFunc(changeable, func(x souvenir.Setting) bool { return x.Name == k.name })
		if at >= 0 {
			value, one.Changeable, one.Changed = changeable[at].Value, true, changeable[at].Changed
		}
		one.Value = k.inWords(value)
		if k.name == souvenir.SettingBackups && c.BackupEvery%time.Hour != 0 { // only a flag can set it
			one.Value = LongSpan(c.BackupEvery)
		}
		if one.Changed {
			one.By = "changed here; the default is " + k.inWords(changeable[at].Default)
		}
		one.Typed, one.Unit = strconv.FormatInt(value/k.size, 10), k.units(value/k.size)
		all = append(all, one)
	}
	return all, nil
}

// setBy returns what set a flag, in words.
func (s *Service) setBy(name string) string {
	for _, flag := range s.config.Flags {
		switch {
		case flag.Name != name || !flag.Given:
		case flag.Variable != "":
			return "set by " + flag.Variable
		default:
			return "set by " + name
		}
	}
	return "the default"
}

// changeServer changes a setting of the server. It asks first if something would be deleted.
func (s *Service) changeServer(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	form, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	name := souvenir.SettingName(form.Get("name"))
	at := slices.IndexFunc(kindsOfSettings, func(k kindOfSetting) bool { return k.name == name })
	all, err := s.store.Upkeep().Settings(r.Context())
	if err != nil {
		return nil, err
	}
	present := slices.IndexFunc(all, func(x souvenir.Setting) bool { return x.Name == name })
	if at < 0 || present < 0 {
		return nil, &failure.Error{Status: http.StatusBadRequest,
			Message: fmt.Sprintf("the setting %q cannot be changed here; the Settings page shows which can be", string(name))}
	}
	k, before := kindsOfSettings[at], all[present]
	var wanted *int64
	after := before.Default
	if form.Get("default") == "" {
		if after, err = k.typed(form.Get("value"), before); err != nil {
			return s.serverAgain(r, c, k, form.Get("value"), err)
		}
		wanted = &after
	}
	if question, asks := lowering[name]; asks && after < before.Value && form.Get("sure") == "" {
		return askServer(question, k, before.Value, after, form.Get("value"), form.Get("default")), nil
	}
	if err := s.store.Upkeep().SetSetting(r.Context(), name, wanted); err != nil {
		return s.serverAgain(r, c, k, form.Get("value"), err)
	}
	s.log.InfoContext(r.Context(), "an admin changed a setting", "setting", name, "before", before.Value, "after", after,
		"admin", c.User.ID)
	former := &before.Value
	if !before.Changed {
		former = nil
	}
	return s.site.StepDone(c, "/settings", web.Step{
		Text: k.label + ": " + k.inWords(after) + ", instead of " + k.inWords(before.Value) + ".", Path: "/settings",
		Admin: true, Back: func(ctx context.Context) error {
			if err := s.unchangedSince(ctx, name, after); err != nil {
				return err
			}
			return s.store.Upkeep().SetSetting(ctx, name, former)
		}}), nil
}

// unchangedSince returns an error if a setting has been changed again: another admin's change is not undone.
func (s *Service) unchangedSince(ctx context.Context, name souvenir.SettingName, value int64) error {
	all, err := s.store.Upkeep().Settings(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Name == name && one.Value != value {
			return &failure.Error{Status: http.StatusConflict,
				Message: "this cannot be undone: the setting has been changed again since"}
		}
	}
	return nil
}

// typed reads a value from the form.
func (k kindOfSetting) typed(text string, within souvenir.Setting) (int64, error) {
	least, most := (within.Least+k.size-1)/k.size, within.Most/k.size
	value, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || value < least || value > most {
		return 0, failure.Invalid(string(k.name), fmt.Sprintf("%s is %q; give a whole number from %d to %s", k.name,
			textview.Clip(text, 40), least, strings.TrimSuffix(web.Thousands(int(most))+" "+k.units(most), " ")))
	}
	return value * k.size, nil
}

// serverAgain shows the page again with an error at a setting.
func (s *Service) serverAgain(r *http.Request, c request.Caller, k kindOfSetting, typed string, err error) (any,
	error) {
	p, data, failed := s.settings(r, c)
	if failed != nil {
		return nil, failed
	}
	field := web.Form{Fields: []web.Field{{Name: string(k.name), Label: k.label}}}
	field.Refuse(err)
	for i := range data.Server {
		if one := &data.Server[i]; one.Name == k.name {
			one.Typed, one.Error = typed, field.Fields[0].Error+field.Error
		}
	}
	return web.Again(p, err)
}

// askServer asks before something is deleted.
func askServer(q web.Question, k kindOfSetting, before, after int64, typed, byDefault string) web.Page {
	q.ID, q.Action, q.Back = "fewer", "/settings/server", "/settings"
	q.Facts = []web.Fact{{Key: "Now", Value: k.inWords(before)}, {Key: "Then", Value: k.inWords(after)}}
	q.Kept = []web.Fact{{Key: "name", Value: string(k.name)}, {Key: "value", Value: typed},
		{Key: "default", Value: byDefault}, {Key: "sure", Value: "yes"}}
	return web.Page{Template: "asks", Title: k.label, Data: web.QuestionPage{Asks: &q}}
}
