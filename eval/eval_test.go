package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/ranking"
)

// tiny is a set of two conversations. The second has the answer to the first one's last question, which must not be
// found there.
const tiny = `{"type":"corpus","conv":"a","dia_id":"1","speaker":"Ann","session":1,"session_date":"8 May",` +
	`"text":"My cat is called Tom."}
{"type":"corpus","conv":"a","dia_id":"2","speaker":"Ben","session":1,"session_date":"8 May",` +
	`"text":"We moved to Lisbon.","caption":"a harbour"}
{"type":"corpus","conv":"b","dia_id":"1","speaker":"","text":"The engine has twelve cylinders."}
{"type":"query","qid":"q1","conv":"a","cat_name":"pets","question":"What is the cat called?","evidence":["1","1"]}
{"type":"query","qid":"q2","conv":"a","cat_name":"places","question":"Who has a picture of a harbour?","evidence":["2"]}
{"type":"query","qid":"q3","conv":"a","cat_name":"none",` +
	`"question":"How many cylinders has the engine?","evidence":[],"unanswerable":true}
{"type":"query","qid":"q4","conv":"a","cat_name":"pets","question":"unknown whether it has an answer","evidence":[]}
`

func runOn(t *testing.T, text string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := command(t.Context(), append(append([]string{"run"}, args...), path), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestASetIsStoredAndAskedByCollection(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record.jsonl")
	for _, how := range []string{"hybrid", "text", "vector", "hybrid,direct", "hybrid,disk", "hybrid,late=0", "alone"} {
		out := runOn(t, tiny, "-setting", how, "-record", record)
		answers, err := readRecord(record)
		if err != nil || len(answers) != 3 {
			t.Fatalf("%s: %d answers, error %v; want 3: the question that may have an answer is left out",
				how, len(answers), err)
		}
		if got := answers[0]; got.recall(1) != 1 || len(got.Ranks) != 1 || got.Best.Text == 0 && how != "vector" {
			t.Errorf("%s: the cat: got %+v; want rank 1, once", how, got)
		}
		if got := answers[1]; got.recall(1) != 1 {
			t.Errorf("%s: the harbour, which is in a caption: got %+v; want rank 1", how, got)
		}
		if got := answers[2]; len(got.Ranks) != 0 || len(got.Found) > 2 {
			t.Errorf("%s: the engine: got %+v; want only memories of the collection, and none that answers", how, got)
		}
		for _, want := range []string{"| pets | 1 | 100.00 |", "| all | 2 | 100.00 |", "nothing answers 0."} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: got the table\n%s\nwant one that contains %q", how, out, want)
			}
		}
	}
}

func TestAPrintedSetIsReadAsItWas(t *testing.T) {
	var out bytes.Buffer
	if err := command(t.Context(), []string{"print", "own:100"}, &out); err != nil {
		t.Fatal(err)
	}
	got, err := parseSet(&out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := readSet("own:100")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.questions) != 300 || !reflect.DeepEqual(got.memories, want.memories) {
		t.Errorf("%d questions, memories equal: %v, want 300 questions and memories %v", len(got.questions),
			reflect.DeepEqual(got.memories, want.memories), want.memories)
	}
}

func TestBadSetsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"line 1":                     "{",
		"the type \"x\"":             `{"type":"x"}`,
		"of which there are no memo": `{"type":"query","conv":"a","qid":"q","evidence":["1"]}`,
	} {
		if _, err := parseSet(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got the error %v; want it to say %q", text, err, name)
		}
	}
	for setting, want := range map[string]string{"hybrid,fast": `"fast"`, "lat=1": `"lat"`, "late=x": `"x"`} {
		if _, err := parseSetting(setting); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the setting %q: got the error %v; want it to name %s", setting, err, want)
		}
	}
}

func TestSettingsChooseWeights(t *testing.T) {
	s, err := parseSetting("it:hybrid,late=0.5,answer=0")
	want := ranking.Default
	want.Late, want.Answer = 0.5, 0
	if err != nil || s.weights != want || s.name != "it" {
		t.Errorf("got %q with %+v, error %v; want \"it\" with %+v", s.name, s.weights, err, want)
	}
	if s, err = parseSetting("alone"); err != nil || s.weights.Late != ranking.Default.Late || s.weights.Around != 0 {
		t.Errorf("without conversations: got %+v, error %v, want no error, late %v and around 0", s.weights, err,
			ranking.Default.Late)
	}
}

func TestMetrics(t *testing.T) {
	a := answer{Ranks: []int{0, 2, 11}}
	for name, want := range map[string]float64{
		"recall@1": 0, "recall@5": 1. / 3, "recall@10": 1. / 3, "recall@20": 2. / 3, "MRR": 0.5,
		"nDCG@10": (1 / math.Log2(3)) / (1 + 1/math.Log2(3) + 0.5),
	} {
		found := false
		for _, m := range metrics {
			if m.name == name {
				found = true
				if got := m.of(a); math.Abs(got-want) > 1e-12 {
					t.Errorf("%s of ranks %v: got %v, want %v", name, a.Ranks, got, want)
				}
			}
		}
		if !found {
			t.Errorf("got no metric %s, want one", name)
		}
	}
}

func TestIntervalsAreSeededAndCoverTheMean(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64(i%2))
	}
	e := bootstrap(values)
	if e != bootstrap(values) {
		t.Error("two bootstraps of the same values differ, want the same")
	}
	// The mean of 100 coin tosses has a standard deviation of 0.05.
	if e.mean != 0.5 || math.Abs(e.low-0.4) > 0.02 || math.Abs(e.high-0.6) > 0.02 {
		t.Errorf("got %+v; want 0.5 with an interval of about 0.4 to 0.6", e)
	}
}

func TestComparisonCountsWonLostAndTied(t *testing.T) {
	run := func(setting string, ranks ...int) []answer {
		var all []answer
		for i, r := range ranks {
			all = append(all, answer{Set: "s", Setting: setting, QID: string(rune('a' + i)),
				Question: "question " + string(rune('a'+i)),
				Ranks:    []int{r}})
		}
		return all
	}
	dir := t.TempDir()
	for name, answers := range map[string][]answer{"a": run("old", 1, 0, 3, 20), "b": run("new", 1, 2, 0, 0)} {
		if err := writeRecord(filepath.Join(dir, name), answers); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	err := command(t.Context(), []string{"compare", filepath.Join(dir, "a"), filepath.Join(dir, "b")}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### s: new against old", "| all | recall@10 | 50.00 | 50.00 | +0.00 |", "| 1 | 1 | 2 |",
		"- b () [2], before [0]: question b", "- c () [0], before [3]: question c",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got the comparison\n%s\nwant one that contains %q", out.String(), want)
		}
	}
}

// TestComparisonPairsSettings compares records with two settings each, and records without a common one.
func TestComparisonPairsSettings(t *testing.T) {
	write := func(name string, settings ...string) string {
		path := filepath.Join(t.TempDir(), name)
		var answers []answer
		for i, setting := range settings {
			answers = append(answers, answer{Set: "s", Setting: setting, QID: "q", Question: "what?", Ranks: []int{i + 1}})
		}
		if err := writeRecord(path, answers); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := write("before", "x", "y")
	var out bytes.Buffer
	if err := command(t.Context(), []string{"compare", before, write("after", "y", "z")}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "y against y") || strings.Count(out.String(), "### ") != 1 ||
		!strings.Contains(out.String(), "- q () [1], before [2]") {
		t.Errorf("got\n%s\nwant y alone to be compared, with its own ranks", out.String())
	}
	if err := command(t.Context(), []string{"compare", before, write("other", "z")}, &out); err == nil {
		t.Error("records without a common setting: no error, want an error")
	}
}

func TestChartIsWellFormedAndFollowsTheColourScheme(t *testing.T) {
	dir := t.TempDir()
	record, chart := filepath.Join(dir, "record.jsonl"), filepath.Join(dir, "chart.svg")
	runOn(t, strings.ReplaceAll(tiny, `"places"`, `"adversarial"`),
		"-setting", "hybrid", "-setting", "vector", "-record", record)
	if err := command(t.Context(), []string{"chart", "-o", chart, record}, io.Discard); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	for lines := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := lines.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", ">hybrid<", ">vector, adversarial<", ">100.0<"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("got the chart\n%s\nwant one that contains %s", svg, want)
		}
	}
}

func TestSpearman(t *testing.T) {
	for _, test := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{10, 20, 30, 1000}, 1},
		{[]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{[]float64{1, 2, 2, 4}, []float64{1, 3, 2, 4}, 4.5 / math.Sqrt(4.5*5)}, // ties share the mean of their ranks
	} {
		if got := spearman(test.a, test.b); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("spearman(%v, %v): got %v, want %v", test.a, test.b, got, test.want)
		}
	}
}
