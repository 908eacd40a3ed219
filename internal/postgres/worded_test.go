package postgres

import "testing"

// Such an error has another code on the coordinator, XX000.
func TestErrorsOfWorkersAreKnownByTheirTexts(t *testing.T) {
	for message, want := range map[string]string{
		"could not serialize access due to read/write dependencies among transactions": codeSerialization,
		"could not serialize access due to concurrent update":                          codeSerialization,
		"deadlock detected": codeDeadlock,
		"server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally": codeGone,
		"connection to the remote node has been closed":                                                     "",
	} {
		if got := worded(message); got != want {
			t.Errorf("%s: got the code %q, want %q", message, got, want)
		}
	}
}
