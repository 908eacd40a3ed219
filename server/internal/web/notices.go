package web

import (
	"net/url"
)

// NoticeParameter is the parameter of a page's address with the outcome of the form that led there. It selects a
// text of notices, and contains none: a link cannot put text on a page.
const NoticeParameter = "done"

var notices = map[string]string{
	"restored":              "It is restored.",
	"erased":                "It is erased for good.",
	"emptied":               "The trash is empty, but for what others own.",
	"undone":                "That is taken back.",
	"nothing-to-merge":      "Only one of them is left: there is nothing to merge any more.",
	"nothing-changed":       "Nothing had to be changed: what you chose was so already.",
	"project":               "The project is there. Say below what it is about, or let an agent store into it.",
	"project-deleted":       "The project is deleted, with its memories.",
	"project-trashed":       "The project is deleted, with its memories. It can be restored from the trash.",
	"accepted":              "You are a member of this project. Your agents can use it from now on.",
	"declined":              "The invitation is declined.",
	"blocked":               "The invitation is declined, and its sender is blocked.",
	"unblocked":             "They can send you invitations again.",
	"left":                  "You left the project. What you stored there stays with it.",
	"ticked":                "The to-do is saved.",
	"memory-unchanged":      "Nothing was different, so nothing was changed.",
	"unchanged":             "The text is as it was: there was nothing to save.",
	"signed-out":            "You are signed out.",
	"signed-out-everywhere": "You are signed out everywhere.",
	"profile":               "Your profile is saved.",
	"password":              "Your password is changed. Your other browsers are signed out. Tokens and applications go on, and can be ended below.",
	"password-grants":       "Your password is changed. Your other browsers are signed out and your applications disconnected. Tokens go on.",
	"password-tokens":       "Your password is changed. Your other browsers are signed out and your tokens revoked. Applications go on.",
	"password-all":          "Your password is changed. Your other browsers are signed out, your applications disconnected and your tokens revoked.",
	"linked":                "The account there is linked. You can sign in with it from now on.",
	"unlinked":              "You cannot sign in with that account any more. Browsers that are signed in stay so.",
	"session":               "That browser is signed out.",
	"sessions":              "Your other browsers are signed out.",
	"token":                 "The token is not valid any more.",
	"stopped":               "It is being stopped. What it has done so far stays.",
	"client":                "The client is deactivated. Whoever had let it in is cut off.",
	"application":           "The application is not connected any more.",
	"user-disabled":         "The user is disabled. All sign-ins, tokens and applications of theirs have ended.",
	"user-enabled":          "The user may sign in again.",
	"user-admin":            "The user is an admin now.",
	"user-user":             "The user is no admin any more.",
	"file":                  "The file is stored.",
	"files":                 "The files are stored.",
	"file-deleted":          "The file is deleted.",
	"file-trashed":          "The file is deleted. It can be restored from the trash.",
	"invitation":            "The invitation is taken back. Its link does not work any more.",
}

// Done redirects from a form to a page that reports its outcome.
func (s *Site) Done(path, notice string) Redirect {
	return Redirect(s.Path(withNotice(path, NoticeParameter, notice)))
}

// withNotice returns the address of a page with a new notice and without the former one.
func withNotice(path, parameter, value string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path // paths are this server's own
	}
	query := u.Query()
	query.Del(NoticeParameter)
	query.Del(undoParameter)
	query.Set(parameter, value)
	u.RawQuery = query.Encode()
	return u.String()
}
