package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/netaddr"
	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// A client may be identified by the URL of a document in which it describes itself (OAuth Client ID Metadata
// Document, draft-ietf-oauth-client-id-metadata-document). Anyone can name any URL here, so fetching one is
// limited: package netaddr limits the addresses, and the constants below limit size, rate and caching.
const (
	documentType    = "application/json"
	maxDocument     = 64 << 10 // bytes; the store accepts 16 KiB of it
	documentTimeout = 5 * time.Second

	// How long a document is cached: as its response says, within these bounds.
	documentLifeLeast   = 5 * time.Minute // longer than a consent takes
	documentLifeDefault = time.Hour
	documentLifeMost    = 24 * time.Hour

	failureLife    = time.Minute // how long a document is not fetched again after a failure
	failuresKept   = 1_000
	documentsAtAll = 16 // concurrent fetches

	// How many documents are fetched for one address, and from one host: a burst, then one per interval.
	documentsBurst    = 20
	documentsInterval = 3 * time.Second
)

// clientDocuments fetches the documents of clients.
type clientDocuments struct {
	http      *http.Client
	addresses *ratelimit.Limiter // by requesting address
	hosts     *ratelimit.Limiter // by fetched host
	slots     chan struct{}

	mu       sync.Mutex
	fetching map[string]*fetching // by URL
	failed   ratelimit.Recent     // of failedDocument, by URL
}

// fetching is a fetch that several requests may wait for.
type fetching struct {
	done   chan struct{} // closed at the end
	client souvenir.Client
	err    error
}

type failedDocument struct {
	err   error
	until time.Time
}

// newClientDocuments returns a fetcher with the given client, or, for nil, with one that reaches public addresses
// only.
func newClientDocuments(given *http.Client) *clientDocuments {
	own := http.Client{}
	if given != nil {
		own = *given
	} else {
		own.Transport = netaddr.PublicTransport()
	}
	if own.Timeout <= 0 || own.Timeout > documentTimeout {
		own.Timeout = documentTimeout
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Jar = nil
	return &clientDocuments{
		http:      &own,
		addresses: ratelimit.New(documentsBurst, documentsInterval),
		hosts:     ratelimit.New(documentsBurst, documentsInterval),
		slots:     make(chan struct{}, documentsAtAll),
		fetching:  map[string]*fetching{},
		failed:    ratelimit.Recent{Most: failuresKept},
	}
}

// client returns the active client with an id: a registered one, one that a user created, or one described by the
// document at that URL, which is fetched if need be. Its errors have the code invalid_client, and must be shown to
// the user, never sent by a redirect.
func (s *Server) client(ctx context.Context, clientID string) (souvenir.Client, error) {
	c, err := s.store.Accounts().GetClient(ctx, clientID)
	switch {
	case err == nil && !c.Active:
		return souvenir.Client{}, invalidClient("client_id " + failure.Quote(clientID) + " has been deactivated")
	case err == nil && (c.Kind != souvenir.ClientDocument || time.Now().Before(c.ExpiresAt)):
		return c, nil
	case err != nil && !errors.Is(err, souvenir.ErrNotFound):
		return souvenir.Client{}, err
	case !strings.HasPrefix(clientID, "https://"):
		return souvenir.Client{}, invalidClient("client_id " + failure.Quote(clientID) +
			" is unknown; the application has to register again")
	}
	if err := souvenir.CheckDocumentURL(clientID); err != nil {
		return souvenir.Client{}, err
	}
	return s.fetchClient(ctx, clientID, err == nil)
}

// invalidClient is the error for an unusable client.
func invalidClient(why string) error {
	message := "Invalid client: " + why
	return &souvenir.Error{Kind: souvenir.KindUnauthenticated, Argument: "client_id", Message: message,
		Err: &souvenir.OAuthError{Code: souvenir.OAuthInvalidClient, Description: fault.OAuthDescription(message)}}
}

// fetchClient fetches a document and stores its contents. Concurrent requests for the same document share one
// fetch. Known means that it has been fetched before.
func (s *Server) fetchClient(ctx context.Context, id string, known bool) (souvenir.Client, error) {
	d := s.documents
	d.mu.Lock()
	if failed, ok := ratelimit.Get[failedDocument](&d.failed, id); ok && time.Now().Before(failed.until) {
		d.mu.Unlock()
		return souvenir.Client{}, failed.err
	}
	f, underWay := d.fetching[id]
	if !underWay {
		if err := d.mayFetch(ctx, id, known); err != nil {
			d.mu.Unlock()
			return souvenir.Client{}, err
		}
		f = &fetching{done: make(chan struct{})}
		d.fetching[id] = f
	}
	d.mu.Unlock()
	if underWay {
		select {
		case <-f.done:
			return f.client, f.err
		case <-ctx.Done():
			return souvenir.Client{}, ctx.Err()
		}
	}
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.fetching, id)
		if errors.Is(f.err, souvenir.ErrUnauthenticated) { // and not for this server's own failures
			d.failed.Set(id, failedDocument{f.err, time.Now().Add(failureLife)})
		}
		close(f.done)
		<-d.slots
	}()
	f.err = errors.New("the fetch of a client's document was interrupted") // if it panics
	// Another fetch may have ended since the caller checked.
	if c, err := s.store.Accounts().GetClient(ctx, id); err == nil && c.Active && time.Now().Before(c.ExpiresAt) {
		f.client, f.err = c, nil
		return c, nil
	}
	// Others may be waiting, so the fetch does not end with this request. It is bounded in time anyway.
	f.client, f.err = s.renewClient(context.WithoutCancel(ctx), id)
	return f.client, f.err
}

// mayFetch takes a slot, unless none is free or a rate limit is exceeded. Requests for other documents on a host do
// not block renewing a known one: otherwise anyone could lock out the users of its client.
func (d *clientDocuments) mayFetch(ctx context.Context, id string, known bool) error {
	host := id
	if u, err := url.Parse(id); err == nil {
		host = u.Hostname()
	}
	busy := invalidClient("its document was not fetched, because too many fetches are running; try again in a minute")
	if d.addresses.Allow(request.Of(ctx).Address) > 0 || !known && d.hosts.AllowKey(host) > 0 {
		return busy
	}
	select {
	case d.slots <- struct{}{}:
		return nil
	default:
		return busy
	}
}

// renewClient fetches a document and stores its contents.
func (s *Server) renewClient(ctx context.Context, id string) (souvenir.Client, error) {
	registration, life, err := s.documents.fetch(ctx, id)
	if err != nil {
		s.log.WarnContext(ctx, "could not fetch the document of an OAuth client", "client", id, "error",
			err)
		return souvenir.Client{}, invalidClient("the document at " + failure.Quote(id) + " " + tellDocument(err))
	}
	c, err := s.store.Accounts().PutDocumentClient(ctx,
		souvenir.DocumentClient{URL: id, Registration: registration, ExpiresAt: time.Now().Add(life)})
	var known *souvenir.OAuthError
	if errors.As(err, &known) && (known.Code == souvenir.OAuthInvalidClientMetadata ||
		known.Code == souvenir.OAuthInvalidRedirectURI) {
		err = invalidClient("the document at " + failure.Quote(id) + ": " + fault.Text(err))
	}
	return c, err
}

// badDocument describes the fault of a received document. Other errors may reveal details of the network, and
// are only logged.
type badDocument string

func (b badDocument) Error() string { return "the document " + string(b) }

// tellDocument returns the message for the user who named a document.
func tellDocument(err error) string {
	var bad badDocument
	if errors.As(err, &bad) {
		return string(bad)
	}
	return "cannot be reached"
}

// fetch fetches a document, and returns how long it may be cached.
func (d *clientDocuments) fetch(ctx context.Context, id string) (registration souvenir.ClientRegistration,
	life time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return registration, 0, err
	}
	r.Header.Set("Accept", documentType)
	r.Header.Set("User-Agent", "souvenir")
	response, err := d.http.Do(r)
	if err != nil {
		return registration, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return registration, 0, badDocument(fmt.Sprintf("returned status %d; expected 200, without a redirect",
			response.StatusCode))
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != documentType &&
		!(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return registration, 0, badDocument("has the Content-Type " + failure.Quote(response.Header.Get("Content-Type")) +
			"; expected application/json")
	}
	encoded, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return registration, 0, err
	case len(encoded) > maxDocument:
		return registration, 0, badDocument(fmt.Sprintf("is longer than %d bytes", maxDocument))
	case !utf8.Valid(encoded) || !json.Valid(encoded):
		return registration, 0, badDocument("is not JSON")
	}
	if err := json.Unmarshal(encoded, &registration); err != nil {
		return registration, 0, badDocument("is not valid: " + err.Error())
	}
	if registration.Extra["client_id"] != id {
		return registration, 0, badDocument("does not have its own URL as client_id")
	}
	return registration, documentLife(response.Header, time.Now()), nil
}

// documentLife returns how long a document may be cached, by the headers of its response (RFC 9111), within bounds.
func documentLife(h http.Header, now time.Time) time.Duration {
	life := documentLifeDefault
	if expires, err := http.ParseTime(h.Get("Expires")); err == nil {
		life = expires.Sub(now)
	} else if h.Get("Expires") != "" {
		life = 0 // such as 0, which means that it has expired
	}
	for _, directive := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		if name == "no-store" || name == "no-cache" {
			return documentLifeLeast
		}
		if name != "max-age" {
			continue
		}
		life = 0
		if seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); err == nil {
			life = time.Duration(seconds) * time.Second
		}
	}
	if age, err := strconv.ParseInt(h.Get("Age"), 10, 32); err == nil {
		life -= time.Duration(age) * time.Second
	}
	return min(max(life, documentLifeLeast), documentLifeMost)
}
