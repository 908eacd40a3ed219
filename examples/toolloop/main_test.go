package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheModelRemembersFromOneConversationToTheNext(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatal(err)
	}
	want := `you:   Please remember: we release on Thursdays, never on Fridays.
call:  memory {"action":"get-context","query":"Please remember: we release on Thursdays, never on Fridays."}
call:  memory {"action":"store","collection_name":"team-note","content":"we release on Thursdays, never on ` +
		`Fridays.","tags":"release, agreement"}
error: collection_name "team-note" does not exist; did you mean "team-notes"? (create_collection creates a new one)
call:  memory {"action":"store","collection_name":"team-notes","content":"we release on Thursdays, never on ` +
		`Fridays.","tags":"release, agreement"}
model: I will remember that.
you:   On which day do we release?
call:  memory {"action":"get-context","query":"On which day do we release?"}
call:  memory {"action":"search","limit":"1","query":"On which day do we release?"}
model: The team-notes say: we release on Thursdays, never on Fridays.
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}

func TestAModelThatOnlyCallsToolsIsStopped(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", `+
			`"function": {"name": "list_collections", "arguments": ""}}]}}]}`)
	}))
	defer server.Close()
	var out bytes.Buffer
	err := run(t.Context(), []string{server.URL}, &out)
	if err == nil || !strings.Contains(err.Error(), "10 times") || strings.Count(out.String(), "call:") != mostRounds {
		t.Errorf("it ends with %v after %d calls, want an error with \"10 times\" after %d calls\n%s", err,
			strings.Count(out.String(), "call:"), mostRounds, out.String())
	}
}

func TestAModelThatFailsEndsTheProgram(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"status":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) },
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"no choices": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
	} {
		server := httptest.NewServer(handler)
		if err := run(t.Context(), []string{server.URL}, &bytes.Buffer{}); err == nil ||
			!strings.Contains(err.Error(), "model") {
			t.Errorf(`%s: it ends with %v, want an error and "model" in the error`, name, err)
		}
		server.Close()
	}
}

func TestTheFakeChecksTheFormOfRequests(t *testing.T) {
	good := request{Messages: []message{{Role: "system"}, {Role: "user"}}, Tools: functions()}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*request){
		"no tools": func(r *request) { r.Tools = nil },
		"no schema": func(r *request) {
			r.Tools = []function{{Type: "function", Function: declaration{"x", "x", []byte(`{}`)}}}
		},
		"no type":             func(r *request) { r.Tools = []function{{Function: r.Tools[0].Function}} },
		"a result of no call": func(r *request) { r.Messages = append(r.Messages, message{Role: "tool", ToolCallID: "1"}) },
		"a call with no result": func(r *request) {
			r.Messages = append(r.Messages, message{Role: "assistant", ToolCalls: []toolCall{{ID: "1"}}}, message{Role: "user"})
		},
	} {
		bad := request{Messages: append([]message{}, good.Messages...), Tools: good.Tools}
		change(&bad)
		if bad.check() == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}
