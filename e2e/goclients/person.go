package main

import (
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// person uses a browser without scripts.
type person struct{ browser *http.Client }

func newPerson() person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // never fails without options
	}
	return person{&http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// answer opens the address to which a client sends a browser, signs in, authorizes the client as requested, and returns
// the address outside the server to which the browser is sent.
func (p person) answer(address string) (*url.URL, error) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	for range 10 {
		if err != nil {
			return nil, err
		}
		response, failed := p.browser.Do(request)
		if failed != nil {
			return nil, failed
		}
		at := request.URL
		page, failed := read(response)
		if failed != nil {
			return nil, failed
		}
		switch response.StatusCode {
		case http.StatusSeeOther:
			next, failed := response.Location()
			if failed != nil || next.Host != at.Host {
				return next, failed
			}
			request, err = http.NewRequest(http.MethodGet, next.String(), nil)
		case http.StatusOK:
			action, failed := unescaped(page, `<form method="post" action="`, at)
			if failed != nil {
				return nil, failed
			}
			form := url.Values{"decision": {"allow"}}
			if strings.Contains(page, `name="password"`) {
				form = url.Values{"username": {os.Getenv("PERSON_NAME")}, "password": {os.Getenv("PERSON_PASSWORD")}}
			}
			for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
				form.Set(plain(field[1]), plain(field[2]))
			}
			request, err = http.NewRequest(http.MethodPost, action.String(), strings.NewReader(form.Encode()))
			if err == nil {
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
		default:
			return nil, fmt.Errorf("%s answers %s: %.500s", at, response.Status, page)
		}
	}
	return nil, fmt.Errorf("from %s the browser goes in circles", address)
}

func plain(text string) string { return html.UnescapeString(text) }
