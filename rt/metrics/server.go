package metrics

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"lockstep/rt/host"
)

// The bounds of the server.
const (
	maxConnections = 8                // at once; further ones are closed
	timeout        = 5 * time.Second  // longest time to send a request, and to read the answer
	idleTimeout    = 20 * time.Second // longest time between two requests of a connection
	maxHeader      = 16 << 10         // bytes
	restTime       = 100 * time.Millisecond
)

// Server answers the requests of a Prometheus server.
type Server struct {
	run  *Run
	http http.Server
	from net.Listener
	own  bool // the address is one of the loopback interface

	mu   sync.Mutex
	last []byte    // last answer
	at   time.Time // time of last
}

// Open answers requests for the figures of a run on a TCP address, "127.0.0.1:9464". Close must be called.
func Open(address string, run *Run) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w: name another address under metrics: in the bench file", err)
	}
	s := &Server{run: run, from: l}
	if a, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
		s.own = a.Addr().IsLoopback()
	}
	s.http = http.Server{
		Handler: s, ReadTimeout: timeout, WriteTimeout: timeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // clients that misbehave are no news
	}
	go s.http.Serve(host.LimitListener(l, maxConnections)) // until Close
	return s, nil
}

// URL returns the address of the figures.
func (s *Server) URL() string { return "http://" + s.from.Addr().String() + "/metrics" }

// Close closes the server and all connections. It does nothing on nil.
func (s *Server) Close() {
	if s != nil {
		s.from.Close() // Serve, which may not have begun, closes it too
		s.http.Close()
	}
}

// ServeHTTP answers GET /metrics. Requests that come faster than restTime get the last answer again.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case s.own && !isLoopback(r.Host): // a page of another site whose name leads to this host
		http.Error(w, "this server answers to addresses of the loopback interface and localhost only", http.StatusForbidden)
	case r.URL.Path != "/metrics":
		http.Error(w, "the figures of the run are at /metrics", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "/metrics takes GET only", http.StatusMethodNotAllowed)
	default:
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(s.text()) // fails if the client has gone
	}
}

// text returns the figures, at most restTime old.
func (s *Server) text() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.at) > restTime {
		s.last, s.at = s.run.Text(), time.Now()
	}
	return s.last
}

// isLoopback reports whether a Host header names the loopback interface. The port may be that of a tunnel.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	a, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && a.IsLoopback()
}
