package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// served is a server that Serve runs.
type served struct {
	address string
	stop    context.CancelFunc
	ended   chan error
}

func startServe(t *testing.T, handler http.Handler, options *server.ServeOptions) served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := served{listener.Addr().String(), stop, make(chan error, 1)}
	go func() { s.ended <- server.Serve(ctx, listener, handler, options) }()
	t.Cleanup(stop)
	return s
}

func (s served) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(servertest.Soon):
		t.Fatal("Serve does not end")
	}
}

// An upload in progress when the server stops is finished. New requests are refused.
func TestShutdownFinishesRequests(t *testing.T) {
	w := servertest.New(t, server.Options{})
	handler, began := server.New(w.Store, nil), make(chan struct{})
	s := startServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		handler.ServeHTTP(w, r)
	}), nil)
	kind, form := servertest.FormOf(t, []servertest.Part{{Name: "file", Filename: "slow.txt", Kind: "",
		Value: strings.Repeat("slow ", 1000)}})
	in, out := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+"/api/files/upload", in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+w.Tokens[servertest.Owner])
	type result struct {
		status int
		err    error
	}
	done := make(chan result, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			done <- result{0, err}
			return
		}
		response.Body.Close()
		done <- result{response.StatusCode, nil}
	}()
	if _, err := out.Write(form[:100]); err != nil {
		t.Fatal(err)
	}
	<-began
	s.stop()
	for { // until the listener is closed
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(time.Millisecond)
	}
	if _, err := out.Write(form[100:]); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if got := <-done; got.err != nil || got.status != http.StatusOK {
		t.Errorf("the upload ended with %d, %v; want %v", got.status, got.err, http.StatusOK)
	}
	s.wait(t)
}

// A request that does not end is cut off after the grace period.
func TestShutdownDoesNotWaitForever(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	s := startServe(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		ended <- r.Context().Err()
	}), &server.ServeOptions{Grace: time.Millisecond})
	go http.Get("http://" + s.address) //nolint:errcheck // it is cut off
	<-began
	s.stop()
	s.wait(t)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestServeReportsABadListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := server.Serve(t.Context(), listener, http.NotFoundHandler(), nil); err == nil {
		t.Error("a closed listener is served, want an error")
	}
}

// Clients that stop in the middle are dropped, and nothing of theirs is stored. Slow but steady ones are not.
func TestSilentClientsAreDropped(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{Patience: time.Second})
	before := w.FilesOf(servertest.Owner)
	kind, form := servertest.FormOf(t, []servertest.Part{{Name: "file", Filename: "x.txt", Kind: "", Value: "text"}})
	for name, head := range map[string]string{
		"a call": "POST /tools/call HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
			"100\r\nAuthorization: Bearer %s\r\n\r\n{\"name\":",
		"a upload": "POST /api/files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: " + kind +
			"\r\nContent-Length: 10000\r\nAuthorization: Bearer %s\r\n\r\n" + string(form[:100]),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", w.HTTP.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, head, w.Tokens[servertest.Owner])
			all, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 400 ") ||
				!strings.Contains(string(all), "no part of the body arrived for 1s") {
				t.Errorf(`%v: got %s, want no error, "HTTP/1.1 400 " at the beginning of the all and "nothing of the body `+
					`arrived for 1s" in the all`, err, all)
			}
		})
	}
	if after := w.FilesOf(servertest.Owner); after != before {
		t.Errorf("%d files, before %d, want no change", after, before)
	}
	t.Run("slow but steady", func(t *testing.T) {
		conn, err := net.Dial("tcp", w.HTTP.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /api/files/upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "+
			"%s\r\nContent-Length: %d\r\nAuthorization: Bearer %s\r\n\r\n", kind, len(form), w.Tokens[servertest.Owner])
		for len(form) > 0 {
			n := min(len(form), 1+len(form)/8)
			if _, err := conn.Write(form[:n]); err != nil {
				t.Fatal(err)
			}
			form = form[n:]
			time.Sleep(100 * time.Millisecond) // more than the patience in all
		}
		all, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") {
			t.Errorf("got %s, %v; want \"HTTP/1.1 200 \" at its start", all, err)
		}
	})
	t.Run("a client that reads nothing", func(t *testing.T) {
		f := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "large.bin", Kind: "",
			Value: strings.Repeat("\x00\x01\x02\x03", 8<<20)}))
		conn, err := net.Dial("tcp", w.HTTP.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /api/files/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", f.ID,
			w.Tokens[servertest.Owner])
		deadline := time.Now().Add(servertest.Soon)
		for !strings.Contains(w.Log.String(), "path=/api/files/"+f.ID+" status=200") {
			if time.Now().After(deadline) {
				t.Fatalf("the download does not end, want it before the deadline:\n%s", w.Log.String())
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// Many concurrent callers do not disturb each other, nor see each other's data.
func TestManyAtOnce(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	var all sync.WaitGroup
	for i, caller := range []string{servertest.Owner, servertest.Stranger, servertest.Writer, servertest.Admin,
		servertest.Owner, servertest.Stranger, servertest.Writer, servertest.Admin} {
		all.Go(func() {
			for j := range 5 {
				mark := fmt.Sprintf("mark-%d-%d", i, j)
				a, _ := w.Call(caller, "memory", `{"action": "store", "content": "`+mark+` of `+caller+`"}`)
				a.Expect(http.StatusOK)
				_, found := w.Call(caller, "memory", `{"action": "search", "query": "`+mark+`", "limit": 100}`)
				if !strings.Contains(found, mark) {
					t.Errorf("%s: got the results %s, want %s among them", caller, found, mark)
				}
				for _, other := range []string{servertest.Owner, servertest.Stranger, servertest.Writer, servertest.Admin} {
					if other != caller && strings.Contains(found, "of "+other) {
						t.Errorf("%s finds what %s stored: %s, want no %q in it", caller, other, found, "of "+other)
					}
				}
				f := uploadedFile(upload(w, caller, servertest.Part{Name: "file", Filename: mark, Kind: "", Value: mark}))
				w.Do(caller, "GET", "/api/files/"+f.ID, "").Expect(http.StatusOK, mark)
				w.Do(caller, "DELETE", "/api/files/"+f.ID, "").Expect(http.StatusOK)
			}
		})
	}
	all.Wait()
}
