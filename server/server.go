package server

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// APIVersion is the version of the interface that is served: that of GET /health.
const APIVersion = "1.0.1"

// Options change how a Server works. Nil, and the zero value of each field, mean the default named there.
type Options struct {
	// PublicURL is where clients reach the server, with the prefix under which it is mounted, if any: the one source of the
	// addresses that it tells, and the issuer of the access tokens that it accepts. Empty means that it does not know: then
	// it accepts MCP tokens only. It must be as CheckPublicURL wants it; another one is told to the Logger and counts as empty.
	PublicURL string

	// Version is the version of the program, for /health and /openapi.json. Empty means that nobody is told.
	Version string

	// Logger hears of every request (without its query, its credential and its content) and of the causes of errors that
	// callers are not told. Nil means silence.
	Logger *slog.Logger

	// NoQueryTokens refuses credentials in the query parameter token, which ends up in histories and other programs' logs.
	// False means that they are accepted.
	NoQueryTokens bool

	// MaxBody is the most bytes that a request may have, those of an uploaded file not counted, which [souvenir.Options]
	// limits. Zero means 8 MiB: a memory of the largest size, however it is written in JSON.
	MaxBody int64

	// Patience is how long a client may be silent while it sends a request or takes an answer. Zero means a minute.
	Patience time.Duration
}

const (
	defaultMaxBody  = 8 << 20
	defaultPatience = time.Minute
)

// Server serves a store over HTTP. It is an [http.Handler], safe for concurrent use, and holds nothing that has to be
// closed. Make one with [New].
type Server struct {
	store     *souvenir.Store
	options   Options
	log       *slog.Logger
	mux       *http.ServeMux
	crossSite *http.CrossOriginProtection
	document  []byte // of /openapi.json
}

// New makes a server for a store, which is the operator's, as [souvenir.Open] returned it: only that one can tell whom a
// credential speaks for. The handler answers paths from "/" on; mount it under a prefix with [http.StripPrefix].
func New(store *souvenir.Store, options *Options) *Server {
	s := &Server{store: store, mux: http.NewServeMux(), crossSite: http.NewCrossOriginProtection()}
	if options != nil {
		s.options = *options
	}
	s.options.MaxBody = cmp.Or(max(s.options.MaxBody, 0), defaultMaxBody)
	s.options.Patience = cmp.Or(max(s.options.Patience, 0), defaultPatience)
	if s.log = s.options.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.options.PublicURL = strings.TrimSuffix(s.options.PublicURL, "/")
	if s.options.PublicURL != "" {
		if err := s.trustPublicURL(); err != nil {
			s.log.Error("the public URL cannot be used; only MCP tokens are accepted", "error", err)
			s.options.PublicURL = ""
		}
	}
	s.mount()
	s.document = s.openAPI()
	return s
}

// CheckPublicURL says whether a URL can be the PublicURL of [Options]: http or https, with a host, with or without a
// path, without user, query and fragment.
func CheckPublicURL(publicURL string) error {
	u, err := url.Parse(publicURL)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(publicURL, "?#")) {
		err = errors.New("it is not of that form")
	}
	if err == nil && u.Path != "" && u.Path != u.JoinPath().Path {
		err = errors.New("its path is not in its shortest form")
	}
	if err == nil {
		return nil
	}
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: "public_url", Err: err,
		Message: "public_url is " + strconv.Quote(publicURL) + "; a URL such as https://memory.example.com is needed, http or https, without user, query and fragment"}
}

// trustPublicURL checks the public URL and lets pages that lie there use the cookie: behind a proxy the Host that arrives
// here may be another.
func (s *Server) trustPublicURL() error {
	if err := CheckPublicURL(s.options.PublicURL); err != nil {
		return err
	}
	u, err := url.Parse(s.options.PublicURL)
	if err != nil {
		return err
	}
	return s.crossSite.AddTrustedOrigin(u.Scheme + "://" + u.Host)
}
