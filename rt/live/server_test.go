package live

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/rt/control"
)

// opened is a page before a door that counts its requests.
type opened struct {
	*Server
	t     *testing.T
	asked atomic.Int64
}

func open(t *testing.T) *opened {
	t.Helper()
	o := &opened{t: t}
	door := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.asked.Add(1)
		fmt.Fprintf(w, "%s %s", r.Method, r.URL)
	})
	var err error
	if o.Server, err = Open("0", "test", NewToken(), door); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// ask sends a request with headers "Name: value" and returns status and body.
func (o *opened) ask(method, path string, headers ...string) (int, string, http.Header) {
	o.t.Helper()
	r, err := http.NewRequest(method, "http://"+o.host+path, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "" {
			continue
		}
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return a.StatusCode, string(body), a.Header
}

func (o *opened) bearer() string { return "Authorization: Bearer " + o.token }

func TestPageIsServedOnTheLoopbackInterfaceOnly(t *testing.T) {
	o := open(t)
	if ip, _, err := net.SplitHostPort(o.host); err != nil || ip != "127.0.0.1" {
		t.Errorf("the page is at %s", o.host)
	}
	code, body, _ := o.ask("GET", strings.TrimPrefix(o.URL(), "http://"+o.host))
	if code != 200 || !strings.Contains(body, `<script type="module" src="main.js">`) {
		t.Errorf("%d %.200s", code, body)
	}
}

func TestAnotherUserWithoutTheTokenIsRefused(t *testing.T) {
	o := open(t)
	for _, c := range []struct{ method, path, header string }{
		{"GET", "/", ""}, {"GET", "/?token=", ""}, {"GET", "/?token=" + strings.Repeat("A", len(o.token)), ""},
		{"GET", "/door/status", ""}, {"GET", "/door/status", "Authorization: Bearer "},
		{"GET", "/door/status?token=" + o.token, ""}, {"GET", "/door/status", "Cookie: token=" + o.token},
		{"POST", "/door/stop", "Origin: http://" + o.host},
	} {
		if code, body, _ := o.ask(c.method, c.path, c.header); code != 401 {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.header, code, body)
		}
	}
	if n := o.asked.Load(); n != 0 {
		t.Errorf("%d requests came to the door", n)
	}
	if code, body, _ := o.ask("GET", "/door/status?a=b", o.bearer()); code != 200 || body != "GET /status?a=b" {
		t.Errorf("with the token: %d %s", code, body)
	}
}

func TestForeignNameOfTheHostIsRefused(t *testing.T) {
	o := open(t)
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1",
		"192.168.0.1", "0.0.0.0"} {
		for _, path := range []string{"/?token=" + o.token, "/door/status", "/main.js"} {
			if code, body, _ := o.ask("GET", path, "Host: "+host, o.bearer()); code != 403 {
				t.Errorf("%s %s: %d %.100s", host, path, code, body)
			}
		}
	}
	for _, host := range []string{"localhost:1234", "127.0.0.1:1234"} { // a tunnel
		if code, _, _ := o.ask("GET", "/door/status", "Host: "+host, o.bearer()); code != 200 {
			t.Errorf("%s: %d", host, code)
		}
	}
}

func TestAnotherOriginIsRefused(t *testing.T) {
	o := open(t)
	before := o.asked.Load()
	for _, origin := range []string{"http://evil.example", "null", "https://" + o.host, "http://127.0.0.1:1",
		"http://" + o.host + ".evil.example"} {
		for _, method := range []string{"GET", "POST"} {
			if code, body, _ := o.ask(method, "/door/set", "Origin: "+origin, o.bearer()); code != 403 {
				t.Errorf("%s from %s: %d %s", method, origin, code, body)
			}
		}
	}
	for _, header := range []string{"X: without an origin", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		if code, body, _ := o.ask("POST", "/door/set", header, o.bearer()); code != 403 {
			t.Errorf("POST, %s: %d %s", header, code, body)
		}
	}
	if n := o.asked.Load() - before; n != 0 {
		t.Errorf("%d requests came to the door", n)
	}
	code, body, _ := o.ask("POST", "/door/set", "Origin: http://"+o.host, o.bearer())
	if code != 200 || body != "POST /set" {
		t.Errorf("own origin: %d %s", code, body)
	}
}

// The door refuses each request that changes the run unless it is a POST, and other paths take GET only.
func TestGETChangesNothing(t *testing.T) {
	s, err := Open("0", "test", NewToken(), &control.Server{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := &opened{Server: s, t: t}
	for _, path := range []string{"set", "release", "fault", "clear", "mark", "stop"} {
		for _, method := range []string{"GET", "HEAD"} {
			if code, body, _ := o.ask(method, "/door/"+path, o.bearer()); code != 405 {
				t.Errorf("%s %s: %d %s", method, path, code, body)
			}
		}
	}
	for _, path := range []string{"/", "/main.js", "/stop"} {
		if code, _, _ := o.ask("POST", path, "Origin: http://"+o.host, o.bearer()); code != 405 {
			t.Errorf("POST %s: %d", path, code)
		}
	}
}

// All files come from this server, and the policy in each answer makes browsers refuse others.
func TestPageNeedsNothingFromElsewhere(t *testing.T) {
	o := open(t)
	outside := regexp.MustCompile(`https?://|["'(]//[a-z]|@import|\burl\([^#]`)
	named := regexp.MustCompile(`(?:src=|href=|from )"([^"]+)"`)
	n := 0
	err := fs.WalkDir(files, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		code := strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", "") // the name of a namespace
		for i, line := range strings.Split(code, "\n") {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "//") && outside.MatchString(line) {
				t.Errorf("%s:%d: %s", name, i+1, line)
			}
		}
		for _, m := range named.FindAllStringSubmatch(code, -1) {
			if m[1] == "data:," {
				continue
			}
			if _, err := fs.Stat(files, path.Join("page", m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		code2, _, h := o.ask("GET", "/"+path.Base(name))
		if code2 != 200 || h.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %d %v", name, code2, h)
		}
		return nil
	})
	if err != nil || n < 5 {
		t.Errorf("%d files, %v", n, err)
	}
	if code, _, _ := o.ask("GET", "/page/"); code != 404 {
		t.Errorf("/page/: %d", code)
	}
}

// The first line of a stream arrives while the stream is open, and the stream ends with the page.
func TestStreamPassesThroughAsItComes(t *testing.T) {
	more, left := make(chan struct{}), make(chan struct{})
	s, err := Open("0", "test", NewToken(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.URL.RawQuery)
		_ = http.NewResponseController(w).Flush()
		<-more
		fmt.Fprintln(w, "second")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	}))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest("GET", "http://"+s.host+"/door/stream?signal=w1", nil)
	r.Header.Set("Authorization", "Bearer "+s.token)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	if !lines.Scan() || lines.Text() != "signal=w1" {
		t.Fatalf("%q %v", lines.Text(), lines.Err())
	}
	close(more)
	if !lines.Scan() || lines.Text() != "second" {
		t.Fatalf("%q %v", lines.Text(), lines.Err())
	}
	s.Close()
	<-left
}

// A bench has the same port each time, for what the browser stores by port, and another one if that is taken.
func TestBenchHasItsUsualPortIfItIsFree(t *testing.T) {
	door := http.NotFoundHandler()
	var ports []string
	for range 2 {
		first, err := Open("0", "usual", NewToken(), door)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Open("0", "usual", NewToken(), door)
		if err != nil {
			t.Fatal(err)
		}
		if first.host == second.host || first.token == second.token {
			t.Errorf("two pages at %s and %s", first.URL(), second.URL())
		}
		ports = append(ports, first.host)
		first.Close()
		second.Close()
	}
	if ports[0] != ports[1] {
		t.Errorf("the page is at %s, then at %s", ports[0], ports[1])
	}
}

// dial connects to the page, and closes the connection at the end of the test.
func (o *opened) dial() net.Conn {
	o.t.Helper()
	c, err := net.Dial("tcp", o.host)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// exchange sends a request on a connection and returns the first bytes of the answer.
func exchange(c net.Conn, request string) (string, error) {
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	answer := make([]byte, 4096)
	n, err := c.Read(answer)
	return string(answer[:n]), err
}

// Any user of the host can connect: who has the token keeps its connection, and gets a new one.
func TestConnectionsWithoutTheTokenKeepNobodyOut(t *testing.T) {
	o := open(t)
	request := "GET /door/status HTTP/1.1\r\nHost: 127.0.0.1\r\n" + o.bearer() + "\r\n\r\n"
	known := o.dial()
	if a, err := exchange(known, request); !strings.HasPrefix(a, "HTTP/1.1 200 ") {
		t.Fatalf("%q %v", a, err)
	}
	for range 3 * maxConnections {
		o.dial()
	}
	for name, c := range map[string]net.Conn{"a connection that has shown the token": known, "a new connection": o.dial()} {
		if a, err := exchange(c, request); !strings.HasPrefix(a, "HTTP/1.1 200 ") {
			t.Errorf("%s: %q %v", name, a, err)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	o := open(t)
	request := "GET /door/status HTTP/1.1\r\nHost: 127.0.0.1\r\n" + o.bearer() + "\r\n\r\n"
	var list []net.Conn
	for range maxConnections {
		c := o.dial()
		if a, err := exchange(c, request); !strings.HasPrefix(a, "HTTP/1.1 200 ") {
			t.Fatalf("%q %v", a, err)
		}
		list = append(list, c)
	}
	if a, err := exchange(o.dial(), request); err == nil {
		t.Errorf("one connection more is served: %q", a)
	}
	for _, c := range list {
		c.Close()
	}
	for { // the places come free
		r := httptest.NewRequest("GET", "http://"+o.host+"/main.js", nil)
		r.RequestURI = ""
		if a, err := http.DefaultClient.Do(r); err == nil {
			a.Body.Close()
			break
		}
	}
}

// The server reads a body to its end after the answer, and does not wait for it for ever.
func TestBodyThatDoesNotComeEndsItsConnection(t *testing.T) {
	o := open(t)
	for _, path := range []string{"GET /main.js", "POST /door/set"} {
		c := o.dial()
		a, err := exchange(c, path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 200000\r\n\r\n")
		if err != nil || !strings.HasPrefix(a, "HTTP/1.1 ") {
			t.Fatalf("%s: %q %v", path, a, err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: %v, want that the connection is closed", path, err)
		}
	}
}

// A request with a whole address may have no path.
func TestAddressWithoutAPathIsAnswered(t *testing.T) {
	o := open(t)
	if a, err := exchange(o.dial(), "GET http://127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); !strings.HasPrefix(a, "HTTP/1.1 ") {
		t.Errorf("%q %v", a, err)
	}
}
