// Package doctor acts as an outside client of a running server, and reports the problems that real AI clients would
// have.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Level is the severity of a finding.
type Level string

// The values of [Level].
const (
	OK      Level = "ok"
	Warning Level = "warning" // some clients, or people, have a problem, or soon will
	Problem Level = "problem" // clients fail
)

// Finding is the result of one check.
type Finding struct {
	Check   string `json:"check"` // its name, in one word
	Level   Level  `json:"level"`
	Message string `json:"message"`        // a sentence
	Mend    string `json:"mend,omitempty"` // what to do about it; empty if all is well
}

// Options configure [Examine].
type Options struct {
	Token      string        // an MCP token or an access token, for calls of tools; empty: no calls
	NoRegister bool          // skip checks that leave traces on the server: registrations
	Timeout    time.Duration // of each request; zero means 10 seconds
	Client     *http.Client  // whose Transport is used; nil means one without a proxy
}

const (
	defaultTimeout = 10 * time.Second
	maxAnswer      = 4 << 20 // bytes; the list of the tools is the longest
)

// patient is the server under examination.
type patient struct {
	at       string // as people type it, without a trailing slash
	url      *url.URL
	options  Options
	http     *http.Client
	findings []Finding
}

// Examine sends a server, at the URL that clients use, all the requests that clients send. Only an invalid URL is
// an error: any other failure is a finding.
func Examine(ctx context.Context, address string, options Options) ([]Finding, error) {
	address = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/mcp"), "/")
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(address, "?#") {
		return nil, fmt.Errorf("%q is not a URL of a server; give one such as https://memory.example.com", address)
	}
	p := &patient{at: address, url: u, options: options,
		http: &http.Client{Timeout: cmp.Or(options.Timeout, defaultTimeout)}}
	if options.Client != nil {
		p.http.Transport = options.Client.Transport
	} else {
		p.http.Transport = &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	}
	// The bodies of refused requests are not sent, so that the answer arrives.
	if own, ok := p.http.Transport.(*http.Transport); ok {
		own = own.Clone()
		own.ExpectContinueTimeout = 2 * time.Second
		p.http.Transport = own
	}
	p.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if !p.reach(ctx) {
		return p.findings, nil // the rest would repeat the same finding
	}
	for _, check := range []func(context.Context){
		p.addresses, p.plainHTTP, p.serverMetadata, p.resourceMetadata, p.challenge, p.credentials, p.slashes, p.preflights,
		p.bodies,
		p.tokenEndpoint, p.registrations, p.calls,
	} {
		check(ctx)
		if ctx.Err() != nil {
			return p.findings, ctx.Err()
		}
	}
	return p.findings, nil
}

func (p *patient) note(check string, level Level, message, mend string) {
	p.findings = append(p.findings, Finding{check, level, message, mend})
}

func (p *patient) ok(check, format string, args ...any) {
	p.note(check, OK, fmt.Sprintf(format, args...), "")
}

// answer is a response.
type answer struct {
	*http.Response
	body []byte
}

// request is a request to send; its zero value is a GET without a body.
type request struct {
	method, url string // url: a path, or a whole URL
	kind, body  string // Content-Type
	headers     map[string]string
}

// send sends a request. Redirects are not followed.
func (p *patient) send(ctx context.Context, q request) (answer, error) {
	if !strings.Contains(q.url, "://") {
		q.url = p.at + q.url
	}
	r, err := http.NewRequestWithContext(ctx, cmp.Or(q.method, http.MethodGet), q.url, strings.NewReader(q.body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("User-Agent", "souvenir-doctor")
	if q.kind != "" {
		r.Header.Set("Content-Type", q.kind)
	}
	for name, value := range q.headers {
		r.Header.Set(name, value)
	}
	response, err := p.http.Do(r)
	if err != nil {
		var wrong *url.Error
		if errors.As(err, &wrong) {
			err = wrong.Err
		}
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("the response ended early: %w", err)
	}
	return answer{response, body}, nil
}

// redirects reports whether an answer leads elsewhere.
func (a answer) redirects() bool { return a.StatusCode >= 300 && a.StatusCode < 400 }

// isJSON decodes an answer, and reports whether it is JSON.
func (a answer) isJSON(v any) bool {
	return strings.Contains(a.Header.Get("Content-Type"), "json") && json.Unmarshal(a.body, v) == nil
}

// describe describes an answer in a few words, for messages.
func (a answer) describe() string {
	text := fmt.Sprintf("status %d", a.StatusCode)
	switch {
	case a.redirects():
		text += " to " + a.Header.Get("Location")
	case strings.Contains(a.Header.Get("Content-Type"), "html"):
		text += " with an HTML page"
	case a.Header.Get("Content-Type") == "" && len(a.body) == 0:
		text += " without a body"
	}
	if by := a.Header.Get("Server"); by != "" {
		text += " from " + by
	}
	return text
}

// atHostRoot returns the URL of a metadata document: the path of the server's URL follows the well-known part (RFC
// 8414 and RFC 9728, section 3).
func (p *patient) atHostRoot(wellKnown, rest string) string {
	return p.url.Scheme + "://" + p.url.Host + wellKnown + p.url.EscapedPath() + rest
}

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
	mediaMCP  = "application/json, text/event-stream" // what a client accepts
)
