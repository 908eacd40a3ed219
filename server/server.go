package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server/internal/authserver"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/overview"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/upkeep"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// APIVersion is the version of the HTTP API, as GET /health reports it.
const APIVersion = "1.0.1"

// Options configure a Server. Nil, and the zero value of each field, mean the default named there.
type Options struct {
	// PublicURL is where clients reach the server, including the prefix under which it is mounted, if any. All
	// addresses that the server publishes derive from it, and it is the issuer of the access tokens that the server
	// accepts. Empty means unknown: then the server accepts MCP tokens only. It must pass CheckPublicURL; an invalid
	// one is logged and counts as empty.
	PublicURL string

	// Version is the version of the program, for /health and /openapi.json. Empty leaves it out.
	Version string

	// Logger receives every request (without its query, credential and content) and the causes of errors that are
	// not sent to callers. Each line that belongs to a request has its request_id; see [LogHandler]. Nil means no
	// logging.
	Logger *slog.Logger

	// OnRequest is called after every request, and OnCall after every call of a tool, in the goroutine of the request:
	// for metrics. They must be safe for concurrent use. Nil means that nothing is called.
	OnRequest func(Answered)
	OnCall    func(Called)

	// Authenticate returns the principal of a request, for a program that has users and a sign-in of its own. The
	// server calls it before it reads the request's credential, for every route that needs one, but not for the
	// pages on which people sign in to the server itself. The result is trusted. It must be safe for concurrent use.
	// Nil means that only the server's own credentials count.
	//
	// It returns nil, nil for a request that it does not decide: then the request's own MCP token or access token
	// does. Otherwise the Access.User that it returns is a user's id or an account's name, and must not be empty; an
	// unused id becomes a user with its first write. Access.Projects and Access.ReadOnly narrow the view. Nil Scopes
	// mean souvenir.DefaultScopes: neither ScopeAccount nor ScopeAdmin. The other fields are ignored; the server
	// looks up whether the user is disabled or an admin.
	//
	// An error ends the request: kind ErrUnauthenticated as 401, ErrForbidden as 403, and an error that is not a
	// [souvenir.Error] as 500, with its cause in the Logger only. Requests by which a page of another origin would
	// change something are refused with 403, since a browser may have sent the program's cookie with them.
	Authenticate func(*http.Request) (*souvenir.Principal, error)

	// NoQueryTokens refuses credentials in the query parameter token, which ends up in browser histories and logs.
	// False means that they are accepted.
	NoQueryTokens bool

	// Toolsets are the tools offered to clients of the Model Context Protocol; unknown ones are ignored. Nil means
	// mcpserver.ToolsetMemory. POST /tools/call supports that set only.
	Toolsets []mcpserver.Toolset

	// ReadOnly leaves out the tools, and actions of tools, that change something. It does not affect the other
	// endpoints. False means that credentials decide.
	ReadOnly bool

	// NoActivity turns off recording calls in the store. False means that every authenticated call of a tool, a file
	// or another endpoint is recorded: user, client, target, time, duration and outcome; see
	// [souvenir.Upkeep.RecordActivity].
	NoActivity bool

	// Settings are the settings that the program was started with, for the admins' page about them. Nil means that
	// the page shows only what the server itself knows.
	Settings []Setting

	// Backups returns the state of the backups that the program makes at intervals, for the admins' overview. It must be
	// safe for concurrent use. Nil means that the program makes none.
	Backups func() Backups

	// Snippets returns, for the pages, how to connect AI clients to the MCP endpoint: the text to paste for each
	// client, with a token, or without ("") for clients that support sign-in. Nil means that the pages show the
	// address and the token alone.
	Snippets func(address, token string) []Snippet

	// LoginTries is how many wrong passwords per name and address cost no wait. Each further one waits twice as long as
	// the one before: 2 seconds to 15 minutes. Zero means 5. Per address across names, and per name across addresses,
	// 20 are free (or LoginTries, if that is more); further ones wait up to a minute.
	LoginTries int

	// Provider is an external OpenID Connect provider at which people may sign in, too. Nil means none: names and
	// passwords only. It needs a PublicURL, and must pass CheckProvider; an invalid one is logged and counts as nil.
	Provider *Provider

	// MaxBody is the maximum size of a request body in bytes, without uploaded files, which [souvenir.Options]
	// limits. Zero means 8 MiB: enough for the largest memory in any JSON encoding.
	MaxBody int64

	// MaxRunning is how many authenticated requests may use the processors at once; a request that waits for the
	// disk, a model or its client does not count. Zero means the number of processors (GOMAXPROCS).
	MaxRunning int

	// MaxRunningPerUser is how many of them may belong to one user: further ones wait, and users take turns. Zero
	// means one less than MaxRunning, and at least one, so that another user's request finds a processor; it rises
	// to MaxRunning while no other user has sent a request for ten seconds.
	MaxRunningPerUser int

	// QueuePerUser is how many requests of a user may wait for their turn; further ones are answered with 503 and
	// Retry-After. Across all users, 16 times as many may wait. Zero means 256.
	QueuePerUser int

	// QueueWait is how long a request waits for its turn, and for memory for its body, before the server answers
	// 503. Zero means 15 seconds.
	QueueWait time.Duration

	// BodyMemory is how many bytes the bodies of all requests may take up in memory at once; one user's may take up half
	// of that. Further bodies wait. Uploaded files are not held in memory. Zero means 64 MiB; it is at least twice
	// MaxBody.
	BodyMemory int64

	// Patience is how long a client may stall while it sends a request or receives a response. Zero means a minute.
	Patience time.Duration

	// TrustedProxies are the addresses of proxies whose headers X-Forwarded-For and X-Request-Id are trusted: limits
	// per address use the address given there, and logs and answers have the id given there. Nil means proxies
	// on this machine (127.0.0.0/8 and ::1); an empty list means none.
	TrustedProxies []netip.Prefix

	// ClientDocuments fetches the documents of OAuth clients that are identified by a URL (client id metadata
	// documents). Nil means a client that connects to public addresses only, without a proxy. Any caller can make
	// the server fetch such a URL: where a proxy is needed, or where such clients are on the internal network, set a
	// client whose Transport reaches no more than it must. Redirects, cookies and more than 5 seconds are never
	// allowed.
	ClientDocuments *http.Client
}

// Snippet connects an AI client to the server: a command to run, part of a configuration file, or instructions.
type Snippet struct {
	Client string // its name, such as Claude Code
	Where  string // where the text goes
	Text   string // to paste
}

// Setting is a setting that the program was started with.
type Setting struct {
	Name    string // such as --max-file
	Value   string // never a secret
	Meaning string // a few words
	Given   bool   // false: it is the default

	Variable string // the environment variable that set it; empty: a flag, if it is given
}

const (
	defaultMaxBody  = 8 << 20
	defaultPatience = time.Minute
)

// Server serves a store over HTTP. It is an [http.Handler], safe for concurrent use, and needs no closing. Create
// one with [New].
type Server struct {
	store     *souvenir.Store
	options   Options
	log       *slog.Logger
	mux       *http.ServeMux
	signin    *signin.Service      // sign-in and sessions
	oauth     *authserver.Server   // authorizes applications
	dashboard *dashboard.Dashboard // its pages
	site      *web.Site            // the frame of the pages
	mcp       http.Handler         // of the Model Context Protocol
	toolNames []string             // of the tools that may be logged
	document  func() []byte        // of /openapi.json
	queries   map[string][]string  // parameters of the routes that refuse others

	clients clientNames // of MCP
	queue   *fairqueue.Queue
	checks  *fairqueue.Queue  // in which credentials are checked
	bodies  *fairqueue.Budget // of requests, in memory
}

// New creates a server for a store. The store must be the operator's, as [souvenir.Open] returned it: only that one
// can check credentials. The handler answers paths from "/" on; mount it under a prefix with [http.StripPrefix].
// OAuth clients look for the metadata of a service with a prefix at the root of its host (RFC 8414 and RFC 9728):
// also mount the handler at /.well-known/ there, without stripping anything.
func New(store *souvenir.Store, options *Options) *Server {
	s := &Server{store: store, mux: http.NewServeMux()}
	if options != nil {
		s.options = *options
	}
	s.options.MaxBody = cmp.Or(max(s.options.MaxBody, 0), defaultMaxBody)
	s.queue, s.bodies = newTurns(&s.options)
	s.checks = newCheckQueue(&s.options)
	s.options.Patience = cmp.Or(max(s.options.Patience, 0), defaultPatience)
	if s.log = s.options.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = slog.New(LogHandler(s.log.Handler()))
	s.options.PublicURL = strings.TrimSuffix(s.options.PublicURL, "/")
	crossSite := http.NewCrossOriginProtection()
	if s.options.PublicURL != "" {
		if err := trustPublicURL(crossSite, s.options.PublicURL); err != nil {
			s.log.Error("the public URL is invalid; only MCP tokens are accepted", "error", err)
			s.options.PublicURL = ""
		}
	}
	s.mcp = s.newMCP()
	s.addRooms(crossSite)
	s.mount()
	s.document = sync.OnceValue(s.openAPI)
	return s
}

// addRooms creates the services behind the pages and the OAuth endpoints.
func (s *Server) addRooms(crossSite *http.CrossOriginProtection) {
	s.site = web.New(web.Options{PublicURL: s.options.PublicURL, MaxBody: s.options.MaxBody, CrossSite: crossSite,
		Logger: s.log})
	if s.store != nil {
		if c, err := s.store.Upkeep().Configuration(context.Background()); err == nil {
			s.site.ReadOnly = c.ReadOnly
		}
	}
	s.signin = signin.New(signin.Options{
		Site: s.site, Store: s.store, Logger: s.log, Provider: s.identityProvider(), FreeTries: s.options.LoginTries,
		Welcome: func(r *http.Request, user souvenir.User, title string) (any, error) {
			return s.dashboard.Clients.Welcome(r, user, title)
		},
	})
	s.oauth = authserver.New(authserver.Options{
		Site: s.site, SignIn: s.signin, Store: s.store, Logger: s.log, ClientDocuments: s.options.ClientDocuments,
		ReadJSON: s.readJSON, Answer: s.answer,
	})
	s.dashboard = dashboard.New(dashboard.Options{
		Site: s.site, SignIn: s.signin, Store: s.store, Logger: s.log, NoActivity: s.options.NoActivity,
		ToolNames: s.toolNames,
		Snippets:  s.snippets(), Settings: s.settings(), Backups: s.backups(),
	})
}

// Backups is the state of the backups that a program makes at intervals.
type Backups struct {
	Every  time.Duration
	Made   time.Time // when the newest sound one was made; zero: there is none yet
	Failed bool      // the last one
}

// backups adapts Options.Backups for the pages; nil if none are made.
func (s *Server) backups() func() overview.Backups {
	if s.options.Backups == nil {
		return nil
	}
	return func() overview.Backups { return overview.Backups(s.options.Backups()) }
}

// snippets adapts Options.Snippets for the pages; nil if none are given.
func (s *Server) snippets() func(address, token string) []web.Snippet {
	if s.options.Snippets == nil {
		return nil
	}
	return func(address, token string) []web.Snippet {
		var all []web.Snippet
		for _, one := range s.options.Snippets(address, token) {
			all = append(all, web.Snippet(one))
		}
		return all
	}
}

// settings returns the options that the pages show.
func (s *Server) settings() upkeep.Settings {
	o := s.options
	view := upkeep.Settings{
		Version: o.Version, APIVersion: APIVersion, MaxRunning: o.MaxRunning, MaxRunningPerUser: o.MaxRunningPerUser,
		QueuePerUser: o.QueuePerUser,
		QueueWait:    o.QueueWait, BodyMemory: o.BodyMemory, NoActivity: o.NoActivity, NoQueryTokens: o.NoQueryTokens,
		ReadOnly: o.ReadOnly,
	}
	if s.signin.HasProvider() {
		view.Provider = cmp.Or(o.Provider.Name, o.Provider.Issuer)
	}
	for _, one := range o.Settings {
		view.Flags = append(view.Flags, upkeep.Flag(one))
	}
	return view
}

// identityProvider returns the external provider at which people may sign in; nil: none.
func (s *Server) identityProvider() *signin.Provider {
	if s.options.PublicURL == "" { // needed for the provider's redirect back
		return nil
	}
	return (*signin.Provider)(s.options.Provider)
}

// SignInLink returns a link that signs a user (an id, or an account's name) in to the dashboard without a password: the
// first browser on this machine that opens it, within 10 minutes. It is for programs that show their own server to the
// person who started them; anyone on this machine who reads the link can use it. Without a PublicURL it is ErrInvalid,
// since there is no dashboard. An unknown user is ErrNotFound.
func (s *Server) SignInLink(ctx context.Context, user string) (string, error) {
	if s.options.PublicURL == "" {
		return "", &souvenir.Error{Kind: souvenir.KindInvalid, Argument: "public_url",
			Message: "public_url is empty; the dashboard, and links to it, need one"}
	}
	path, err := s.signin.Link(ctx, user)
	if err != nil {
		return "", err
	}
	return s.options.PublicURL + path, nil
}

// CheckPublicURL checks that a URL can be the PublicURL of [Options]: http or https, with a host, with or without a
// path, without user, query and fragment.
func CheckPublicURL(publicURL string) error {
	u, err := url.Parse(publicURL)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(publicURL, "?#")) {
		err = errors.New("it does not have that form")
	}
	if err == nil && u.Path != "" && u.Path != u.JoinPath().Path {
		err = errors.New("its path is not in its shortest form")
	}
	if err == nil {
		return nil
	}
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: "public_url", Err: err,
		Message: "public_url is " + strconv.Quote(publicURL) +
			"; expected a URL such as https://memory.example.com, http or https, without user, query and fragment"}
}

// trustPublicURL checks the public URL and lets pages there use the cookie: behind a proxy, the Host that arrives
// here may differ.
func trustPublicURL(crossSite *http.CrossOriginProtection, publicURL string) error {
	if err := CheckPublicURL(publicURL); err != nil {
		return err
	}
	u, err := url.Parse(publicURL)
	if err != nil {
		return err
	}
	return crossSite.AddTrustedOrigin(u.Scheme + "://" + u.Host)
}
