package upkeep

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// AuditSentences describe actions. {on} is the user that it was done to, {user} the one in the details,
// {role} a role, {value} a value in the details, {object} the object. {a project} is the object, too: by name, if the
// name is known.
var AuditSentences = map[string]string{
	"user.add":    "added the user {on}{role}",
	"user.update": "changed the user {on}{role}",
	"user.delete": "deleted the user {on}",

	"user.password":   "set the password of {on}",
	"access.end":      "revoked access of {on}",
	"setting.change":  "changed the setting {object} to {value}",
	"identity.link":   "linked {on} with an account at the sign-in provider",
	"identity.unlink": "unlinked {on} from an account at the sign-in provider",

	"invitation.add":    "created a link for a new user{role}",
	"invitation.delete": "deleted a link for a new user",

	"token.add":    "created {a token} of {user}",
	"token.revoke": "revoked {a token} of {user}",
	"token.pause":  "paused {a token} of {user}",
	"token.resume": "resumed {a token} of {user}",

	"client.register":   "registered {an OAuth client}",
	"client.add":        "created {an OAuth client}",
	"client.secret":     "gave {an OAuth client} a new secret",
	"client.deactivate": "deactivated {an OAuth client}",

	"grant.add":    "allowed {an application} access for {user}",
	"grant.revoke": "revoked the access of {an application}",
	"grant.pause":  "paused the access of {an application} for {user}",
	"grant.resume": "resumed the access of {an application} for {user}",

	"member.add":      "invited {user} to {a project}{role}",
	"member.accept":   "accepted an invitation to {a project}",
	"member.update":   "changed the rights of {user} in {a project}{role}",
	"member.delete":   "removed {user} from {a project}",
	"member.withdraw": "withdrew an invitation to {a project}",

	"retention.set": "changed how long memories stay in {a collection or project}",

	"key.rotate": "replaced the key that signs access tokens",
	"key.change": "changed the key that encrypts the file",

	"user.key.erase": "erased the key of the deleted user {on}",
	"keys.change":    "changed the master key of the users' keys",
	"keys.backup":    "backed up the users' keys to a file",
	"keys.repair":    "repaired the users' keys after an older copy took their place",

	"export":     "exported data",
	"import":     "imported data",
	"backup":     "made a backup",
	"restore":    "restored a backup",
	"purge":      "cleaned up",
	"reindex":    "had all texts embedded again",
	"files.move": "moved the content of files", "files.adopt": "adopted the object storage",

	"configuration": "started a server with different limits or periods",

	"audit.cut":    "removed the oldest entries of this log",
	"audit.accept": "accepted entries of this log that do not match",
}

// AuditText describes the action of an entry, worded to follow the actor, with the name of its object if that is known.
// It returns an unknown action unchanged.
func AuditText(e souvenir.AuditEntry, nameOf func(id string) string, thing string) string {
	sentence, known := AuditSentences[e.Action]
	if !known {
		return "did " + e.Action
	}
	text := func(name string) string { value, _ := e.Details[name].(string); return value }
	role := cmp.Or(text("role"), text("to"))
	if role != "" {
		role = ", as " + role
	}
	value := "the default"
	if given := e.Details["value"]; given != nil {
		value = textview.Plain(given)
		if number, is := given.(float64); is {
			value = web.Thousands(int(number))
		}
	}
	place := thingPlace.FindString(sentence)
	named := strings.Trim(place, "{}")
	if _, noun, _ := strings.Cut(named, " "); thing != "" {
		if strings.Contains(noun, " or ") {
			noun = e.Kind
		}
		named = "the " + noun + " “" + textview.Clip(thing, 60) + "”"
	}
	return expand(sentence, map[string]string{
		cmp.Or(place, "{a thing}"): named,

		"{role}": role, "{value}": value, "{object}": textview.Clip(e.Object, 60),
		"{on}":   lazily(sentence, "{on}", func() string { return nameOf(e.Object) }),
		"{user}": lazily(sentence, "{user}", func() string { return nameOf(text("user")) }),
	})
}

// thingPlace is the place of an object in a sentence.
var thingPlace = regexp.MustCompile(`\{an? [^}]*\}`)

// expand puts values in their places, each once: names may look like places.
func expand(sentence string, values map[string]string) string {
	var pairs []string
	for place, value := range values {
		pairs = append(pairs, place, value)
	}
	return strings.NewReplacer(pairs...).Replace(sentence)
}

// lazily computes a value only if the sentence has its place.
func lazily(sentence, place string, value func() string) string {
	if !strings.Contains(sentence, place) {
		return ""
	}
	return value()
}

// auditNoUser names the actors of entries without a user.
var auditNoUser = map[souvenir.ActorVia]string{souvenir.ViaServer: "Someone who had not signed in",
	souvenir.ViaCommand: "The operator", souvenir.ViaUpkeep: "The server", "": "A program"}

// auditWay says how the actor reached the store.
func auditWay(a souvenir.Actor) string {
	way := map[souvenir.ActorVia]string{souvenir.ViaServer: "through the server", souvenir.ViaCommand: "by a command",
		souvenir.ViaUpkeep: "by itself", "": "with the store open"}[a.Via]
	switch a.Credential {
	case souvenir.CredentialToken:
		way += ", with a token"
	case souvenir.CredentialClient:
		way += ", with an application"
	case souvenir.CredentialSignIn:
		way += ", in a browser"
	}
	return way
}

// auditDetails are the details of an entry in one line, in the order of their names, without the values that the
// sentence has and without empty ones: no, none and 0.
func auditDetails(e souvenir.AuditEntry, nameOf func(id string) string) string {
	said := AuditSentences[e.Action]
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		value, shown := e.Details[name], strings.ReplaceAll(name, "_", " ")
		id, isText := value.(string)
		switch {
		case strings.Contains(said, "{"+name+"}"), name == "to" && strings.Contains(said, "{role}"),
			name == "status" && value == "invited":
		case value == nil, value == "", value == false, value == float64(0):
		case value == true:
			parts = append(parts, shown)
		case isText && (name == "user" || name == "owner"):
			parts = append(parts, shown+": "+nameOf(id))
		default:
			if text := textview.Plain(value); text != "" {
				parts = append(parts, shown+": "+text)
			}
		}
	}
	return textview.Clip(strings.Join(parts, "; "), auditMostValues)
}
