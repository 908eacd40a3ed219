// Package service sends requests to a model's service over HTTP, with limits, and with retries after temporary
// failures. Its errors never contain the key. It is the only package below the API that uses HTTP; the API does not
// import it.
package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// Attempts is the maximum number of times that a request is sent.
	Attempts = 5

	firstPause = 500 * time.Millisecond
	longest    = 8 * time.Second // of a pause, unless the service asks for a longer one
	maxMessage = 200             // bytes of a service's message that an error quotes
)

// Settings are the address and the credentials of a service. Errors use the names of the callers' options.
type Settings struct {
	Provider    string // begins each error of New
	BaseURL     string
	Key         string
	KeyOptional bool
	Authorize   func(request *http.Request, key string) // adds the key; nil means a bearer token
	Header      http.Header                             // sent with each request, too
	Client      *http.Client                            // for the transport; nil means a new one
	Timeout     time.Duration                           // of an attempt
}

// Link sends requests to a service. Only closures hold the key, so that printing a Link does not show it. It is safe
// for concurrent use.
type Link struct {
	base      string
	client    *http.Client
	timeout   time.Duration
	header    http.Header
	authorize func(*http.Request)
	hide      func(string) string
	pause     func(context.Context, time.Duration) error
}

// New checks the settings. It does not use the network.
func New(s Settings) (*Link, error) {
	fail := func(format string, args ...any) (*Link, error) {
		return nil, fmt.Errorf(s.Provider+": "+format, args...)
	}
	key := strings.TrimSpace(s.Key)
	base, err := url.Parse(s.BaseURL)
	switch {
	case s.Timeout < 0:
		return fail("Timeout is %s; give a positive duration", s.Timeout)
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return fail("BaseURL is not a URL such as https://host/v1") // the value may hold a key
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return fail("BaseURL has a user, a query or a fragment; give the key as Key")
	case key == "" && !s.KeyOptional:
		return fail("Key is empty; give the key of your account")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return fail("Key has spaces, control characters or letters outside ASCII; give the key alone")
	}
	l := &Link{base: strings.TrimSuffix(s.BaseURL, "/"), timeout: s.Timeout, header: s.Header.Clone(), pause: pause,
		client: &http.Client{}, authorize: func(*http.Request) {}, hide: func(text string) string { return text }}
	if s.Client != nil {
		copied := *s.Client
		l.client = &copied
	}
	// A redirect would send the key and the texts to another address.
	l.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if key != "" {
		authorize := s.Authorize
		if authorize == nil {
			authorize = func(request *http.Request, key string) { request.Header.Set("Authorization", "Bearer "+key) }
		}
		l.authorize = func(request *http.Request) { authorize(request, key) }
		l.hide = func(text string) string { return strings.ReplaceAll(text, key, "[key]") }
	}
	return l, nil
}

// Redacted removes the key from the text of an error.
func (l *Link) Redacted(err error) error {
	if text := err.Error(); l.hide(text) != text {
		return errors.New(l.hide(text))
	}
	return err
}

// StatusError is an answer other than 200.
type StatusError struct {
	Status     int
	RetryAfter time.Duration // 0: not given
	message    string
}

// Error describes the answer in one line.
func (e *StatusError) Error() string { return e.message }

// temporary reports whether another attempt may succeed.
func (e *StatusError) temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529: // 529: overloaded
		return true
	}
	return false
}

// Post sends a body and returns the body of the answer, of at most limit bytes. It retries after temporary failures,
// with pauses of at most patience in total. If a retry would not help, the error is ErrAnswer or a StatusError.
func (l *Link) Post(ctx context.Context, path string, body []byte, patience time.Duration, limit int64) ([]byte,
	error) {
	for attempt := 1; ; attempt++ {
		answer, err := l.once(ctx, path, body, limit)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = l.Redacted(err)
		wait := time.Duration(rand.Int64N(int64(min(longest, firstPause<<attempt)))) // full jitter
		var refused *StatusError
		switch {
		case errors.Is(err, ErrAnswer) || errors.As(err, &refused) && !refused.temporary():
			return nil, err
		case errors.Is(err, context.DeadlineExceeded) && l.timeout > patience: // the caller has stopped waiting
			return nil, fmt.Errorf("%w (attempt %d of %d)", err, attempt, Attempts)
		case refused != nil && refused.RetryAfter > 0:
			wait = refused.RetryAfter + wait/8
		}
		if attempt == Attempts || wait > patience {
			return nil, fmt.Errorf("%w (attempt %d of %d)", err, attempt, Attempts)
		}
		patience -= wait
		if err := l.pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// ErrAnswer means that the answer is unusable and a retry would not help.
var ErrAnswer = errors.New("unusable answer")

// once sends a body once. The answer has at most limit bytes.
func (l *Link) once(ctx context.Context, path string, body []byte, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	maps.Copy(request.Header, l.header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	l.authorize(request)
	response, err := l.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		start, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // a truncated message is better than none
		return nil, l.refusal(response, start)
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/html" {
		return nil, fmt.Errorf("%w: an HTML page from %s; check BaseURL", ErrAnswer, request.URL.Host)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer broke off: %w", err)
	case int64(len(answer)) > limit:
		return nil, fmt.Errorf("%w: more than %d bytes, which is too long for an answer", ErrAnswer, limit)
	}
	return answer, nil
}

// refusal describes an answer other than 200 in one line.
func (l *Link) refusal(response *http.Response, start []byte) error {
	e := &StatusError{Status: response.StatusCode, RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now())}
	host := response.Request.URL.Host
	if to, err := url.Parse(response.Header.Get("Location")); response.StatusCode/100 == 3 && err == nil {
		e.message = fmt.Sprintf("%s redirects to %q; set BaseURL to the final address", host, l.hide(to.Host))
		return e
	}
	e.message = fmt.Sprintf("%s answered %d %s", host, response.StatusCode, http.StatusText(response.StatusCode))
	// The key is removed before the message is cut, since a cut could leave a part of the key.
	if said := line(l.hide(string(start))); said != "" && !strings.HasPrefix(said, "<") {
		e.message += ": " + said
	}
	return e
}

// line turns a service's message into one printable line.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

// retryAfter reads the header Retry-After: seconds, or a date (RFC 9110, section 10.2.3). 0 means none.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32); err == nil {
		return time.Duration(max(0, seconds)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), 1<<31*time.Second)
	}
	return 0
}
