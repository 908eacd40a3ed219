package seed

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// topic is a subject of memories: its sentences have words of their own, so that memories of one topic are close
// in meaning.
type topic struct {
	name      string   // also a tag
	project   string   // id of the project with most of its memories; empty: none
	sentences []string // {slot} stands for a word of the list of that name
	words     map[string][]string
}

// slot is a place in a sentence for a word.
var slot = regexp.MustCompile(`\{(\w+)\}`)

// writer produces texts, the same ones from the same random numbers.
type writer struct {
	random *rand.Rand
	common map[string][]string
	topics []topic
}

// Memories returns n of the texts that stores are filled with, the same each time.
func Memories(n int) []string {
	w := newWriter()
	all := make([]string, n)
	for i := range all {
		all[i] = w.text(pick(w, w.topics))
	}
	return all
}

func newWriter() *writer {
	return &writer{rand.New(rand.NewPCG(7, 7)), commonWords(), append(work(), life()...)}
}

func pick[T any](w *writer, all []T) T { return all[w.random.IntN(len(all))] }

// once returns true in one of n cases.
func (w *writer) once(n int) bool { return w.random.IntN(n) == 0 }

// sentence writes a sentence about a topic.
func (w *writer) sentence(t topic) string {
	return slot.ReplaceAllStringFunc(pick(w, t.sentences), func(found string) string {
		name := found[1 : len(found)-1]
		switch name {
		case "n":
			return fmt.Sprint(2 + w.random.IntN(97))
		case "big":
			return fmt.Sprint(100 + w.random.IntN(9900))
		case "time":
			return fmt.Sprintf("%02d:%02d", w.random.IntN(24), 5*w.random.IntN(12))
		case "date":
			return fmt.Sprintf("%d %s", 1+w.random.IntN(28), pick(w, w.common["month"]))
		}
		if words := t.words[name]; words != nil {
			return pick(w, words)
		}
		return pick(w, w.common[name])
	})
}

// text writes the content of one memory: mostly one to three sentences, now and then a document with headings,
// lists and code.
func (w *writer) text(t topic) string {
	if !w.once(25) {
		sentences := make([]string, 1+w.random.IntN(3))
		for i := range sentences {
			sentences[i] = w.sentence(t)
		}
		return strings.Join(sentences, " ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Notes on %s, %s\n\n%s %s\n\n## What we know\n\n", t.name, w.sentenceDate(), w.sentence(t),
		w.sentence(t))
	for range 2 + w.random.IntN(5) {
		fmt.Fprintf(&b, "- %s\n", w.sentence(t))
	}
	fmt.Fprintf(&b, "\n## Open\n\n1. %s\n2. **Ask %s**: %s\n\n> %s\n", w.sentence(t), pick(w, w.common["person"]),
		w.sentence(t), w.sentence(t))
	if w.once(2) {
		fmt.Fprintf(&b, "\n```sh\nmake %s && ./run --port %d\n```\n", strings.ReplaceAll(t.name, " ", "-"), 1024+
			w.random.IntN(9000))
	}
	return b.String()
}

func (w *writer) sentenceDate() string {
	return fmt.Sprintf("%d %s", 1+w.random.IntN(28), pick(w, w.common["month"]))
}

// nearly rewrites a text slightly, with the same meaning.
func (w *writer) nearly(text string) string {
	return pick(w, []string{"Note: ", "As said before: ", "Again, for the record: "}) + strings.TrimSuffix(text, ".") +
		pick(w, []string{".", " (confirmed).", ", as of today."})
}

func commonWords() map[string][]string {
	return map[string][]string{
		"person": {"Mara", "Jonas", "Priya", "Tomás", "Aiko", "Lena", "Samir", "Olga", "Kwame", "Ines", "Peter", "Yun"},
		"month": {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
			"November", "December"},
		"day": {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"},
		"reason": {"it was too slow", "nobody could explain the bill", "it kept failing at night", "two people asked for it",
			"the old way broke twice", "it saves an hour a week"},
	}
}

// work has the topics that the invented people share.
func work() []topic {
	return []topic{
		{"deployment", "atlas", []string{
			"We deploy {service} on {day} at {time}, and roll back with {command} if more than {n} errors a minute show up.",
			"The release of {service} on {date} failed because the {part} still pointed at the old cluster; {person} fixed it " +
				"in {n} minutes.",
			"Never restart {service} while the {part} is being migrated: {big} jobs were lost the last time.",
			"{person} decided to keep {n} replicas of {service}, because {reason}.",
		}, map[string][]string{
			"service": {"the ticket service", "the gateway", "the tile server", "the mail worker", "the payment bridge",
				"the scheduler"},
			"part":    {"load balancer", "config map", "queue", "secret store", "ingress rule"},
			"command": {"`release undo`", "`kubectl rollout undo`", "the red button", "`make back`"},
		}},
		{"database", "atlas", []string{
			"The table {table} has {big} thousand rows; an index on {column} brought the query from {big} ms to {n} ms.",
			"We chose {engine} over {engine} for {table}, because {reason}.",
			"Migration {big} adds {column} to {table}; it must run before {day}, when {person} is away.",
			"Backups of {table} are taken at {time} and kept for {n} days.",
		}, map[string][]string{
			"table":  {"bookings", "passengers", "tiles", "invoices", "sessions", "audit_log"},
			"column": {"created_at", "owner_id", "email", "zone", "state"},
			"engine": {"PostgreSQL", "SQLite", "DynamoDB", "MySQL", "DuckDB"},
		}},
		{"frontend", "atlas", []string{
			"The {widget} must work with the keyboard alone; {person} found {n} places where the focus got lost.",
			"Colours of the {widget} live in one file; dark mode changes {n} variables and nothing else.",
			"On phones the {widget} is {n} pixels too wide, reported on {date}.",
			"{person} wants the {widget} to load in less than {big} ms on a slow line.",
		}, map[string][]string{"widget": {"date picker", "seat map", "search box", "checkout form", "price table", "menu"}}},
		{"billing", "ledger", []string{
			"Invoice {big} went to {company} on {date}; it is due in {n} days.",
			"{company} pays by {method}, because {reason}.",
			"VAT for {company} is {n} percent; {person} checks it each {month}.",
			"If {company} cancels before {date}, we refund {n} percent by {method}.",
		}, map[string][]string{
			"company": {"Nordlicht GmbH", "Harbour Lines", "Café Amélie", "Blue Door Ltd", "Ferrovia SpA"},
			"method":  {"bank transfer", "card", "direct debit", "cheque"},
		}},
		{"contracts", "ledger", []string{
			"The contract with {company} ends on {date} and renews for {n} months unless {person} writes before {month}.",
			"Clause {n} limits our liability to {big} euro; the lawyer of {company} accepted it on {day}.",
			"{person} signed the amendment with {company}: {n} more seats for {big} euro.",
		}, map[string][]string{"company": {"Nordlicht GmbH", "Harbour Lines", "Café Amélie", "Blue Door Ltd",
			"Ferrovia SpA"}}},
		{"security", "atlas", []string{
			"{person} reported that {secret} were visible in the {place}; they were changed within {n} minutes.",
			"Rotate {secret} every {n} days; the next time is {date}.",
			"The audit of {month} found {n} accounts without a second factor in the {place}.",
			"Do not copy {secret} into the {place}, because {reason}.",
		}, map[string][]string{
			"secret": {"the signing keys", "the database passwords", "the API tokens", "the recovery codes"},
			"place":  {"build log", "wiki", "chat", "staging system", "ticket"},
		}},
		{"ferry", "harbour", []string{
			"The ferry to {island} leaves at {time} from pier {n}; in {month} it does not run on {day}.",
			"With wind above {n} knots the captain cancels the crossing to {island}, and tickets count for {n} more days.",
			"{person} gets seasick on the way to {island}; sit in the middle, near window {n}.",
		}, map[string][]string{"island": {"Fårö", "Sylt", "Île d'Yeu", "Skye", "Hydra", "Miyajima"}}},
	}
}

// life has their private topics.
func life() []topic {
	return []topic{
		{"travel", "", []string{
			"{person} booked the hotel in {city} from {date}, room {big}, with breakfast.",
			"In {city} the museum is closed on {day}; tickets cost {n} euro.",
			"The train to {city} takes {n} hours; the quiet coach is number {n}.",
			"{person} liked the small restaurant behind the station of {city}: table {n}, by the window.",
		}, map[string][]string{"city": {"Lisbon", "Kyoto", "Ljubljana", "Tbilisi", "Oaxaca", "Ghent", "Valparaíso"}}},
		{"cooking", "", []string{
			"For {dish}: {n} grams of {thing}, bake for {n} minutes at {big} degrees.",
			"{person} must not eat {thing}; use {thing} in {dish} instead.",
			"{dish} tastes better with {thing} on the next day, says {person}.",
		}, map[string][]string{
			"dish":  {"the plum cake", "lentil soup", "ramen", "the Sunday bread", "moussaka", "apple strudel"},
			"thing": {"peanuts", "rye flour", "butter", "miso", "cinnamon", "chickpeas"},
		}},
		{"garden", "", []string{
			"Plant the {plant} in {month}, {n} centimetres apart, and water them at {time}.",
			"The {plant} by the fence had {n} flowers this year; {person} wants seeds.",
			"Cut the {plant} back before {date}, or it shades the beans.",
		}, map[string][]string{"plant": {"tomatoes", "roses", "beans", "lavender", "fig tree", "hop"}}},
		{"health", "", []string{
			"{person} is allergic to {drug}; the card is in drawer {n}.",
			"The appointment with Dr {doctor} is on {date} at {time}, second floor, room {big}.",
			"{drug}: {n} mg at {time}, never together with grapefruit.",
		}, map[string][]string{"drug": {"penicillin", "ibuprofen", "aspirin", "the fever syrup"},
			"doctor": {"Lindqvist", "Okafor", "Brandt", "Sato"}}},
		{"words", "", []string{
			"Der Müll wird {n} Mal im Jahr am {tag} abgeholt, Tonne {n}.",
			"京都の宿は夜{n}時に門が閉まります。部屋は{big}号室です。",
			"Le rendez-vous avec {person} est reporté au {n} du mois, à {time}.",
			"Встреча с командой в {time}, комната {big}.",
			"موعد الاجتماع {time} في الغرفة {big}.",
		}, map[string][]string{"tag": {"Dienstag", "Montag", "Freitag"}}},
	}
}
