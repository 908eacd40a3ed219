package server

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server/internal/authserver"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/clients"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/upkeep"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// APIVersion is the version of the interface that is served: that of GET /health.
const APIVersion = "1.0.1"

// Options change how a Server works. Nil, and the zero value of each field, mean the default named there.
type Options struct {
	// PublicURL is where clients reach the server, with the prefix under which it is mounted, if any: the one source of
	// the addresses that it tells, and the issuer of the access tokens that it accepts. Empty means that it does not know:
	// then it accepts MCP tokens only. It must be as CheckPublicURL wants it; another one is told to the Logger and counts
	// as empty.
	PublicURL string

	// Version is the version of the program, for /health and /openapi.json. Empty means that nobody is told.
	Version string

	// Logger hears of every request (without its query, its credential and its content) and of the causes of errors that
	// callers are not told. Nil means silence.
	Logger *slog.Logger

	// Authenticate tells whom a request speaks for, in a program that has users and a sign-in of its own. It is asked
	// before the credential of a request is looked at, for every route that needs one; the pages on which people sign in
	// to the server itself do not ask it. What it says is trusted. It must be safe for concurrent use. Nil means that
	// nobody is asked.
	//
	// It returns nil, nil for a request that it has nothing to say about: then the request's own MCP token or access token
	// decides. Otherwise Access.User of what it returns is a user's id, or the name of an account, and must not be empty;
	// an id that nobody has yet becomes a user with the first write. Access.Projects and Access.ReadOnly narrow the view.
	// Scopes that are nil mean souvenir.DefaultScopes: neither ScopeAccount nor ScopeAdmin. The other fields are not
	// looked at; whether the user is disabled, and an admin, is looked up.
	//
	// An error ends the request: of kind ErrUnauthenticated as 401, ErrForbidden as 403, and whatever is no
	// [souvenir.Error] as 500, of which the caller is told nothing and the Logger all. Requests by which a page of another
	// origin would change something are refused with 403, since a browser may have sent the program's cookie with them.
	Authenticate func(*http.Request) (*souvenir.Principal, error)

	// NoQueryTokens refuses credentials in the query parameter token, which ends up in histories and other programs' logs.
	// False means that they are accepted.
	NoQueryTokens bool

	// Toolsets are the tools that clients of the Model Context Protocol are offered; unknown ones are ignored. Nil means
	// mcpserver.ToolsetMemory. POST /tools/call knows that set only.
	Toolsets []mcpserver.Toolset

	// ReadOnly leaves out the tools, and actions of tools, that change something. The other endpoints are not affected.
	// False means that credentials decide.
	ReadOnly bool

	// NoActivity keeps calls from being recorded in the store. False means that every call of a tool, a file or another
	// endpoint by somebody who is known is recorded: who, with what, on what, when, how long and how it ended; see
	// [souvenir.Upkeep.RecordActivity].
	NoActivity bool

	// Settings are what the program was started with, for the page on which admins look at it: what is set, and to what.
	// Nil means that the page tells what the server itself knows.
	Settings []Setting

	// Snippets says how AI clients are connected with the MCP endpoint, for the pages: each with what to paste, with a
	// token, or without ("") for clients that let people sign in. Nil means that the pages tell the address and the token
	// alone.
	Snippets func(address, token string) []Snippet

	// LoginTries is how many wrong passwords cost nothing, for a name from an address, before each costs a wait that is
	// twice as long as the one before: 2 seconds to 15 minutes. Zero means 5. From an address with any names, and for a
	// name from any addresses, 20 cost nothing (or LoginTries, if that is more), and later ones up to a minute.
	LoginTries int

	// Provider is an external OpenID Connect provider at which people may sign in, too. Nil means none: names and
	// passwords only. It needs a PublicURL, and must be as CheckProvider wants it; another one is told to the Logger and
	// counts as nil.
	Provider *Provider

	// MaxBody is the most bytes that a request may have, those of an uploaded file not counted, which [souvenir.Options]
	// limits. Zero means 8 MiB: a memory of the largest size, however it is written in JSON.
	MaxBody int64

	// MaxRunning is how many requests of people and programs that have signed in may use the processors at once; a request
	// that waits for the disk, a model or its client does not count. Zero means as many as there are processors
	// (GOMAXPROCS).
	MaxRunning int

	// MaxRunningPerUser is how many of them may be one user's: more wait, and users take turns. Zero means one less than
	// MaxRunning, and at least one, so that another user's request finds a processor; and MaxRunning once nobody else has
	// asked for ten seconds.
	MaxRunningPerUser int

	// QueuePerUser is how many requests of a user may wait for their turn; more are answered with 503 and Retry-After. Of
	// all users, 16 times as many may wait. Zero means 256.
	QueuePerUser int

	// QueueWait is how long a request waits for its turn, and for memory for its body, before it is answered with 503.
	// Zero means 15 seconds.
	QueueWait time.Duration

	// BodyMemory is how many bytes the bodies of all requests may take up in memory at once, those of one user half of
	// that; others wait. Uploaded files are not held in memory. Zero means 64 MiB; it is at least twice MaxBody.
	BodyMemory int64

	// Patience is how long a client may be silent while it sends a request or takes an answer. Zero means a minute.
	Patience time.Duration

	// TrustedProxies are the addresses of proxies that are believed when they say, in X-Forwarded-For, whom a request
	// comes from: limits that hold for an address count by it. Nil means proxies on this machine (127.0.0.0/8 and ::1); an
	// empty list means none.
	TrustedProxies []netip.Prefix

	// ClientDocuments fetches the documents of OAuth clients that are known by a URL (client id metadata documents). Nil
	// means a client that connects to public addresses only, without a proxy. Anybody can make the server fetch such a
	// URL: where a proxy is needed, or where such clients lie in the own network, give one whose Transport reaches no more
	// than it must. Redirects, cookies and more than 5 seconds are never allowed.
	ClientDocuments *http.Client
}

// Snippet is what connects an AI client with the server: a command to run, a piece of a configuration file, or what to
// do.
type Snippet struct {
	Client string // its name, such as Claude Code
	Where  string // where the text belongs
	Text   string // to be pasted
}

// Setting is something that the program was started with.
type Setting struct {
	Name    string // such as --max-file
	Value   string // never a secret
	Meaning string // a few words
	Given   bool   // false: it is the default
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
	signin    *signin.Service      // how people come in
	oauth     *authserver.Server   // which lets applications in
	dashboard *dashboard.Dashboard // its pages
	site      *web.Site            // what the pages stand in
	mcp       http.Handler         // of the Model Context Protocol
	toolNames []string             // which the log may tell
	document  []byte               // of /openapi.json
	queries   map[string][]string  // parameters of the routes that refuse others

	clients clientNames // of MCP
	queue   *fairqueue.Queue
	bodies  *fairqueue.Budget // of requests, in memory
}

// New makes a server for a store, which is the operator's, as [souvenir.Open] returned it: only that one can tell whom
// a credential speaks for. The handler answers paths from "/" on; mount it under a prefix with [http.StripPrefix].
// OAuth clients look for the metadata of a service with a prefix at the root of its host (RFC 8414 and RFC 9728): mount
// the handler at /.well-known/ there, without stripping anything, as well.
func New(store *souvenir.Store, options *Options) *Server {
	s := &Server{store: store, mux: http.NewServeMux()}
	if options != nil {
		s.options = *options
	}
	s.options.MaxBody = cmp.Or(max(s.options.MaxBody, 0), defaultMaxBody)
	s.queue, s.bodies = newTurns(&s.options)
	s.options.Patience = cmp.Or(max(s.options.Patience, 0), defaultPatience)
	if s.log = s.options.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.options.PublicURL = strings.TrimSuffix(s.options.PublicURL, "/")
	crossSite := http.NewCrossOriginProtection()
	if s.options.PublicURL != "" {
		if err := trustPublicURL(crossSite, s.options.PublicURL); err != nil {
			s.log.Error("the public URL cannot be used; only MCP tokens are accepted", "error", err)
			s.options.PublicURL = ""
		}
	}
	s.mcp = s.newMCP()
	s.addRooms(crossSite)
	s.mount()
	s.document = s.openAPI()
	return s
}

// addRooms makes what answers on the pages and at the OAuth endpoints.
func (s *Server) addRooms(crossSite *http.CrossOriginProtection) {
	s.site = web.New(web.Options{PublicURL: s.options.PublicURL, MaxBody: s.options.MaxBody, CrossSite: crossSite,
		Logger: s.log})
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
		Snippets:  s.snippets(), Settings: s.settings(),
	})
}

// snippets are those of the options, as the pages take them; nil: none are given.
func (s *Server) snippets() func(address, token string) []clients.Snippet {
	if s.options.Snippets == nil {
		return nil
	}
	return func(address, token string) []clients.Snippet {
		var all []clients.Snippet
		for _, one := range s.options.Snippets(address, token) {
			all = append(all, clients.Snippet(one))
		}
		return all
	}
}

// settings are the options that the pages show.
func (s *Server) settings() upkeep.Settings {
	o := s.options
	shown := upkeep.Settings{
		Version: o.Version, APIVersion: APIVersion, MaxRunning: o.MaxRunning, MaxRunningPerUser: o.MaxRunningPerUser,
		QueuePerUser: o.QueuePerUser,
		QueueWait:    o.QueueWait, BodyMemory: o.BodyMemory, NoActivity: o.NoActivity, NoQueryTokens: o.NoQueryTokens,
		ReadOnly: o.ReadOnly,
	}
	if s.signin.HasProvider() {
		shown.Provider = cmp.Or(o.Provider.Name, o.Provider.Issuer)
	}
	for _, one := range o.Settings {
		shown.Flags = append(shown.Flags, upkeep.Flag(one))
	}
	return shown
}

// identityProvider is the external provider at which people may sign in; nil: none.
func (s *Server) identityProvider() *signin.Provider {
	if s.options.PublicURL == "" { // to which it would answer
		return nil
	}
	return (*signin.Provider)(s.options.Provider)
}

// CheckPublicURL says whether a URL can be the PublicURL of [Options]: http or https, with a host, with or without a
// path, without user, query and fragment.
func CheckPublicURL(publicURL string) error {
	u, err := url.Parse(publicURL)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(publicURL, "?#")) {
		err = errors.New("it is not of that form")
	}
	if err == nil && u.Path != "" && u.Path != u.JoinPath().Path {
		err = errors.New("its path is not in its shortest form")
	}
	if err == nil {
		return nil
	}
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: "public_url", Err: err,
		Message: "public_url is " + strconv.Quote(publicURL) +
			"; a URL such as https://memory.example.com is needed, http or https, without user, query and fragment"}
}

// trustPublicURL checks the public URL and lets pages that lie there use the cookie: behind a proxy the Host that
// arrives here may be another.
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
