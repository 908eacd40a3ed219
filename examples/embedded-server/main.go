// Embedded-server is a web application with users and a sign-in of its own. It gives each user a memory: it mounts
// Souvenir's server under /memory/ in its own mux, behind its own sign-in.
//
//	go run ./examples/embedded-server
//	curl -u anna:tulip localhost:8080/
//	curl -u anna:tulip localhost:8080/memory/tools/call -H 'Content-Type: application/json' \
//	  -d '{"name": "memory", "arguments": {"action": "store", "content": "Tea is at four."}}'
package main

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:8080")
	if err == nil {
		fmt.Printf("listening on http://%s\n", listener.Addr())
		err = run(ctx, "application.db", listener)
	}
	if err != nil {
		log.Print(err)
	}
}

// run serves the application until the context ends.
func run(ctx context.Context, file string, listener net.Listener) error {
	store, err := souvenir.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := server.Serve(ctx, listener, newApplication(store), nil); err != nil {
		return err
	}
	return store.Close()
}

// application is a program for which memories are a side matter.
type application struct {
	store     *souvenir.Store
	passwords map[string]string // of its users; a real one keeps them elsewhere, and hashed
}

func newApplication(store *souvenir.Store) http.Handler {
	app := &application{store: store, passwords: map[string]string{"anna": "tulip", "ben": "clover"}}
	memory := server.New(store, &server.Options{Authenticate: app.speaksFor})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", app.home)
	mux.Handle("/memory/", http.StripPrefix("/memory", memory))
	return app.signedIn(mux)
}

// userKey is the key of the signed-in user's name in a request's context.
type userKey struct{}

// signedIn is the application's own sign-in. It could as well use sessions, or anything else.
func (app *application) signedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		want, known := app.passwords[name]
		if !known || subtle.ConstantTimeCompare([]byte(password), []byte(want)) == 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="the application"`)
			http.Error(w, "sign in first", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, name)))
	})
}

// speaksFor tells the memory server which user a request is for. That is all the server needs to know about the
// application's users: each has memories of their own under their name, from the first one stored.
func (app *application) speaksFor(r *http.Request) (*souvenir.Principal, error) {
	user, signedIn := r.Context().Value(userKey{}).(string)
	if !signedIn {
		return nil, souvenir.ErrUnauthenticated // impossible behind signedIn
	}
	return &souvenir.Principal{Access: souvenir.Access{User: user}}, nil
}

// home is a page of the application's own. In-process, it needs neither server nor token: a view of the store is
// enough.
func (app *application) home(w http.ResponseWriter, r *http.Request) {
	user := r.Context().Value(userKey{}).(string)
	newest, err := app.store.As(souvenir.Access{User: user, ReadOnly: true}).Search(r.Context(), souvenir.Query{Limit: 3})
	if err != nil {
		log.Print(err)
		http.Error(w, "the memory cannot be read", http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "Hello, %s. There are %d memories of yours.\n", user, newest.Total)
	for _, hit := range newest.Hits {
		fmt.Fprintln(w, "-", hit.Content)
	}
}
