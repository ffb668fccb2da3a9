package inputfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// folder is a folder with files that cannot be read as they are.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for _, err := range []error{
		syscall.Mkfifo(at("fifo"), 0o666),
		os.Symlink(at("fifo"), at("link")),
		os.Symlink(at("loop"), at("loop")),
		os.WriteFile(at("sparse"), []byte("plant: x\n"), 0o666),
		os.Truncate(at("sparse"), 1<<40),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOnlyRegularFilesWithinTheirLimitAreRead(t *testing.T) {
	dir := folder(t)
	for name, want := range map[string]error{
		dir:         syscall.EISDIR,
		"fifo":      ErrNotRegular,
		"link":      ErrNotRegular,
		"socket":    ErrNotRegular,
		"/dev/zero": ErrNotRegular,
		"/dev/full": ErrNotRegular,
		"loop":      syscall.ELOOP,
		"none":      fs.ErrNotExist,
		"sparse":    ErrTooLarge,
	} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		for kind, limit := range limits {
			if kind := Kind(kind); want != ErrTooLarge || limit.max > 0 {
				f, err := Open(name, kind)
				if !errors.Is(err, want) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s as %s: %v; want %v", name, limit.what, err, want)
				}
				if err == nil {
					f.Close()
				}
			}
		}
	}
}

func TestFileAboveItsLimitIsNotHeldInMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	data, err := Read(filepath.Join(folder(t), "sparse"), Text)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLarge) || len(data) != HeadSize || !bytes.HasPrefix(data, []byte("plant: x\n")) {
		t.Errorf("%d bytes, %v; want the beginning", len(data), err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes allocated", used)
	}
}

func TestFileIsReadUpToItsSizeWhenOpened(t *testing.T) {
	name := filepath.Join(t.TempDir(), "growing")
	if err := os.WriteFile(name, []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name, Log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(name, []byte("before, and after"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Read(name, Text); err != nil || string(got) != "before, and after" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Read("/proc/version", Text); err != nil || len(got) != 0 {
		t.Errorf("a file of /proc: %q, %v; want it empty", got, err)
	}
}

func TestFileWithoutPermissionIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := Read(name, Text)
	if os.Geteuid() == 0 { // root reads every file
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), name) {
		t.Errorf("%v", err)
	}
}

func TestHoleOfASparseFileIsSkipped(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sparse")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteAt([]byte("data"), 1<<40); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name, Record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if at := f.SkipHole(1 << 20); at != 1<<20 && (at < 1<<40-1<<20 || at > 1<<40) { // some file systems have no holes
		t.Errorf("the hole ends at %d", at)
	}
	if at := f.SkipHole(1<<40 + 2); at != 1<<40+2 {
		t.Errorf("data at %d, want it here", at)
	}
	if err := w.Truncate(1 << 41); err != nil {
		t.Fatal(err)
	}
	g, err := Open(name, Record)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if at := g.SkipHole(1<<40 + 1<<20); at != g.Size() && at != 1<<40+1<<20 {
		t.Errorf("after the data: %d, want the end", at)
	}
}

func TestLinesAboveTheLimitAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "",
		"12345":             "",
		"12345\n12345\n\n1": "",
		"1\n123456":         "line 2: ",
		"123456\n1":         "line 1: ",
		"\n\n12345\n123456": "line 4: ",
	} {
		for size := 1; size < 8; size++ {
			got, err := io.ReadAll(&pieces{LimitLines(strings.NewReader(text), 5), size})
			if want == "" && (err != nil || string(got) != text) || want != "" && (!errors.Is(err, ErrLongLine) || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("%q by %d: %q, %v; want %q", text, size, got, err, want)
			}
		}
	}
}

// pieces reads a few bytes at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }
