package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// files are the files of the page.
//
//go:embed page
var files embed.FS

// The bounds of the server.
const (
	maxConnections = 64              // at once
	headerTimeout  = 5 * time.Second // longest time to send a request's header, and then its body
	idleTimeout    = time.Minute     // longest time between two requests of a connection
	maxHeader      = 64 << 10        // bytes
)

// policy is the content security policy of the page: nothing from elsewhere, and no inline code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Server serves the live page of a run on the loopback interface.
type Server struct {
	http  http.Server
	door  http.Handler
	token string
	host  string // 127.0.0.1:PORT
	from  net.Listener
}

// NewToken returns a token for Open.
func NewToken() string { return rand.Text() }

// Open serves the page of a bench on a TCP port of 127.0.0.1; port "0" is any free one. Only who knows token can
// use it. door answers the requests of the page. Close must be called.
func Open(port, bench, token string, door http.Handler) (*Server, error) {
	l, err := listen(port)
	if port == "0" {
		if l, err = listen(usualPort(bench)); err != nil {
			l, err = listen(port)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("live page: %w: choose another port with -page PORT, or -page off", err)
	}
	s := &Server{door: door, token: token, host: l.Addr().String(), from: l}
	s.http = http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    log.New(io.Discard, "", 0), // clients that misbehave are no news
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	go s.http.Serve(&limited{Listener: l}) // until Close
	return s, nil
}

func listen(port string) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
}

// usualPort returns the port that a bench has if it is free. Browsers keep what a page stores, such as the
// signals of its scope, by the port.
func usualPort(bench string) string {
	h := fnv.New32a()
	h.Write([]byte(bench))
	return strconv.Itoa(20000 + int(h.Sum32()%10000)) // below the ports of outgoing connections, 32768 on
}

// URL returns the address of the page, with the token.
func (s *Server) URL() string { return "http://" + s.host + "/?token=" + s.token }

// Close closes the page and all connections. It does nothing on nil.
func (s *Server) Close() {
	if s != nil {
		s.from.Close() // Serve, which may not have begun, closes it too
		s.http.Close()
	}
}

// ServeHTTP answers a request of a browser.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.ContentLength != 0 { // a body that nobody reads is read after the answer, to the end
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTimeout))
	}
	path, isDoor := strings.CutPrefix(r.URL.Path, "/door/")
	switch {
	case !isLoopback(r.Host):
		refuse(w, http.StatusForbidden, "this server answers to 127.0.0.1 and localhost only")
	case !isOwn(r):
		refuse(w, http.StatusForbidden, "another site may not use this page")
	case isDoor && !s.holdsToken(r, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")):
		refuse(w, http.StatusUnauthorized, "the token is missing or wrong: open the address that lockstep run has printed")
	case isDoor:
		r2 := r.Clone(r.Context())
		r2.URL.Path = "/" + path
		s.door.ServeHTTP(w, r2)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		refuse(w, http.StatusMethodNotAllowed, "only requests below /door/ change something")
	case r.URL.Path == "/" && !s.holdsToken(r, r.URL.Query().Get("token")):
		refuse(w, http.StatusUnauthorized, "the token is missing or wrong: open the address that lockstep run has printed")
	default:
		serveFile(w, r, cmp.Or(strings.TrimPrefix(r.URL.Path, "/"), "page.html"))
	}
}

// serveFile serves a file of the page.
func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	if _, err := fs.Stat(files, "page/"+name); err != nil || strings.Contains(name, "/") {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	http.ServeFileFS(w, r, files, "page/"+name)
}

// holdsToken reports whether token, of a request, is the token of the run, and marks the connection. It takes the
// same time for all tokens of that length.
func (s *Server) holdsToken(r *http.Request, token string) bool {
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return false
	}
	if c, ok := r.Context().Value(connKey{}).(*placed); ok {
		c.trusted.Store(true)
	}
	return true
}

// isLoopback reports whether a Host header names the loopback interface. The port may be another one: that
// of a tunnel (ssh -L).
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return name == "127.0.0.1" || name == "localhost"
}

// isOwn reports whether no other site has made a request: Origin, which browsers send with each POST and
// with requests to other sites, is that of this page. A POST without Origin is refused.
func isOwn(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet && r.URL.Path == "/" // a link
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && u.Host == r.Host
}

// refuse answers a request that is not served, in the form of the door's refusals.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(code)
	fmt.Fprintf(w, "{\"error\":%q}\n", why) // why is plain ASCII
}

// limited is a listener that serves maxConnections connections at once. A further one displaces the oldest of
// those that have not shown the token: any user of the host can connect. If all have shown it, it is closed.
type limited struct {
	net.Listener

	mu   sync.Mutex
	list []*placed // the oldest first
}

// placed is a connection with a place.
type placed struct {
	net.Conn
	from    *limited
	trusted atomic.Bool // it has shown the token
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// Accept returns the next connection that has a place.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &placed{Conn: conn, from: l}
		displaced := l.place(c)
		if displaced != nil {
			displaced.Close()
		}
		if displaced != c {
			return c, nil
		}
	}
}

// place gives a connection a place and returns the one that must close for it; nil: none.
func (l *limited) place(c *placed) (displaced *placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == maxConnections {
		i := slices.IndexFunc(l.list, func(o *placed) bool { return !o.trusted.Load() })
		if i < 0 {
			return c
		}
		displaced = l.list[i]
		l.list = slices.Delete(l.list, i, i+1)
	}
	l.list = append(l.list, c)
	return displaced
}

// Close closes the connection and frees its place.
func (c *placed) Close() error {
	c.from.mu.Lock()
	c.from.list = slices.DeleteFunc(c.from.list, func(o *placed) bool { return o == c })
	c.from.mu.Unlock()
	return c.Conn.Close()
}
