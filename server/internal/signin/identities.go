package signin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// userAt returns the user to whom the provider's identity is linked, or creates one if the operator allows that.
func (s *Service) userAt(ctx context.Context, who asserted) (souvenir.User, error) {
	user, err := s.store.Accounts().GetUserByIdentity(ctx, s.provider.Issuer, who.Subject)
	if !errors.Is(err, souvenir.ErrNotFound) {
		return user, err
	}
	stranger := &providerRefusal{cause: errors.New("subject " + failure.Quote(who.Subject) + " is linked to no user"),
		message: s.provider.Name + " knows you, but your account there is not linked to an account here. Sign in with your " +
			"password and link it in your profile, or ask an admin of this server for an invitation"}
	if !s.provider.creates(who) {
		return user, stranger
	}
	// The first account is an admin's, created with the link that the server has printed; another account before it
	// would void that link.
	if made, err := s.store.Accounts().UserPage(ctx, souvenir.UserQuery{Accounts: true, Limit: 1}); err != nil ||
		made.Total == 0 {
		if err == nil {
			stranger.message = "This server is not set up yet: create the first account with the link that it printed when it " +
				"started"
			err = stranger
		}
		return user, err
	}
	// One at a time: a write that conflicts with another may fail before the other one can be read.
	select {
	case s.provider.creating <- struct{}{}:
		defer func() { <-s.provider.creating }()
	case <-ctx.Done():
		return user, ctx.Err()
	}
	if user, err = s.store.Accounts().GetUserByIdentity(ctx, s.provider.Issuer, who.Subject); !errors.Is(err,
		souvenir.ErrNotFound) {
		return user, err // created meanwhile
	}
	return s.createUser(ctx, who)
}

// creates reports whether an unknown person gets an account.
func (p *provider) creates(who asserted) bool {
	at := strings.LastIndexByte(who.Email, '@')
	if at < 1 || !who.Verified {
		return false
	}
	return slices.ContainsFunc(p.CreateDomains,
		func(domain string) bool { return lowerASCII(domain) == lowerASCII(who.Email[at+1:]) })
}

// lowerASCII leaves other letters unchanged: some of them become ASCII in lower case (K, the Kelvin sign).
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// createUser creates an account for a person at the provider, under a free name.
func (s *Service) createUser(ctx context.Context, who asserted) (souvenir.User, error) {
	const numbered = 20
	local := who.Email[:strings.LastIndexByte(who.Email, '@')]
	for _, name := range []string{who.Username, local, "user"} {
		for n := 1; n <= numbered+1; n++ {
			own := name
			switch {
			case n > numbered:
				own += "-" + strings.ToLower(rand.Text()[:8])
			case n > 1:
				own += "-" + strconv.Itoa(n)
			}
			user, err := s.store.Accounts().AddUser(ctx, souvenir.NewUser{Name: own, Email: who.Email,
				Identity: souvenir.Identity{Issuer: s.provider.Issuer, Subject: who.Subject, Email: who.Email}})
			var known *souvenir.Error
			switch {
			case err == nil:
				s.log.InfoContext(ctx, "created an account for a user of the identity provider", "user", user.ID, "name",
					user.Name)
				return user, nil
			case !errors.As(err, &known):
				return user, err
			case known.Kind == souvenir.KindConflict && known.Argument == "subject": // another process was faster
				return s.store.Accounts().GetUserByIdentity(ctx, s.provider.Issuer, who.Subject)
			case known.Kind == souvenir.KindConflict && known.Argument == "name":
				continue
			case known.Argument == "name":
				n = numbered + 1 // invalid as a name
			default:
				return user, &providerRefusal{message: s.provider.Name +
					" sent details about you that this server cannot store. Ask an admin of this server for an invitation", cause: err}
			}
		}
	}
	return souvenir.User{}, errors.New("no free name was found for a new user")
}

// ownIdentity is the user's identity at a provider.
type ownIdentity struct {
	souvenir.Identity
	Provider string // its name; the issuer, if it is no longer configured
	Usable   bool
}

// identitiesPart is the profile's part about external providers.
type identitiesPart struct {
	Provider   string // name of the one that can be linked; empty: none
	Link       web.Form
	Identities []ownIdentity
}

// identitiesPart loads the profile's part about external providers.
func (s *Service) identitiesPart(ctx context.Context, c request.Caller) (identitiesPart, error) {
	var part identitiesPart
	if s.provider != nil {
		part.Provider = s.provider.Name
	}
	if c.User.HasPassword {
		part.Link.Fields = []web.Field{{Name: "password", ElementID: "link-password", Label: "Your password",
			Type: "password", Autocomplete: "current-password",
			Hint: "To confirm it is you: the linked account can then open yours."}}
	}
	identities, err := c.Store.Accounts().Identities(ctx, "")
	for _, identity := range identities {
		own := ownIdentity{Identity: identity, Provider: identity.Issuer}
		if s.provider != nil && identity.Issuer == s.provider.Issuer {
			own.Provider, own.Usable = s.provider.Name, true
		}
		part.Identities = append(part.Identities, own)
	}
	return part, err
}

// beginLink sends a user to the provider, to link the account there to the one here. It asks for the password, as a
// password change does: an unattended browser must not be enough for permanent access.
func (s *Service) beginLink(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, p, data, err := s.profileForm(w, r, c)
	if err != nil {
		return nil, err
	}
	if !c.User.HasPassword {
		if asks, err := s.Confirm(w, r, c, values, "/profile"); asks != nil || err != nil {
			return asks, err
		}
	} else {
		if _, _, err := s.checkPassword(w, r, c.User.Name, values.Get("password")); err != nil {
			if errors.Is(err, souvenir.ErrUnauthenticated) {
				err = &souvenir.Error{Kind: souvenir.KindUnauthenticated, Argument: "password",
					Message: "password is not your current password"}
			}
			data.External.Link.Refuse(err)
			return web.Again(p, err)
		}
	}
	return s.toProvider(w, r, loginState{Session: c.SignInID})
}

// link links the identity with which a user returns, in the browser and session that began it.
func (s *Service) link(r *http.Request, j loginState, who asserted) (any, error) {
	c, err := s.RequirePerson(r, route.Person)
	switch {
	case errors.Is(err, web.ErrSignIn) || err == nil && c.SignInID != j.Session:
		return nil, &failure.Error{Status: http.StatusForbidden,
			Message: "you were signed out, or another user has signed in here meanwhile, so nothing was linked; start again"}
	case err != nil:
		return nil, err
	}
	request.Of(r.Context()).Caller = c
	n := souvenir.NewIdentity{Issuer: s.provider.Issuer, Subject: who.Subject, Email: who.Email}
	_, err = c.Store.Accounts().LinkIdentity(r.Context(), n)
	var known *souvenir.Error
	if errors.As(err, &known) && known.Argument == "email" {
		n.Email = ""
		_, err = c.Store.Accounts().LinkIdentity(r.Context(), n)
	}
	if errors.Is(err, souvenir.ErrConflict) {
		return s.refuseProvider(r, j,
			&providerRefusal{message: "That account at " + s.provider.Name +
				" is linked to another user here, who must unlink it first", cause: err})
	}
	if err != nil {
		return nil, err
	}
	return s.site.Done("/profile", "linked"), nil
}

// unlink removes a linked identity, unless the user could not sign in without it.
func (s *Service) unlink(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, p, data, err := s.profileForm(w, r, c)
	if err != nil {
		return nil, err
	}
	issuer, subject := values.Get("issuer"), values.Get("subject")
	others := slices.ContainsFunc(data.External.Identities, func(i ownIdentity) bool {
		return i.Usable && (i.Issuer != issuer || i.Subject != subject)
	})
	err = &souvenir.Error{Kind: souvenir.KindConflict, Message: "this is your only way to sign in; set a password first"}
	if others || c.User.HasPassword {
		err = c.Store.Accounts().UnlinkIdentity(r.Context(), "", issuer, subject)
	}
	if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		data.External.Link.Refuse(err)
		return web.Again(p, err)
	}
	return s.site.Done("/profile", "unlinked"), nil
}

// looseBool is a boolean that some providers write as a string.
type looseBool bool

// UnmarshalJSON reads true and "true" as true, and everything else as false.
func (t *looseBool) UnmarshalJSON(data []byte) error {
	*t = string(data) == "true" || string(data) == `"true"`
	return nil
}

// textList is a list of strings, or one string, as some providers write a list of one.
type textList []string

// UnmarshalJSON accepts both; anything else is an empty list.
func (l *textList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = textList{one}
		return nil
	}
	var all []string
	if json.Unmarshal(data, &all) == nil {
		*l = all
	}
	return nil
}
