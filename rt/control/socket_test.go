package control

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/host"
)

func TestStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	stale, path, err := listenControl(dir, "my bench/1")
	if err != nil || filepath.Base(path) != "my_bench_1.sock" {
		t.Fatalf("%s, %v", path, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	stale.SetUnlinkOnClose(false) // as after SIGKILL
	stale.Close()
	first, again, err := listenControl(dir, "my bench/1")
	if err != nil || again != path {
		t.Fatalf("%s, %v; want the stale one's place", again, err)
	}
	second, other, err := listenControl(dir, "my bench/1")
	if want := fmt.Sprintf("my_bench_1-%d.sock", os.Getpid()); err != nil || filepath.Base(other) != want {
		t.Errorf("%s, %v; want %s beside the first", other, err, want)
	}
	if list := sockets(dir); len(list) != 2 || list[0].pid != os.Getpid() {
		t.Errorf("%v", list)
	}
	want := fmt.Sprintf("ctl: my bench/1 runs several times: name the process: my_bench_1-%d (process %[1]d), my_bench_1 (process %[1]d)", os.Getpid())
	if err := ask(sockets(dir), "my bench/1", []string{"status"}, Options{Out: io.Discard}); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	first.Close()
	second.Close()
	if left, _ := filepath.Glob(filepath.Join(dir, "*.sock")); left != nil {
		t.Errorf("%q are left", left)
	}
}

func TestSocketsOfKilledRunsAreRemovedUnlessAnotherKernelMayUseThem(t *testing.T) {
	for _, c := range []struct {
		name, kernels string // name of the folder, and its list of kernels
		gone          bool
	}{
		{"only this kernel", host.BootID() + "\n", true},
		{"another one, too", "another\n" + host.BootID() + "\n", false},
		{"another one", "another\n", false},
		{"not said", "", false},
	} {
		dir := t.TempDir()
		var listeners []*net.UnixListener
		for _, name := range []string{"killed", "lives"} {
			l, err := listenPrivate(filepath.Join(dir, name+socketEnd))
			if err != nil {
				t.Fatal(err)
			}
			listeners = append(listeners, l)
		}
		listeners[0].SetUnlinkOnClose(false) // as after SIGKILL
		listeners[0].Close()
		for name, text := range map[string]string{"kernels": c.kernels, "text.sock": "no socket"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, _, err := listenControl(dir, "next")
		if err != nil {
			t.Fatal(err)
		}
		there := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }
		if there("killed.sock") == c.gone || !there("lives.sock") || !there("text.sock") || !there("next.sock") {
			t.Errorf("%s: killed is there: %t, lives %t, next %t", c.name, there("killed.sock"), there("lives.sock"), there("next.sock"))
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "kernels")); strings.Count(string(text), host.BootID()) != 1 || !strings.HasPrefix(string(text), c.kernels) {
			t.Errorf("%s: kernels %q", c.name, text)
		}
		l.Close()
		listeners[1].Close()
	}
}

func TestFolderWithoutSocketsForgetsOtherKernels(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kernels")
	if err := os.WriteFile(file, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, _, err := listenControl(dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if text, _ := os.ReadFile(file); string(text) != host.BootID()+"\n" {
		t.Errorf("kernels %q", text)
	}
}

// httpAnswer returns an HTTP answer with a text.
func httpAnswer(code int, text string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", code, len(text), text)
}

func TestAnswersOfOtherUsersAreHarmless(t *testing.T) {
	for _, c := range []struct {
		me, uid int
		want    bool
	}{{0, 1000, true}, {1000, 1000, true}, {1000, 0, false}, {1000, 1001, false}} {
		if mayAsk(c.me, c.uid) != c.want {
			t.Errorf("user %d asks %d: %t", c.me, c.uid, !c.want)
		}
	}
	dir := t.TempDir()
	answer := func(name string, write func(net.Conn)) {
		t.Helper()
		l, err := listenPrivate(filepath.Join(dir, name+socketEnd))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					if _, err := conn.Read(make([]byte, 100)); err == nil { // the request
						write(conn)
					}
				}()
			}
		}()
	}
	answer("escape", func(c net.Conn) { fmt.Fprint(c, httpAnswer(400, `{"error":"a\u001b[2Jb"}`)) })
	answer("endless", func(c net.Conn) {
		for line := []byte("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<16)); ; {
			if _, err := c.Write(line); err != nil {
				return
			}
		}
	})
	answer("\x1b[2J", func(net.Conn) {})
	list := sockets(dir)
	if len(list) != 2 {
		t.Errorf("%v; one has a name that no run has", list)
	}
	for name, want := range map[string]string{"escape": "ctl: escape: a[2Jb", "endless": fmt.Sprintf("ctl: endless (process %d) gives no answer: unexpected EOF", os.Getpid())} {
		if err := ask(sockets(dir), name, []string{"status"}, Options{Out: io.Discard}); err == nil || err.Error() != want {
			t.Errorf("%s: %.200v; want %s", name, err, want)
		}
	}
	closeAll(list)
	var text strings.Builder
	if err := Table(&text, []ListedRun{{Bench: "a\x1b[2Jb\u009b", File: "f"}}); err != nil || !strings.Contains(text.String(), "a[2Jb ") || strings.ContainsAny(text.String(), "\x1b\u009b") {
		t.Errorf("%q, %v", &text, err)
	}
	text.Reset()
	if err := printText(&text, &statusAnswer{Answer{Bench: "a\x1bb"}}); err != nil || !strings.HasPrefix(text.String(), "ab: ") {
		t.Errorf("%q, %v", &text, err)
	}
}

func TestSocketDirectoryWritableByOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := listenControl(dir, "b"); !errors.Is(err, host.ErrWritableByOthers) {
		t.Errorf("%v", err)
	}
	service := t.TempDir()
	if err := os.Chown(service, 65534, -1); err == nil { // only root can, and to root it will do
		l, path, err := listenControl(service, "b")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want a socket that only its user can open", path, info, err)
		}
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	if _, _, err := listenControl(long, "b"); err == nil || !strings.Contains(err.Error(), "107 bytes at most: set XDG_RUNTIME_DIR to a shorter folder") {
		t.Errorf("%v", err)
	}
}
