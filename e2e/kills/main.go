// Command kills kills servers as kill -9 does, at random moments of a mixed load over HTTP, starts them again, and
// compares everything in the store with what was answered.
//
//	kills -program FILE -db WHERE -token TOKEN -colleague TOKEN -logs FOLDER [FLAG...]
//
// WHERE is a file or the address of a PostgreSQL database, for this run alone. A round starts the servers, loads them,
// kills them, starts them, and compares: each object of the load must match its last answer, or, if its last call got
// no answer, the state before or after the call; and nothing else may exist. It stops at the first round that finds a
// difference, reports it, and exits with status 1. The last line has the counts.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"time"
)

// settings are the flags.
type settings struct {
	program, db, token, logs string
	colleague                string
	rounds, servers, checks  int
	clients                  int
	seed                     uint64
	endNode, startNode       string
	load, duration           time.Duration
	backups                  string
	soak                     *soak // nil: not a soak test
	memory                   int   // MiB of address space that a server may add under load; 0: any
}

func main() {
	var s settings
	flag.StringVar(&s.program, "program", "", "the program souvenir")
	flag.StringVar(&s.db, "db", "", "file or address of the store")
	flag.StringVar(&s.token, "token", "", "a token of the user who has everything, with all scopes")
	flag.StringVar(&s.colleague, "colleague", "", "a token of the other user, ben, with all scopes")
	flag.StringVar(&s.logs, "logs", "", "folder for the logs of the servers")
	flag.IntVar(&s.rounds, "rounds", 10, "how many rounds")
	flag.IntVar(&s.servers, "servers", 1, "how many servers share the store")
	flag.IntVar(&s.checks, "check-every", 10, "rounds between two checks of the store")
	flag.IntVar(&s.clients, "clients", 12, "how many clients write at the same time")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "of the load and of the moments")
	flag.StringVar(&s.endNode, "end-node", "", "a command that ends the database as a crash would; then servers are "+
		"killed in every second round")
	flag.StringVar(&s.startNode, "start-node", "", "a command that starts it again")
	flag.DurationVar(&s.load, "load", 600*time.Millisecond, "the longest load before a kill")
	flag.DurationVar(&s.duration, "soak", 0, "how long to go on, with rounds of the whole -load: it watches what the "+
		"server uses, and makes backups underneath")
	flag.IntVar(&s.memory, "memory", 0, "`MiB` of addresses that servers under load may have more than at their start; "+
		"they end when they need more")
	flag.StringVar(&s.backups, "backups", "", "folder for the backups of -soak")
	flag.Parse()
	if s.program == "" || s.db == "" || s.token == "" || s.colleague == "" || s.logs == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(&s); err != nil {
		fmt.Fprintln(os.Stderr, "kills:", err)
		os.Exit(1)
	}
}

// totals are the sums over all rounds.
type totals struct {
	rounds, kills, early, nodes, checks int
	starved                             int
	answered, unanswered                int
	compared, happened                  int
	refused                             int
	slowest                             time.Duration // from the start of a server to its first line
}

func run(s *settings) error {
	began := time.Now()
	l := newLoad(s)
	fmt.Printf("seed %d\n", s.seed)
	var sum totals
	if s.duration > 0 {
		if s.backups == "" {
			return errors.New("-soak needs -backups")
		}
		s.rounds = math.MaxInt
		var err error
		if s.soak, err = newSoak(s); err != nil {
			return err
		}
		s.soak.calls = l.call.took.count
	}
	for round := 1; round <= s.rounds && (s.soak == nil || time.Since(began) < s.duration); round++ {
		if err := l.round(round, &sum); err != nil {
			return fmt.Errorf("seed %d, round %d: %w", s.seed, round, err)
		}
		if round%25 == 0 || round == s.rounds {
			fmt.Printf("%6.0f s: %d rounds, %d answered, %d without an answer, %d objects\n", time.Since(began).Seconds(),
				round, sum.answered, sum.unanswered, l.there())
		}
	}
	fmt.Printf("%s\nuploads: %s\n", l.call.took.String(), l.call.uploads.String())
	fmt.Printf("%d rounds: %d servers killed, %d of them while they started; %d ended for want of memory; the database "+
		"ended %d times; %d calls answered, %d without an answer, of which %d had happened, %d refused for want of the "+
		"database or of memory; %d objects compared, %d checks; nothing lost, half there or of unknown origin; the slowest "+
		"start %.1f s; %.0f s in all\n", sum.rounds, sum.kills, sum.early, sum.starved, sum.nodes, sum.answered,
		sum.unanswered, sum.happened, sum.refused, sum.compared, sum.checks, sum.slowest.Seconds(),
		time.Since(began).Seconds())
	if s.soak != nil {
		return s.soak.report()
	}
	return nil
}

// round is one round; the servers run neither before nor after it.
func (l *load) round(number int, sum *totals) error {
	s, random := l.settings, l.random
	node := s.endNode != ""
	servers, err := l.start(sum)
	if err != nil {
		return err
	}
	defer func() { stop(servers) }()
	for _, p := range servers {
		if s.memory > 0 {
			err = errors.Join(err, p.starve(s.memory))
		}
	}
	if err != nil {
		return err
	}
	stopped := l.begin(servers)
	if s.soak == nil {
		time.Sleep(time.Duration(float64(s.load) * (0.15 + 0.85*random.Float64())))
	} else if err := s.soak.watch(); err != nil {
		return err
	}
	if node {
		l.away.Store(true)
		sum.nodes++
		if err := shell(s.endNode); err != nil {
			return err
		}
	}
	for _, p := range servers {
		if p.gone() {
			sum.starved++
		}
	}
	if !node || number%2 == 0 {
		sum.kills += killSome(servers, random)
	}
	if node {
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		if err := shell(s.startNode); err != nil {
			return err
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
	}
	stopped()
	if node {
		l.away.Store(false)
	} else {
		sum.kills += killAll(servers)
	}
	sum.rounds++
	l.count(sum)
	if number%s.checks == 0 || number == s.rounds {
		sum.checks++
		if err := check(s); err != nil {
			return err
		}
	}
	if number%8 == 0 && !node { // killed while it recovers the store
		p, err := s.serve(0)
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(random.IntN(250)) * time.Millisecond)
		p.kill()
		sum.kills++
		sum.early++
	}
	if !node || !alive(servers) {
		stop(servers)
		if servers, err = l.start(sum); err != nil {
			return err
		}
	}
	if err := l.compare(servers, number, sum); err != nil {
		return err
	}
	return errors.Join(l.faults(), l.readLogs())
}

// check runs the command souvenir check.
func check(s *settings) error {
	out, err := exec.Command(s.program, "check", "--db", s.db).CombinedOutput()
	if err != nil {
		return fmt.Errorf("check: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func shell(command string) error {
	out, err := exec.Command("bash", "-c", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

func killSome(servers []*server, random *rand.Rand) int {
	killed := 0
	for i := range servers {
		if i == 0 || random.IntN(4) == 0 {
			servers[i].kill()
			killed++
		}
	}
	return killed
}

func killAll(servers []*server) (killed int) {
	for _, p := range servers {
		if !p.gone() {
			p.kill()
			killed++
		}
	}
	return killed
}
