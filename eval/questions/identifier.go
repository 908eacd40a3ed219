package questions

import (
	"fmt"
	"strings"
)

// identifier makes four memories with identifiers that differ in one character. The wanted one is in a long text, like
// some of the others.
func (m *maker) identifier(i int, f frame) {
	values := m.random.permuted(f.values)
	group := "identifier " + f.category
	id := m.identifierOf(f.category)
	asked := m.random.intn(len(values))
	ids := map[string]bool{id: true}
	for k, value := range values {
		this := id
		for k != asked && ids[this] {
			this = m.alter(id)
		}
		ids[this] = true
		text := fill(f.wordings[m.random.intn(len(f.wordings))], "{id}", this, "{y}", value)
		if k == asked || m.random.intn(2) == 0 {
			text = m.among(text, longNote+m.random.intn(longNotes))
		}
		m.add(group+this, group, m.memory(text, "note"))
	}
	m.ask("identifier", i, group+id, fill(f.question, "{id}", id))
}

// identifierOf makes an identifier of a kind.
func (m *maker) identifierOf(kind string) string {
	digits := func(n int) string { return m.characters("0123456789", n) }
	switch kind {
	case "ticket":
		return m.characters("ABCDEFGHKLMNPRSTUV", 3) + "-" + digits(4)
	case "hash":
		return m.characters("123456789", 1) + m.characters("abcdef", 1) + m.characters("0123456789abcdef", 6)
	case "error":
		return "E" + digits(5)
	case "version":
		return fmt.Sprintf("v%d.%d.%d", 1+m.random.intn(9), 10+m.random.intn(80), 10+m.random.intn(80))
	case "path":
		return fmt.Sprintf("services/%s/%s_%s.go", m.word(), m.word(), m.word())
	case "invoice":
		return "INV-2026-" + digits(5)
	case "address":
		return fmt.Sprintf("10.%d.%d.%d", 10+m.random.intn(200), 10+m.random.intn(200), 10+m.random.intn(200))
	}
	return strings.ToUpper(m.word() + "_" + m.word() + "_" + m.word())
}

// word is a word of an identifier.
func (m *maker) word() string {
	words := strings.Fields(`billing refund worker ledger session queue retry budget audit export cache tenant
		signup webhook render search import token metric mirror policy replay shard vault wallet archive batch cursor digest`)
	return words[m.random.intn(len(words))]
}

func (m *maker) characters(from string, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(from[m.random.intn(len(from))])
	}
	return b.String()
}

// alter replaces a digit of an identifier by another one, or a word of a path or variable.
func (m *maker) alter(id string) string {
	if !strings.ContainsAny(id, "0123456789") {
		words := strings.FieldsFunc(id, func(r rune) bool { return r == '_' || r == '/' || r == '.' })
		old := words[len(words)-1]
		if old == "go" {
			old = words[len(words)-2]
		}
		other := m.word()
		if old == strings.ToUpper(old) {
			other = strings.ToUpper(other)
		}
		at := strings.LastIndex(id, old)
		return id[:at] + other + id[at+len(old):]
	}
	for {
		at := m.random.intn(len(id))
		if id[at] >= '0' && id[at] <= '9' && (at == 0 || id[at-1] != '.' && id[at-1] != 'v') {
			return id[:at] + string(rune('0'+(int(id[at]-'0')+1+m.random.intn(9))%10)) + id[at+1:]
		}
	}
}
