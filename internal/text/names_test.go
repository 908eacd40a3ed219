package text

import "testing"

func TestNamesAreFoundAsWholeWords(t *testing.T) {
	for task, want := range map[string]bool{
		"auth": true, "fix Auth now": true, "(AUTH)": true, "auth/login": true, "auth-tests": true, "author": false,
		"oauth":          false,
		"oauth and auth": true, "auth2": false, "my_auth": false, "": false, "日auth": false,
	} {
		if got := HasName(task, "auth"); got != want {
			t.Errorf("%q names auth: %v, want %v", task, got, want)
		}
	}
	if !HasName("the user login page", "User Login") || HasName("user", "") {
		t.Errorf("got %v for a name of several words and %v for none, want true and false", HasName("the user login "+
			"page", "User Login"), HasName("user", ""))
	}
}
