// Package redirect compares redirect URIs, the addresses to which a browser carries an authorization code. An attacker
// who can redirect one gets the code. So they are compared byte by byte, and a URI that parsers could read differently
// cannot be registered.
package redirect

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// MaxURI is the maximum length of a URI in bytes.
const MaxURI = 2048

// loopbackHosts are the names of the local machine that an application may listen on, as written in a URI (RFC
// 8252, 7.3 and 8.3: localhost is discouraged there, and widely used).
var loopbackHosts = []string{"127.0.0.1", "[::1]", "localhost"}

// forbiddenSchemes are schemes that run code, read files or lead nowhere.
var forbiddenSchemes = []string{
	"about", "blob", "chrome", "content", "data", "facetime", "file", "filesystem", "ftp", "ftps", "intent", "jar",
	"javascript",
	"ldap", "livescript", "mailto", "mhtml", "ms-appinstaller", "ms-its", "ms-msdt", "ms-officecmd", "resource", "search",
	"search-ms", "shell", "sms", "smb", "ssh", "tel", "telnet", "urn", "vbscript", "view-source", "ws", "wss",
}

// Match reports whether a client's redirect URI equals a registered one, byte by byte. An http URI on a loopback
// address may differ in its port, which an application learns when it starts (RFC 8252, 7.3); host, path and query must
// be the same. A URI that WhyNot refuses matches nothing.
func Match(registered, given string) bool {
	if WhyNot(registered) != "" || WhyNot(given) != "" {
		return false
	}
	if registered == given {
		return true
	}
	host, rest, ok := Loopback(registered)
	givenHost, givenRest, givenOK := Loopback(given)
	return ok && givenOK && host == givenHost && rest == givenRest
}

// WhyNot returns the problem of a redirect URI; "" if it may be registered.
func WhyNot(uri string) string {
	if uri == "" {
		return "is empty; expected an absolute URI"
	}
	if len(uri) > MaxURI {
		return "is longer than " + strconv.Itoa(MaxURI) + " bytes"
	}
	if why := whyNoCharacters(uri); why != "" {
		return why
	}
	scheme, rest, found := strings.Cut(uri, ":")
	if !found || !isScheme(scheme) {
		return "is not absolute; it needs a scheme in lower case, such as https://"
	}
	if slices.Contains(forbiddenSchemes, scheme) {
		return "has the scheme " + scheme +
			", which is not allowed; use https, http on a loopback address, or a scheme of your application"
	}
	afterSlashes, hasAuthority := strings.CutPrefix(rest, "//")
	authority, _ := cutAuthority(afterSlashes)
	switch {
	case !hasAuthority && (scheme == "http" || scheme == "https" || !strings.HasPrefix(rest, "/")):
		return "has no path after its scheme; write scheme://host/path, or scheme:/path for a scheme of your application"
	case hasAuthority && strings.ContainsAny(authority, "@*%"):
		return "has a user, a wildcard or a percent sign in its host; give one host"
	case scheme == "https" && !IsHostAndPort(authority):
		return "has no host, or no port from 1 to 65535 after it"
	case scheme == "http":
		if _, _, ok := Loopback(uri); !ok {
			return "has http and a host other than 127.0.0.1, [::1] and localhost; use https"
		}
	}
	if _, err := url.Parse(uri); err != nil {
		return "cannot be read as a URI"
	}
	return ""
}

// whyNoCharacters refuses characters that some parsers drop, replace or treat as delimiters.
func whyNoCharacters(uri string) string {
	for i := range len(uri) {
		switch c := uri[i]; {
		case c == '#':
			return "has a fragment; remove it"
		case c <= ' ' || c > '~' || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return "has a character that URIs do not have (RFC 3986); percent-encode it"
		case c == '%':
			code, err := strconv.ParseUint(uri[i+1:min(i+3, len(uri))], 16, 8)
			if err != nil || len(uri) < i+3 || code < ' ' || code == 0x7f {
				return "has a percent sign without two hexadecimal digits, or a control character"
			}
		}
	}
	return ""
}

// isScheme reports whether a scheme has the form of RFC 3986, in lower case.
func isScheme(scheme string) bool {
	for i, r := range scheme {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || !(r >= '0' && r <= '9') && r != '+' && r != '-' && r != '.') {
			return false
		}
	}
	return scheme != ""
}

// cutAuthority splits the part of a URI after the two slashes: host and port, and the path and query after them.
func cutAuthority(s string) (authority, rest string) {
	end := strings.IndexAny(s, "/?")
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// IsHostAndPort reports whether an authority is a host with or without a port, and nothing else.
func IsHostAndPort(authority string) bool {
	host, end := authority, strings.LastIndexByte(authority, ':')
	if end > strings.LastIndexByte(authority, ']') {
		if !isPort(authority[end+1:]) {
			return false
		}
		host = authority[:end]
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		return ok && err == nil && address.Is6() && address.Zone() == ""
	}
	for _, r := range host {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_') {
			return false
		}
	}
	return strings.Trim(host, ".") != ""
}

func isPort(s string) bool {
	port, err := strconv.ParseUint(s, 10, 16)
	return err == nil && port > 0 && s[0] != '0'
}

// Loopback splits an http URI on a loopback address: its host as written, and everything after the port.
func Loopback(uri string) (host, rest string, ok bool) {
	uri, ok = strings.CutPrefix(uri, "http://")
	if !ok {
		return "", "", false
	}
	authority, rest := cutAuthority(uri)
	for _, host := range loopbackHosts {
		port, ok := strings.CutPrefix(authority, host)
		if ok && (port == "" || port[0] == ':' && isPort(port[1:])) {
			return host, rest, true
		}
	}
	return "", "", false
}

// Host returns the part of a redirect URI that shows a user where the answer goes.
func Host(uri string) string {
	scheme, rest, _ := strings.Cut(uri, ":")
	if scheme != "https" && scheme != "http" {
		return scheme + ":"
	}
	if host, _, ok := Loopback(uri); ok {
		return host
	}
	authority, _ := cutAuthority(strings.TrimPrefix(rest, "//"))
	return authority
}
