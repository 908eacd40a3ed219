package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/metrics"
)

// settings are the flags of serve.
type settings struct {
	db                  *location
	listen, publicURL   *string
	noQueryTokens       *bool
	trustedProxies      networks
	toolsets            *[]string
	secrets             *string
	readOnly            *bool
	adminUser           *string
	adminPassword       *secret
	maxFile, fileQuota  byteSize
	indexMemory         byteSize
	memoryQuota         souvenir.Quota
	textQuota           byteSize
	logLevel, logFormat *string
	grace               *time.Duration
	purgeEvery          *time.Duration
	keepRevisions       *int
	keepActivity        *time.Duration
	maxActivity         *int
	trashDays           *int
	noActivity          *bool
	maxRunning          *int
	maxRunningPerUser   *int
	queuePerUser        *int
	queueWait           *time.Duration
	bodyMemory          byteSize
	metrics             *string
	backups             schedule
	listed              func() []server.Setting
	changeable          func() []souvenir.SettingName // the settings that no flag fixes
	provider            providerFlags
	embedder            embedderFlags
}

const (
	defaultListen = "127.0.0.1:8377"
	mostKept      = 100 * 365 * 24 * time.Hour // of recorded calls
)

const serveHelp = `Serves the store to AI clients over HTTP, and creates its file if it does not exist. The store can
also be in a PostgreSQL database, with --db postgres://USER@HOST/NAME; several servers can share
one. Put its password into PGPASSWORD, ~/.pgpass or SOUVENIR_DB. When the server is ready it
prints one line, "listening on http://HOST:PORT", to standard output; everything else goes
to standard error.

It listens on this machine only. To make it reachable from elsewhere, put a proxy with TLS in front
of it, such as Caddy or nginx, and set --public-url to the URL that clients use. The server derives
all its addresses from that URL, which must not change.

With --metrics it serves Prometheus metrics on a second address, for the operator only. With
--backup-to it backs its file up at an interval, restores and checks each backup, and keeps the
newest; "souvenir restore --drill" checks one backup by hand.

It cleans up daily, as "souvenir purge" does: it never deletes memories or files, and past versions
of memories only with --keep-revisions.

SIGTERM and SIGINT (Ctrl-C) stop it: it finishes running requests, for up to --grace; a second
signal stops it at once. Every answered write is on disk in any case.

On a store without users who can sign in, it prints a link to a page that creates an admin account.
The link works once, for 24 hours; another start prints a new one, and the old one stops working. Or
create the first user with --admin-user and --admin-password or --admin-password-file.

--embedder chooses what turns texts into vectors: the built-in model, or a service such as openai or
ollama; its key comes from --embedder-key-file or a variable. Changing it embeds all memories again
in the background; until then searches work by words. Give mcp, search and reindex the same flags.

--s3-bucket and the other --s3-... flags put the content of files into object storage instead of the
database; its key comes from --s3-secret-key-file or a variable. "souvenir files move" moves
existing files. Give mcp, check, export, import, copy and purge the same flags.

If you use OpenID Connect, people can sign in there, with --oidc-issuer and --oidc-client-id.
Register this server at the provider with the redirect URI PUBLIC-URL/login/provider/callback.
People link their account at the provider in their profile; or --oidc-create-domain creates accounts
for everyone with an e-mail address, verified by the provider, in a domain.`

func (c *cli) serveCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "serve [flags]", GroupID: groupServer,
		Short: "Serve the store over HTTP",
		Long:  serveHelp,
		Example: `  souvenir serve
  souvenir serve --db /var/lib/souvenir/souvenir.db --listen 127.0.0.1:9000 --public-url https://memory.example.com
  SOUVENIR_ADMIN_USER=anna SOUVENIR_ADMIN_PASSWORD_FILE=/run/secrets/admin souvenir serve`,
	}
	flags := command.Flags()
	s := &settings{
		db:     dbFlag(command),
		listen: flags.String("listen", defaultListen, "`host:port` to listen on; port 0 picks a free one"),
		publicURL: flags.String("public-url", "",
			"`url` where clients reach the server; if empty, http:// and the address it listens on"),
		noQueryTokens: flags.Bool("no-query-tokens", false,
			"reject tokens in URLs (?token=), which end up in browser histories and logs"),
		toolsets: toolsetsFlag(command),
		secrets:  secretsFlag(command),
		readOnly: flags.Bool("read-only", false,
			"offer only tools that change nothing, over MCP and POST /tools/call; other endpoints are not affected"),
		adminUser: flags.String("admin-user", "",
			"`name` of the first user, an admin; ignored if there are users"),
		adminPassword: secretFlag(command, "admin-password", "the first user's password"),
		maxFile:       100 << 20, fileQuota: 20 << 30, textQuota: 10 << 30,
		indexMemory: 1 << 30,
		logLevel:    flags.String("log-level", "info", "minimum `level` of log messages: debug, info, warn or error"),
		logFormat:   flags.String("log-format", "text", "`format` of the log: text or json"),
		grace: flags.Duration("grace", 30*time.Second,
			"maximum `duration` for running requests to finish when the server stops"),
		purgeEvery: flags.Duration("purge-every", 24*time.Hour,
			"`duration` between cleanups, as with \"souvenir purge\"; 0: never"),
		provider: newProviderFlags(command),
		embedder: newEmbedderFlags(command),
		keepActivity: flags.Duration("keep-activity", 30*24*time.Hour,
			"`duration` for which recorded calls are kept, for the Activity page"),
		trashDays: trashDaysFlag(command),
		maxActivity: flags.Int("max-activity", 100_000,
			"maximum `number` of recorded calls; above it the oldest are deleted"),
		noActivity: flags.Bool("no-activity", false, "record no calls; earlier records stay until they expire"),
		maxRunning: flags.Int("max-running", 0,
			"maximum `number` of requests that use the processors at the same time, not counting requests that wait for the "+
				"disk or a model; 0: one per processor"),
		maxRunningPerUser: flags.Int("max-running-per-user", 0,
			"maximum `number` of these for one user; 0: one less than --max-running, but at least one. A user who has been "+
				"alone for 10 s may use all"),
		queuePerUser: flags.Int("queue-per-user", 256,
			"maximum `number` of waiting requests per user; further ones get 503 and Retry-After"),
		queueWait: flags.Duration("queue-wait", 15*time.Second,
			"maximum `duration` that a request waits for its turn before it gets 503"),
		bodyMemory: 64 << 20,
		listed:     func() []server.Setting { return listedSettings(flags) },
		changeable: func() []souvenir.SettingName { return changeableHere(flags) },
		keepRevisions: keepRevisionsFlag(command,
			"at each cleanup keep the newest `number` of past versions of each memory, and delete the others; 0 "+
				"keeps all"),
	}
	limitFlags(flags, s)
	s.operationFlags(command)
	_ = command.RegisterFlagCompletionFunc("log-level",
		cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	_ = command.RegisterFlagCompletionFunc("log-format",
		cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c.storing(command, func(ctx context.Context, _ []string) error { return c.serve(ctx, s) })
}

// limitFlags adds the flags that limit what users may store and how much memory that takes, and those for the proxies
// that the server trusts.
func limitFlags(flags *pflag.FlagSet, s *settings) {
	flags.Var(&s.trustedProxies, "trusted-proxies",
		"`addresses` and networks of proxies, separated by commas, whose X-Forwarded-For is trusted; none: no proxy "+
			"(default this machine)")
	flags.Var(&s.maxFile, "max-file", "maximum `bytes` of an uploaded file, such as 500MiB; 0: no limit")
	flags.Var(&s.fileQuota, "file-quota", "maximum `bytes` of all files of a user; 0: no limit")
	flags.IntVar(&s.memoryQuota.Memories, "memory-quota", 1_000_000, "maximum `number` of memories per user; 0: no limit")
	flags.IntVar(&s.memoryQuota.Revisions, "revision-quota", 5_000_000,
		"maximum `number` of past versions of memories per user; 0: no limit")
	flags.IntVar(&s.memoryQuota.Items, "item-quota", 100_000,
		"maximum `number` of collections, of projects and of files per user; 0: no limit")
	flags.Var(&s.textQuota, "text-quota", "maximum `bytes` of a user's memories, including past versions; 0: no limit")
	flags.Var(&s.bodyMemory, "body-memory",
		"maximum `bytes` of memory for the bodies of all requests, half of it for one user; uploaded files do not count")
	flags.Var(&s.indexMemory, "index-memory",
		"maximum `bytes` of memory for the search index; above it, and with 0, searches run on disk")
}

// quota returns the quota of each user.
func (s *settings) quota() souvenir.Quota {
	q := s.memoryQuota
	q.Bytes = int64(s.textQuota)
	return q
}

// check refuses settings that cannot work, before anything is opened.
func (s *settings) check() error {
	if _, _, err := net.SplitHostPort(*s.listen); err != nil {
		return misused("--listen is %q; give HOST:PORT, such as %s: %v", *s.listen, defaultListen, err)
	}
	if *s.publicURL != "" {
		if err := server.CheckPublicURL(*s.publicURL); err != nil {
			return misused("--public-url: %v", err)
		}
	}
	if err := s.checkKept(); err != nil {
		return err
	}
	s.backups.of = *s.db
	if err := s.backups.check(*s.db); err != nil {
		return err
	}
	return s.checkTurns()
}

// operationFlags adds the flags for operators.
func (s *settings) operationFlags(command *cobra.Command) {
	flags := command.Flags()
	s.metrics = flags.String("metrics", "",
		"`host:port` for metrics, at /metrics, and /problems, without credentials; empty: none")
	flags.StringVar(&s.backups.dir, "backup-to", "",
		"`folder` for scheduled backups, each verified by restoring it; empty: none")
	flags.DurationVar(&s.backups.every, "backup-every", 24*time.Hour, "`duration` between scheduled backups")
	flags.IntVar(&s.backups.keep, "keep-backups", 14, "`number` of scheduled backups to keep, the newest")
	_ = command.MarkFlagDirname("backup-to") // for completion only; the flag is there
}

func (c *cli) serve(ctx context.Context, s *settings) error {
	log, err := c.logger(*s.logLevel, *s.logFormat)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	chosen, err := chooseToolsets(*s.toolsets)
	if err != nil {
		return err
	}
	admin, err := s.admin()
	if err != nil {
		return err
	}
	provider, err := s.provider.provider()
	if err != nil {
		return err
	}
	embedder, err := s.embedder.embedder()
	if err != nil {
		return err
	}
	// Listening comes first, so that a server that cannot be reached creates no file. Early connections wait.
	listener, err := net.Listen("tcp", *s.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	own, err := listenForMetrics(*s.metrics)
	if err != nil {
		return err
	}
	measured := metrics.New(&metrics.Options{Version: readBuild().Version, Revision: readBuild().Revision, Logger: log})
	options := s.storeOptions(log, embedder, s.hooks(measured))
	if err := treatSecrets(options, *s.secrets); err != nil {
		return err
	}
	store, err := s.db.open(ctx, options)
	if err != nil {
		return openError(*s.db, forMaking, err)
	}
	defer store.Close()
	measured.Watch(store)
	defer serveMetrics(ctx, own, measured, log)()
	objectsOf(ctx).warn(ctx, log)
	first, err := addFirstUser(ctx, store, admin, log)
	if err != nil {
		return err
	}
	publicURL := *s.publicURL
	if publicURL == "" {
		publicURL = localURL(address(*s.listen, listener))
	}
	if first, err = first.withLink(ctx, store, publicURL); err != nil {
		return err
	}
	warnOfPlainHTTP(log, listener.Addr(), publicURL)
	handler := server.New(store, s.serverOptions(log, measured, publicURL, chosen, provider))
	if err := store.Upkeep().RecordConfiguration(ctx); err != nil && ctx.Err() == nil {
		log.Warn("could not record the configuration of this start in the audit log", "error", err)
	}
	if !s.db.isDatabase() {
		defer announce(string(*s.db), log)()
	}
	fmt.Fprintf(&c.out, "listening on http://%s\n", address(*s.listen, listener))
	c.welcome(log, *s.logFormat, first, s.db.String(), publicURL)
	stop := s.startUpkeep(ctx, store, measured, log)
	defer stop()
	if err := store.Upkeep().LoadIndex(ctx); err != nil && ctx.Err() == nil {
		log.Warn("the search index could not be loaded at the start; the first search tries again", "error", err)
	}
	if err := server.Serve(ctx, listener, handler, &server.ServeOptions{Grace: *s.grace, Logger: log}); err != nil {
		return err
	}
	stop()
	return store.Close()
}

// serverOptions returns how the server works.
func (s *settings) serverOptions(log *slog.Logger, measured *metrics.Metrics, publicURL string,
	chosen []mcpserver.Toolset, provider *server.Provider) *server.Options {
	return &server.Options{
		PublicURL: publicURL, Version: readBuild().Version, Logger: log, NoQueryTokens: *s.noQueryTokens,
		OnRequest: measured.Answered, OnCall: measured.Called,
		TrustedProxies: s.trustedProxies,
		Toolsets:       chosen, ReadOnly: *s.readOnly, Snippets: snippets, Provider: provider, NoActivity: *s.noActivity,
		Settings: s.listed(), Backups: s.backups.state(),
		MaxRunning: *s.maxRunning, MaxRunningPerUser: *s.maxRunningPerUser, QueuePerUser: *s.queuePerUser,
		QueueWait: *s.queueWait, BodyMemory: int64(s.bodyMemory),
	}
}

// storeOptions returns how the store works.
func (s *settings) storeOptions(log *slog.Logger, embedder souvenir.Embedder,
	hooks []souvenir.Hooks) *souvenir.Options {
	o := &souvenir.Options{Reserve: serveReserve, Embedder: embedder, Hooks: hooks, Documents: documentReader(),
		MaxFile: s.maxFile.limit(), FileQuota: int64(s.fileQuota), Quota: s.quota(), IndexMemory: s.indexMemory.limit(),
		Logger: log, KeepActivity: *s.keepActivity, MaxActivity: *s.maxActivity, KeepTrash: keepTrash(*s.trashDays),
		Changeable: s.changeable()}
	if s.backups.dir != "" {
		o.BackupEvery, o.KeepBackups = s.backups.every, s.backups.keep
	}
	return o
}

// hooks returns the store's hooks: for metrics, if they are served.
func (s *settings) hooks(m *metrics.Metrics) []souvenir.Hooks {
	if *s.metrics == "" {
		return nil
	}
	return []souvenir.Hooks{m.Hooks()}
}

// startUpkeep begins the daily cleanup, the scheduled backups and the warm-up for the first pages, and returns a
// function that ends them and waits.
func (s *settings) startUpkeep(ctx context.Context, store *souvenir.Store, m *metrics.Metrics,
	log *slog.Logger) (stop func()) {
	b := s.backups
	b.now = time.Now
	b.note = func(made metrics.Backup) {
		m.BackedUp(made)
		b.last.Store(&made)
	}
	b.announce = func(every time.Duration) {
		m.BackupsEvery(every)
		b.often.Store(int64(every))
	}
	endPurging := upkeep{*s.purgeEvery, *s.keepRevisions}.start(ctx, store, log)
	endBackups := b.start(ctx, store, log)
	endWarming := startWarming(ctx, store, log)
	return func() {
		endPurging()
		endBackups()
		endWarming()
	}
}

// settingsOfFlags are the settings that admins may change on the dashboard, by the flags that fix them.
var settingsOfFlags = map[string]souvenir.SettingName{
	"memory-quota": souvenir.SettingMemories, "revision-quota": souvenir.SettingRevisions,
	"item-quota": souvenir.SettingItems, "text-quota": souvenir.SettingBytes, "file-quota": souvenir.SettingFileBytes,
	"trash-days": souvenir.SettingTrash, "keep-activity": souvenir.SettingActivity,
	"max-activity": souvenir.SettingCalls,
}

// settingsOfServers are those of the running server alone: other programs on the store have memory of their own, and
// make no backups.
var settingsOfServers = map[string]souvenir.SettingName{
	"index-memory": souvenir.SettingIndex, "backup-every": souvenir.SettingBackups, "keep-backups": souvenir.SettingKept,
}

// changeable returns the settings whose flags are not given. They may be changed while the program runs: by the program
// itself, or else by the server on the same store.
func changeable(flags *pflag.FlagSet) (names []souvenir.SettingName) {
	for flag, name := range settingsOfFlags {
		if f := flags.Lookup(flag); f == nil || !f.Changed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changeableHere returns what may be changed while a server runs. Without a folder it makes no backups.
func changeableHere(flags *pflag.FlagSet) []souvenir.SettingName {
	names := changeable(flags)
	for flag, name := range settingsOfServers {
		if f := flags.Lookup(flag); !f.Changed && (name == souvenir.SettingIndex ||
			flags.Lookup("backup-to").Value.String() != "") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// listedSettings returns the flags with their values, without secrets.
func listedSettings(flags *pflag.FlagSet) []server.Setting {
	var all []server.Setting
	flags.VisitAll(func(flag *pflag.Flag) {
		if !hasVariable(flag) {
			return
		}
		_, meaning := pflag.UnquoteUsage(flag)
		listed := server.Setting{Name: "--" + flag.Name, Value: flag.Value.String(), Meaning: meaning, Given: flag.Changed}
		if flag.Annotations[ofEnvironment] != nil {
			listed.Variable = variable(flag.Name)
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok && len(list.GetSlice()) == 0 {
			listed.Value = "" // instead of []
		}
		if flag.Annotations[ofSecret] != nil && listed.Value != "" {
			listed.Value = "(set)"
		}
		all = append(all, listed)
	})
	return all
}

func (c *cli) logger(level, format string) (*slog.Logger, error) {
	var least slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, level) || least.UnmarshalText([]byte(level)) != nil {
		return nil, misused("--log-level is %q; give debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: least}
	switch format {
	case "text":
		return slog.New(server.LogHandler(slog.NewTextHandler(c.stderr, options))), nil
	case "json":
		return slog.New(server.LogHandler(slog.NewJSONHandler(c.stderr, options))), nil
	}
	return nil, misused("--log-format is %q; give text or json", format)
}

// admin returns the first user from the settings; nil for none.
func (s *settings) admin() (*souvenir.NewUser, error) {
	password, err := s.adminPassword.read()
	switch {
	case err != nil:
		return nil, err
	case *s.adminUser == "" && password == "":
		return nil, nil
	case *s.adminUser == "":
		return nil, misused("--admin-password is given without --admin-user; give both, or neither")
	case password == "":
		return nil, misused("--admin-user is given without --admin-password or --admin-password-file; give both, or neither")
	}
	return &souvenir.NewUser{Name: *s.adminUser, Password: password, Role: souvenir.RoleAdmin}, nil
}

// firstUser describes the users of a store when the server started.
type firstUser struct {
	missing bool   // there are no accounts
	added   string // name of the new admin
	link    string // to the page that creates the first account, if there is none
}

// withLink adds the link, which replaces the links of former starts.
func (f firstUser) withLink(ctx context.Context, store *souvenir.Store, publicURL string) (firstUser, error) {
	if !f.missing {
		return f, nil
	}
	invitation, err := store.Accounts().AddInvitation(ctx, souvenir.NewInvitation{Purpose: souvenir.InvitationSetup})
	if errors.Is(err, souvenir.ErrConflict) { // another process has just created an account
		return firstUser{}, nil
	}
	f.link = strings.TrimSuffix(publicURL, "/") + server.SetupPath(invitation.Value)
	return f, err
}

// addFirstUser creates the admin in a store without accounts.
func addFirstUser(ctx context.Context, store *souvenir.Store, admin *souvenir.NewUser, log *slog.Logger) (firstUser,
	error) {
	hasAccount, err := store.Accounts().HasAccounts(ctx)
	switch {
	case err != nil:
		return firstUser{}, err
	case admin == nil:
		return firstUser{missing: !hasAccount}, nil
	case hasAccount:
		log.Debug("the store has users, so --admin-user is ignored", "admin_user", admin.Name)
		return firstUser{}, nil
	}
	added, err := store.Accounts().AddUser(ctx, *admin)
	if errors.Is(err, souvenir.ErrConflict) {
		if has, err := store.Accounts().HasAccounts(ctx); err != nil || has { // another process has just done the same
			return firstUser{}, err
		}
		added, err = setUpAs(ctx, store, *admin)
	}
	if err != nil {
		return firstUser{}, fmt.Errorf("the first user cannot be created from --admin-user and --admin-password: %w", err)
	}
	log.Info("created the first user", "name", added.Name)
	return firstUser{added: added.Name}, nil
}

// setUpAs gives an account without a password the password of the first user, as the link that a start prints does.
func setUpAs(ctx context.Context, store *souvenir.Store, admin souvenir.NewUser) (souvenir.User, error) {
	i, err := store.Accounts().AddInvitation(ctx, souvenir.NewInvitation{Purpose: souvenir.InvitationSetup})
	if err != nil {
		return souvenir.User{}, err
	}
	return store.Accounts().AcceptInvitation(ctx,
		souvenir.InvitationAcceptance{Value: i.Value, Name: admin.Name, Password: admin.Password})
}

// address returns where a listener can be reached: the host as requested, with the actual port.
func address(asked string, listener net.Listener) string {
	host, _, err := net.SplitHostPort(asked)
	_, port, err2 := net.SplitHostPort(listener.Addr().String())
	if err != nil || err2 != nil || host == "" {
		return listener.Addr().String()
	}
	return net.JoinHostPort(host, port)
}

// localURL returns how this machine reaches an address.
func localURL(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		address = net.JoinHostPort("localhost", port)
	}
	return "http://" + address
}

func warnOfPlainHTTP(log *slog.Logger, listening net.Addr, publicURL string) {
	if tcp, ok := listening.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !isHTTPS(publicURL) {
		log.Warn("other machines can reach this server, and their requests are not encrypted; put a proxy with TLS in front "+
			"of it and set --public-url to its https URL", "listen", listening.String())
	}
}

// welcome says what to do next after the first start on a store without users.
func (c *cli) welcome(log *slog.Logger, format string, first firstUser, db, publicURL string) {
	if !first.missing && first.added == "" {
		return
	}
	flag := ""
	if db != "souvenir.db" {
		flag = " --db " + shellQuote(db)
	}
	connect := connection{url: strings.TrimSuffix(publicURL, "/") + "/mcp"}
	if first.missing {
		addUser := "souvenir user add NAME --admin" + flag
		addToken := "souvenir token add --user NAME --name laptop" + flag
		add := claudeCode.overHTTP(connect) // a browser is at hand, so it needs no token
		if format == "json" {
			log.Info("no one can sign in yet", "set_up", first.link, "connect", add, "add_user", addUser, "add_token", addToken)
			return
		}
		fmt.Fprintf(c.stderr, `
No one can sign in yet. Open this link to create the first account; it works once, for 24 hours:

  %s

Then connect a client, which opens a browser and asks you for access; for example Claude Code
("souvenir client-config" has others):

  %s

Without a browser, create a user and a token here:

  %s
  %s

`, first.link, add, addUser, addToken)
		return
	}
	connect.token = exampleToken
	addToken := "souvenir token add --user " + shellQuote(first.added) + " --name laptop" + flag
	add := claudeCode.overHTTP(connect)
	if format == "json" {
		log.Info("there are no tokens yet", "add_token", addToken, "connect", add)
		return
	}
	fmt.Fprintf(c.stderr, "\nCreate a token for a client:\n\n  %s\n\nGive it to the client, for example Claude Code "+
		"(\"souvenir client-config\" has others):\n\n  %s\n\n", addToken, add)
}

// serveReserve is the size in bytes of a server's reserve file, for deleting on a full disk.
const serveReserve = 16 << 20
