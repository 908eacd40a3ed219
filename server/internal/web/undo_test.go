package web

import (
	"context"
	"testing"
	"time"
)

// A step can be undone once, in time, and only by its user.
func TestStepsAreUndoneByTheUserWhoTookThem(t *testing.T) {
	var u undo
	back := 0
	step := Step{user: "ada", Text: "One memory is deleted.", until: time.Now().Add(time.Minute),
		Back: func(context.Context) error { back++; return nil }}
	name := u.remember(step)
	if _, ok := u.step("sam", name, true); ok {
		t.Error("another user can undo it, want it refused")
	}
	if _, ok := u.step("ada", name+"x", true); ok {
		t.Error("a wrong name undoes something, want it refused")
	}
	for range 2 { // reading does not use it up
		if got, ok := u.step("ada", name, false); !ok || got.Text != step.Text {
			t.Errorf("got %v %+v, want the step with text %v", ok, got, step.Text)
		}
	}
	if _, ok := u.step("ada", name, true); !ok {
		t.Error("it cannot be undone, want it undone")
	}
	if _, ok := u.step("ada", name, true); ok {
		t.Error("it can be undone twice, want once")
	}
	step.until = time.Now().Add(-time.Second)
	if _, ok := u.step("ada", u.remember(step), false); ok {
		t.Error("it can be undone after its time, want it refused")
	}
}

// Only a limited number of steps is remembered: the latest.
func TestStepsAreForgottenInTheirOrder(t *testing.T) {
	var u undo
	var names []string
	for range maxUndo + 10 {
		names = append(names, u.remember(Step{user: "ada", until: time.Now().Add(time.Minute)}))
		if len(names)%3 == 0 {
			u.step("ada", names[len(names)-1], true)
		}
	}
	for range maxUndo {
		names = append(names, u.remember(Step{user: "ada", until: time.Now().Add(time.Minute)}))
	}
	if len(u.steps) != maxUndo {
		t.Errorf("%d steps are remembered, want %v", len(u.steps), maxUndo)
	}
	if _, ok := u.step("ada", names[0], false); ok {
		t.Error("the oldest is still there, want it forgotten")
	}
	if _, ok := u.step("ada", names[len(names)-maxUndo], false); !ok {
		t.Error("one of the latest is gone, want it kept")
	}
	if len(u.order) > 2*maxUndo {
		t.Errorf("%d names are kept, want at most %v", len(u.order), 2*maxUndo)
	}
}

// Large steps, such as deletions of large memories, are forgotten sooner.
func TestStepsHoldALimitedNumberOfBytes(t *testing.T) {
	var u undo
	step := Step{user: "ada", until: time.Now().Add(time.Minute), Bytes: maxUndoBytes/2 - 1}
	first, second := u.remember(step), u.remember(step)
	third := u.remember(step)
	for name, want := range map[string]bool{first: false, second: true, third: true} {
		if _, ok := u.step("ada", name, true); ok != want {
			t.Errorf("remembered: %v, want %v", ok, want)
		}
	}
	if u.bytes != 0 {
		t.Errorf("%d bytes are held by none, want 0", u.bytes)
	}
	step.Bytes = maxUndoBytes + 1
	if _, ok := u.step("ada", u.remember(step), false); ok || u.bytes != 0 {
		t.Errorf("one that is too large: got remembered %v and %d bytes, want false and 0", ok, u.bytes)
	}
}

func TestNoticesComeFromTheAddress(t *testing.T) {
	for path, want := range map[string]string{
		"/profile":                         "/profile?done=undone",
		"/memories?q=a+b&done=x&undo=y":    "/memories?done=undone&q=a+b",
		"/projects/u/%22%3E%3F%23%2F/todo": "/projects/u/%22%3E%3F%23%2F/todo?done=undone",
	} {
		if got := (&Site{}).Done(path, "undone"); string(got) != want {
			t.Errorf("%s becomes %s, want %s", path, got, want)
		}
	}
}

// A step that cannot be undone now, such as on a full disk, is kept. A step that is too large evicts no others.
func TestStepsThatFailAreKept(t *testing.T) {
	var u undo
	step := Step{user: "ada", until: time.Now().Add(time.Minute), Bytes: 10}
	name := u.remember(step)
	taken, ok := u.step("ada", name, true)
	if !ok {
		t.Fatal("it cannot be undone, want it undone")
	}
	u.keep(name, taken)
	u.remember(Step{user: "sam", until: time.Now().Add(time.Minute), Bytes: maxUndoBytes + 1})
	if _, ok := u.step("ada", name, false); !ok || u.bytes != 10 || len(u.order) != 1 {
		t.Errorf("kept %v, with %d bytes and %d names, want true, 10 and 1", ok, u.bytes, len(u.order))
	}
}
