package web

import (
	"net/url"
)

// NoticeParameter is the parameter of a page's address with the outcome of the form that led there. It selects a
// text of notices, and contains none: a link cannot put text on a page.
const NoticeParameter = "done"

var notices = map[string]string{
	"erased":                "Erased permanently.",
	"emptied":               "The trash is empty, except for items that others own.",
	"undone":                "Undone.",
	"nothing-to-merge":      "Only one of them is left, so there is nothing to merge.",
	"nothing-changed":       "No changes.",
	"project":               "Project created. Describe it below, or let an agent store memories in it.",
	"accepted":              "You are a member of this project. Your agents can now use it.",
	"declined":              "Invitation declined.",
	"blocked":               "Invitation declined, and its sender blocked.",
	"unblocked":             "They can send you invitations again.",
	"left":                  "You left the project. What you stored there stays with it.",
	"ticked":                "To-do saved.",
	"memory-unchanged":      "No changes.",
	"unchanged":             "No changes.",
	"signed-out":            "You are signed out.",
	"signed-out-everywhere": "You are signed out everywhere.",
	"profile":               "Profile saved.",
	"password": "Password changed. Your other browsers are signed out. Tokens and applications stay " +
		"active; you can revoke them below.",
	"password-grants": "Password changed. Your other browsers are signed out and your applications disconnected. Tokens " +
		"stay active.",
	"password-tokens": "Password changed. Your other browsers are signed out and your tokens revoked. Applications stay " +
		"connected.",
	"password-all": "Password changed. Your other browsers are signed out, your applications disconnected and your " +
		"tokens revoked.",
	"linked":        "Account linked. You can now sign in with it.",
	"unlinked":      "Account unlinked. You can no longer sign in with it; browsers that are signed in stay signed in.",
	"session":       "That browser is signed out.",
	"sessions":      "Your other browsers are signed out.",
	"token":         "Token revoked.",
	"paused":        "Paused. It has no access until you resume it, and keeps its permissions.",
	"resumed":       "Resumed.",
	"stopped":       "Stopping. Changes made so far stay.",
	"client":        "Client deactivated. It has lost access to all accounts.",
	"application":   "Access revoked.",
	"user-disabled": "User disabled. All their sessions, tokens and applications are revoked.",
	"user-enabled":  "The user can sign in again.",
	"user-admin":    "The user is now an admin.",
	"user-user":     "The user is no longer an admin.",
	"file":          "File uploaded.",
	"files":         "Files uploaded.",
	"invitation":    "Invitation revoked. Its link no longer works.",
}

// Done redirects from a form to a page that reports its outcome.
func (s *Site) Done(path, notice string) Redirect {
	return Redirect(s.Path(withNotice(path, NoticeParameter, notice)))
}

// withNotice returns the address of a page with a new notice, or with none, and without the former one.
func withNotice(path, parameter, value string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path // paths are this server's own
	}
	query := u.Query()
	query.Del(NoticeParameter)
	query.Del(undoParameter)
	if parameter != "" {
		query.Set(parameter, value)
	}
	u.RawQuery = query.Encode()
	return u.String()
}
