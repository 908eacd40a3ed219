package seed

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// script runs and leaves a trace if a page treats it as anything but text. The tests look for the trace.
const script = `<script>globalThis.ran="script"</script><img src=x onerror="globalThis.ran='image'"><svg ` +
	`onload=globalThis.ran='svg'>`

// hostileTexts returns texts that do harm in some context: in HTML, in an attribute, in an address, in Markdown,
// in a template, in a script, in a line of a table, on a narrow screen, or in a line that is read from the right.
func hostileTexts() []string {
	return []string{
		script,
		`" autofocus onfocus="globalThis.ran='attribute'" x='`,
		`'><b id=main>&lt;&amp;&#60; </textarea></title></style></template>`,
		"javascript:globalThis.ran='address'",
		"[click](javascript:globalThis.ran='markdown') ![x](https://elsewhere.example/x.png) <https://elsewhere.example> " +
			"<iframe src=https://elsewhere.example>",
		"{{.CSRF}} {{template \"x\"}} ${globalThis.ran='template'} <%= 1 %>",
		`</script><script>globalThis.ran="json"</script> \u003cscript\u003e \" \\`,
		"\u202egnp.exe \u2066left\u2069 \u200f\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627\u202c",
		strings.Repeat("Donaudampfschifffahrt", 476),
		strings.Repeat("long ", 2000) + "end",
		"👩🏽‍🚀🏳️‍🌈👨‍👩‍👧‍👦 " + strings.Repeat("🫠", 400),
		"Z̷̧̢̛͖͎̙̰̦̥̱͍̈́͋̏̂͑̄͊͌͘͝a̴̡̧̛̛̩̺̫̗̳̤̯͉͇̦̅̾͐̎̓̀̂́̌͂͝l̶̢̨̛̮̣͈̙͕̼͔̩̰̎̆̋̑̎̃͆́̚͝ͅg̶o " + strings.Repeat("a\u0301", 200),
		"line one\r\nline two\u2028line three\ttab\n\n\n\n# heading\n---\n> quote\n```\nno end",
		"=cmd|'/c calc'!A1\t+1\t-1\t@x",
		"| a | b |\n|---|---|\n| <i>x</i> | `" + script + "` |\n",
		"<div hx-get=\"/logout\" hx-trigger=\"load\">x</div><form action=/logout method=post><button>x</button></form>",
		"NULL", "0", ".", " . ", "../../etc/passwd", "%00%2e%2e%2f?x=1&y=2#z",
	}
}

// hostile fills the store with hostile texts, wherever a text can be chosen.
func (f *filler) hostile() error {
	return f.inOrder(f.hostilePeople, f.hostileMemories, f.hostileFiles, f.hostileTrash, f.hostileManagement)
}

func (f *filler) hostilePeople() error {
	for i, name := range []string{"<script>x</script>", `" onfocus="x" '`, strings.Repeat("W", 64)} {
		user, err := f.store.Accounts().AddUser(f.ctx,
			souvenir.NewUser{Name: strings.ReplaceAll(name, "/", `\`), Email: fmt.Sprintf(`"onfocus='x'%d"@example.com`, i),
				Password: Password})
		if err != nil {
			return err
		}
		if i == 0 {
			f.other, f.Other = user, user.Name
		}
	}
	for i, text := range hostileTexts() {
		p := souvenir.NewProject{ID: fmt.Sprint("p", i), Name: line(text, 128)}
		if i == 1 {
			p.ID = `"><script>x ?&#%2F é 'p`
		}
		if strings.TrimSpace(strings.Trim(p.Name, ".")) == "" {
			continue
		}
		added, err := f.view.AddProject(f.ctx, p)
		if err != nil {
			return err
		}
		if i == 1 {
			f.Project = added.ID
		}
	}
	_, err := f.store.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: f.view.Access().User + "/" + f.Project}, User: f.Other,
			Role: souvenir.MemberWriter})
	return err
}

func (f *filler) hostileMemories() error {
	if _, err := f.view.AddCollection(f.ctx,
		souvenir.NewCollection{Name: line(script, 128), Description: script}); err != nil {
		return err
	}
	var related []string
	for i, text := range hostileTexts() {
		f.at(float64(i) / 40)
		m := souvenir.NewMemory{
			Content: text, EventType: line(text, 64), State: line(text, 64),
			Tags: []string{line(text, 128), `"'<&>`, script[:39]}, Related: related,
			ShownMetadata: map[string]any{line(text, 64): text, "nested": map[string]any{script: []any{text, 1, nil, true}}},
		}
		if i%2 == 0 {
			m.ProjectID, m.Collection = f.Project, line(script, 128)
		}
		stored, err := f.view.AddMemory(f.ctx, m)
		if err != nil {
			return fmt.Errorf("text %d: %w", i, err)
		}
		if related = append(related, stored.ID); len(related) > 5 {
			related = related[1:]
		}
		if i == 0 {
			f.Memory = stored.ID
		}
		changed := text + "\n" + script
		if _, err := f.view.UpdateMemory(f.ctx, stored.ID, souvenir.MemoryUpdate{Content: &changed}); err != nil {
			return err
		}
	}
	all := strings.Join(hostileTexts(), "\n\n")
	for _, rule := range []souvenir.NewRule{{ProjectID: f.Project, Type: souvenir.RuleDo, Content: all},
		{Type: souvenir.RuleDont, Content: all}} {
		if _, err := f.view.SetRule(f.ctx, rule); err != nil {
			return err
		}
	}
	tasks := "- [ ] T1 " + script + "\n- [x] T2 " + line(hostileTexts()[8], 9000) +
		"\n- [ ] T3 [x](javascript:globalThis.ran='task')\n"
	content := script + "\n\n## Constitution\n\n" + script + "\n\n## Spec\n\n## Plan\n\n## Tasks\n\n" + tasks +
		"\n## Gaps\n\n" + script + "\n"
	if _, err := f.view.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: f.Project, Content: content}); err != nil {
		return err
	}
	if _, err := f.view.AddMemory(f.ctx,
		souvenir.NewMemory{Content: all, EventType: souvenir.EventProjectMain, ProjectID: f.Project,
			Related: related}); err != nil {
		return err
	}
	_, err := f.view.SetIdentityMemory(f.ctx,
		souvenir.IdentityMemory{Content: script, Personality: script, Nicknames: []string{line(script, 128)}, Address: script,
			EmotionalState: script})
	return err
}

func (f *filler) hostileFiles() error {
	for i, text := range hostileTexts() {
		n := souvenir.NewFile{Filename: line(text, 100) + ".html", Description: line(text, 4000), Category: line(text, 64),
			Tags: []string{line(text, 128)}}
		if i%3 == 1 {
			n.Filename = line(text, 100) + ".svg"
		}
		if i < 4 {
			n.MemoryID = f.Memory
		}
		file, err := f.view.AddFile(f.ctx, n,
			strings.NewReader(`<svg xmlns="http://www.w3.org/2000/svg"><script>globalThis.ran="file"</script></svg>`+text))
		if err != nil {
			return fmt.Errorf("file %d: %w", i, err)
		}
		if i == 0 {
			f.File = file.ID
		}
	}
	return nil
}

// hostileTrash deletes memories and files with the same texts.
func (f *filler) hostileTrash() error {
	f.at(1) // now, since a starting server removes old entries from the trash
	for i, text := range hostileTexts() {
		stored, err := f.view.AddMemory(f.ctx, souvenir.NewMemory{Content: text + "\nThrown away.", ProjectID: f.Project})
		if err != nil {
			return fmt.Errorf("text %d: %w", i, err)
		}
		if err := f.view.DeleteMemory(f.ctx, stored.ID, nil); err != nil {
			return err
		}
		file, err := f.view.AddFile(f.ctx, souvenir.NewFile{Filename: line(text, 100) + ".gone"}, strings.NewReader(text))
		if err != nil {
			return fmt.Errorf("file %d: %w", i, err)
		}
		if err := f.view.DeleteFile(f.ctx, file.ID, nil); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) hostileManagement() error {
	f.at(1)
	for _, text := range hostileTexts() {
		if _, err := f.view.Accounts().AddToken(f.ctx,
			souvenir.NewToken{Name: line(text, 128), Projects: []string{f.Project}}); err != nil {
			return err
		}
	}
	if _, err := f.view.Accounts().AddClient(f.ctx,
		souvenir.NewClient{Name: script, RedirectURIs: []string{callback + "?x=%22%3E%3Cscript%3E"}}); err != nil {
		return err
	}
	if err := f.authorize(line(script, 200), line(strings.Repeat("Wide", 50), 200)); err != nil {
		return err
	}
	if _, err := f.store.Accounts().AddSignIn(f.ctx, souvenir.NewSignIn{User: f.User, UserAgent: script}); err != nil {
		return err
	}
	if _, err := f.store.Accounts().AddInvitation(f.ctx,
		souvenir.NewInvitation{Note: line(script, 200), Email: `"onfocus='x'"@example.com`, CreatedBy: f.User}); err != nil {
		return err
	}
	if _, err := f.view.SetPreferences(f.ctx,
		map[string]any{"language": script, script: script, "theme": map[string]any{script: []any{script}}}); err != nil {
		return err
	}
	own := souvenir.Principal{User: f.user, Access: souvenir.Access{User: f.user.ID}}
	for _, text := range hostileTexts() {
		if err := f.store.Upkeep().RecordActivity(f.ctx,
			souvenir.NewActivity{Principal: own, Client: text, Tool: line(text, 200), Action: line(text, 200)}); err != nil {
			return err
		}
	}
	return nil
}

// line returns the beginning of a text as one line of at most n characters, the form of names.
func line(text string, n int) string {
	kept := strings.Map(func(r rune) rune {
		if r < ' ' || r == '\u2028' || r == '\u2029' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	runes := []rune(kept)
	return strings.TrimSpace(string(runes[:min(n, len(runes))]))
}
