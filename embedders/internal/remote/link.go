package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/souvenir-ai/souvenir"
)

const (
	firstPause = 500 * time.Millisecond
	longest    = 8 * time.Second // pause that is not asked for
	attempts   = 5
	maxMessage = 200 // bytes of a service's message that an error quotes
)

// patience is how long all pauses between the attempts of a request may be. A search that waits works by words
// instead; a document is embedded later, in the background.
func patience(purpose souvenir.Purpose) time.Duration {
	if purpose == souvenir.ForQuery {
		return time.Second
	}
	return time.Minute
}

// link sends requests to a service. The key is in closures alone, so that printing a link does not show it.
type link struct {
	base      string
	client    *http.Client
	timeout   time.Duration
	authorize func(*http.Request)
	hide      func(string) string
	pause     func(context.Context, time.Duration) error
}

func newLink(base, key string, authorize func(*http.Request, string), client *http.Client, timeout time.Duration) link {
	l := link{base: base, timeout: timeout, pause: pause, client: &http.Client{},
		authorize: func(*http.Request) {}, hide: func(text string) string { return text }}
	if client != nil {
		copied := *client
		l.client = &copied
	}
	// A redirect would take the key and the texts to another address.
	l.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if key != "" {
		l.authorize = func(request *http.Request) { authorize(request, key) }
		l.hide = func(text string) string { return strings.ReplaceAll(text, key, "[key]") }
	}
	return l
}

// redacted returns an error whose text has no key.
func (l link) redacted(err error) error {
	if text := err.Error(); l.hide(text) != text {
		return errors.New(l.hide(text))
	}
	return err
}

// statusError is an answer other than 200.
type statusError struct {
	status     int
	message    string
	retryAfter time.Duration // 0: not given
}

func (e *statusError) Error() string { return e.message }

// temporary reports whether another attempt may succeed.
func (e *statusError) temporary() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529: // 529: overloaded
		return true
	}
	return false
}

// post sends a body and returns the answer's. It tries again after temporary failures, with pauses of patience in all.
func (l link) post(ctx context.Context, path string, body []byte, patience time.Duration, limit int64) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		answer, err := l.once(ctx, path, body, limit)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = l.redacted(err)
		wait := time.Duration(rand.Int64N(int64(min(longest, firstPause<<attempt)))) // full jitter
		var refused *statusError
		switch {
		case errors.Is(err, errAnswer) || errors.As(err, &refused) && !refused.temporary():
			return nil, err
		case errors.Is(err, context.DeadlineExceeded) && l.timeout > patience: // a search waits no longer
			return nil, fmt.Errorf("%w (attempt %d of %d)", err, attempt, attempts)
		case refused != nil && refused.retryAfter > 0:
			wait = refused.retryAfter + wait/8
		}
		if attempt == attempts || wait > patience {
			return nil, fmt.Errorf("%w (attempt %d of %d)", err, attempt, attempts)
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

// errAnswer marks answers that another attempt would not make better.
var errAnswer = errors.New("unusable answer")

// once sends a body once. The answer has at most limit bytes.
func (l link) once(ctx context.Context, path string, body []byte, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	l.authorize(request)
	response, err := l.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		start, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // a message cut off is better than none
		return nil, l.refusal(response, start)
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/html" {
		return nil, fmt.Errorf("%w: a page of HTML from %s; check BaseURL", errAnswer, request.URL.Host)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer broke off: %w", err)
	case int64(len(answer)) > limit:
		return nil, fmt.Errorf("%w: more than %d bytes, so these are not the vectors that were asked for", errAnswer, limit)
	}
	return answer, nil
}

// refusal describes an answer other than 200 in a line.
func (l link) refusal(response *http.Response, start []byte) error {
	e := &statusError{status: response.StatusCode, retryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now())}
	host := response.Request.URL.Host
	if to, err := url.Parse(response.Header.Get("Location")); response.StatusCode/100 == 3 && err == nil {
		e.message = fmt.Sprintf("%s redirects to %q; set BaseURL to the final address", host, l.hide(to.Host))
		return e
	}
	e.message = fmt.Sprintf("%s answered %d %s", host, response.StatusCode, http.StatusText(response.StatusCode))
	// The key goes before the message is cut, which could leave a part of it.
	if said := line(l.hide(string(start))); said != "" && !strings.HasPrefix(said, "<") {
		e.message += ": " + said
	}
	return e
}

// line makes one printable line of a service's message.
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
