package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// reach asks for /health, and reports whether Souvenir answers at all. It also checks the certificate and the
// clock.
func (p *patient) reach(ctx context.Context) bool {
	began := time.Now()
	a, err := p.send(ctx, request{url: "/health"})
	if err != nil {
		message, mend := unreachable(err)
		p.note("reach", Problem, p.at+" "+message, mend)
		return false
	}
	took := time.Since(began)
	var health struct{ Status, Service, Version string }
	switch {
	case a.redirects():
		p.note("reach", Problem, p.at+"/health is redirected to "+a.Header.Get("Location")+
			"; clients send their tokens only to the configured address",
			"Use the address that answers without a redirect, in clients and in --public-url.")
		return false
	case !a.isJSON(&health) || health.Service != "souvenir":
		p.note("reach", Problem, p.at+"/health is not a Souvenir server: it returned "+a.describe(),
			"Is the server running, does the proxy forward to it, and is the path of the URL right? The proxy must not have a "+
				"sign-in page or a bot check in front of it.")
		return false
	case a.StatusCode != http.StatusOK || health.Status != "ok":
		p.note("reach", Problem, "the server answers, but is not working: "+a.describe(), "See the server's log.")
		return false
	}
	p.ok("reach", "%s runs version %s and answered in %s", p.at, health.Version, took.Round(time.Millisecond))
	if encoding := a.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		p.note("encoding", Problem, "answers are encoded with "+encoding+", although the request did not ask for it",
			"Let the proxy compress only for clients that send Accept-Encoding.")
	}
	p.certificate(a.TLS)
	p.clock(a, began, took)
	return true
}

// unreachable explains a network error.
func unreachable(err error) (message, mend string) {
	var name *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var network net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "has an unknown host name: " + err.Error(), "Create a DNS record for the host."
	case errors.As(err, &authority):
		return "has a certificate from an unknown authority",
			"Serve the whole certificate chain of a public authority (Caddy and Let's Encrypt do); clients have no option " +
				"to trust others."
	case errors.As(err, &host):
		return "has a certificate for other host names: " + err.Error(), "Get a certificate for this host."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "has an expired certificate: " + err.Error(),
			"Renew it, and check why it was not renewed automatically. If it is valid, check both clocks."
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "speaks http, not https", "Put a proxy with TLS in front of it, or give the URL as http://."
	case errors.As(err, &network) && network.Timeout():
		return "does not answer in time: " + err.Error(), "Check the firewall, and whether the proxy reaches the server."
	}
	return "cannot be reached: " + err.Error(), "Check that it is running and that the proxy listens there."
}

// certificate checks how long the certificate is still valid.
func (p *patient) certificate(state *tls.ConnectionState) {
	switch {
	case state == nil && isLocal(p.url.Hostname()):
		p.ok("tls", "no TLS; none is needed on this machine, but clients on other machines cannot connect")
		return
	case state == nil:
		p.note("tls", Problem, "passwords and tokens are sent unencrypted, and Claude and ChatGPT on the web accept "+
			"only https", "Put a proxy with TLS in front of it, and give its https URL as --public-url.")
		return
	case len(state.PeerCertificates) == 0:
		return
	}
	ends := state.PeerCertificates[0].NotAfter
	left := time.Until(ends)
	message := fmt.Sprintf("the certificate is valid until %s", ends.UTC().Format("2006-01-02 15:04 MST"))
	const soon, late = 14 * 24 * time.Hour, 3 * 24 * time.Hour
	switch lifetime := ends.Sub(state.PeerCertificates[0].NotBefore); {
	case left < late && left < lifetime/3: // some are valid for six days only
		p.note("tls", Problem, message, "Renew it now; clients then fail without a clear error.")
	case left < soon && left < lifetime/3:
		p.note("tls", Warning, message, "Make sure that it is renewed automatically.")
	default:
		p.ok("tls", "%s", message)
	}
}

// clock compares the server's time, which has a resolution of a second, with this machine's.
func (p *patient) clock(a answer, began time.Time, took time.Duration) {
	date, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		p.note("clock", Warning, "the response has no Date header", "Let the proxy pass on Date.")
		return
	}
	off := date.Add(time.Second / 2).Sub(began.Add(took / 2)).Truncate(time.Second)
	const much, tooMuch = 10 * time.Second, time.Minute
	message := fmt.Sprintf("the server's clock and this machine's differ by %s", off.Abs())
	switch {
	case off.Abs() > tooMuch:
		p.note("clock", Problem, message+"; tokens expire too early or too late, and sign-in at identity providers fails",
			"Let both machines synchronize their clocks (NTP).")
	case off.Abs() > much:
		p.note("clock", Warning, message, "Let both machines synchronize their clocks (NTP).")
	default:
		p.ok("clock", "%s", message)
	}
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// addresses checks what the host's name resolves to: each address must answer, since clients may use any.
func (p *patient) addresses(ctx context.Context) {
	host, port := p.url.Hostname(), p.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.url.Scheme]
	}
	if isLocal(host) {
		return
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(all) == 0 {
		return // reach has succeeded, one way or another
	}
	var dead []string
	private := false
	for _, address := range all {
		address = address.Unmap()
		private = private || address.IsPrivate() || address.IsLoopback() || address.IsLinkLocalUnicast()
		dialer := net.Dialer{Timeout: p.http.Timeout}
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address.String(), port))
		if err != nil {
			dead = append(dead, address.String())
			continue
		}
		_ = connection.Close() // it was opened only to see that it can be
	}
	switch {
	case len(dead) > 0:
		p.note("addresses", Warning, host+" also resolves to "+strings.Join(dead, " and ")+
			", which does not answer from here; some clients hang or fail",
			"Remove the address from the DNS, or let the proxy listen there. An IPv6 address cannot be tested "+
				"from a machine without IPv6.")
	case private:
		p.note("addresses", Warning, host+
			" is in a private network: Claude and ChatGPT on the web connect from outside, and cannot reach it",
			"None is needed if only programs in this network use it; otherwise make it public, for example with a tunnel.")
	default:
		p.ok("addresses", "%s resolves to %d addresses, and all answer", host, len(all))
	}
}

// plainHTTP checks whether the server answers without TLS as well.
func (p *patient) plainHTTP(ctx context.Context) {
	if p.url.Scheme != "https" || p.url.Port() != "" && p.url.Port() != "443" {
		return
	}
	a, err := p.send(ctx, request{url: "http://" + p.url.Hostname() + p.url.EscapedPath() + "/health"})
	switch {
	case err != nil:
		p.ok("http", "the server does not answer without TLS")
	case a.redirects() && strings.HasPrefix(a.Header.Get("Location"), "https://"+p.url.Hostname()):
		p.ok("http", "http is redirected to https")
	case a.StatusCode == http.StatusOK && strings.Contains(string(a.body), "souvenir"):
		p.note("http", Problem, "the server also answers on http, where passwords and tokens are sent unencrypted",
			"Let the proxy redirect http to https.")
	default:
		p.note("http", Warning, "http://"+p.url.Hostname()+" returned "+a.describe()+
			"; people who enter only the host name do not reach the server", "Let the proxy redirect http to https.")
	}
}
