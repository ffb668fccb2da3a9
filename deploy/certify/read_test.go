package certify

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/rt/host"
)

func TestReadReturnsTheWrittenCertificate(t *testing.T) {
	c := sample(t, 1, 1)
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := stored(t, c).JSON()
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("%v; %d bytes, then %d", err, len(text), len(again))
	}
}

func TestReadRefusesOtherTextsAndChangedCertificates(t *testing.T) {
	whole, err := sample(t, 1, 1).JSON()
	if err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) []byte {
		out := bytes.Replace(whole, []byte(old), []byte(new), 1)
		if bytes.Equal(out, whole) {
			t.Fatalf("the sample has no %s", old)
		}
		return out
	}
	for _, c := range []struct {
		text []byte
		says []string
	}{
		{whole[:len(whole)/2], []string{"not the JSON of a certificate", "unexpected end"}},
		{[]byte("<html>"), []string{"not the JSON of a certificate", "invalid character '<'"}},
		{[]byte("{}"), []string{"not the JSON of a certificate", "lockstep_certificate"}},
		{swap(`"lockstep_certificate": 1`, `"lockstep_certificate": 2`), []string{"unknown certificate format 2"}},
		{[]byte(`{"lockstep_certificate": 1}`), []string{"not the JSON of a certificate", "sha256"}},
		{swap(`"missed": 0`, `"missed": 1`), []string{"changed after", "sha256"}},
		{swap(`"tx_frames": 1440002`, `"tx_frames": 1440003`), []string{"changed after", "sha256"}},
		{insertHash([]byte(`{"lockstep_certificate": 1, "sha256": "", "run": {}}`)), []string{"no key run or doctor"}},
	} {
		_, err := Read("x.json", c.text)
		if err == nil || !strings.HasPrefix(err.Error(), "certify: x.json: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want one line", c.text, err)
			continue
		}
		for _, want := range c.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.40q: %v, want it to say %q", c.text, err, want)
			}
		}
	}
}

// FuzzRead checks that Compare finds no difference between a certificate and itself.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"lockstep_certificate": 1, "sha256": "", "made": "2026-11-20T20:00:00Z", "asked": {"for_ns": 1}, "run": {"ticks": 1, "missed": 1e300}, "doctor": {}}`))
	f.Add([]byte(`{"lockstep_certificate": 1, "sha256": "", "made": "2026-11-20T20:00:00Z", "asked": {"for_ns": 9}, "run": {"late_ns": {"max": -5}}, "doctor": {"checks": [{}]},
		"wake_up": {"samples": 1, "max_ns": 5, "histogram_us": {"0": 1}}, "beside": {"loop": null}, "worst_case": {"dearest_ns": 5}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Read("fuzz.json", text)
		c, err := Read("fuzz.json", insertHash(text)) // the right hash lets more of the text be parsed
		if err != nil {
			return
		}
		got, err := Compare(c, c)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Settings) != 0 || got.Boxes != "" || len(got.Worse()) != 0 {
			t.Errorf("a certificate and itself: %+v", got)
		}
		if s := printed(got); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("%s", s)
		}
	})
}

func TestFilesAppearCompleteOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.html")
	f, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(name); !isRefused(err, "another run writes it") {
		t.Errorf("a second one: %v", err)
	}
	for _, made := range []string{f.HTML, f.JSON} {
		if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s exists before it is complete", made)
		}
	}
	c := sample(t, 1, 1)
	if err := f.Write(c); err != nil {
		t.Fatal(err)
	}
	f.Close()
	text, err := os.ReadFile(f.JSON)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Read(f.JSON, text)
	page, e := os.ReadFile(f.HTML)
	if err != nil || e != nil || !strings.Contains(string(page), back.SHA256) || !strings.HasSuffix(strings.TrimSpace(string(page)), "</html>") {
		t.Errorf("%v, %v, %d bytes of page", err, e, len(page))
	}
	if back.Again != "lockstep certify -compare "+f.JSON || !strings.Contains(string(page), back.Again) {
		t.Errorf("again: %s", back.Again)
	}
	if f, err = Create(name); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("it left %v", list)
	}
	if now, _ := os.ReadFile(f.JSON); !bytes.Equal(now, text) {
		t.Error("a reservation without Write changed the old certificate")
	}
}

// A folder with the name of an embedded bench, and a file with the name of a kernel, are ignored.
func TestARequestNamesItsFilesByAbsolutePaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"powershift-bench", "mine.yaml", "mine.target", "generated"} {
		var err error
		if name == "powershift-bench" {
			err = os.Mkdir(name, 0o755)
		} else {
			err = os.WriteFile(name, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ bench, kernel, wantBench, wantKernel string }{
		{"powershift-bench", "generated", "powershift-bench", "generated"},
		{"truck-bench", "table", "truck-bench", "table"},
		{"mine.yaml", "mine.target", filepath.Join(dir, "mine.yaml"), filepath.Join(dir, "mine.target")},
	} {
		a := Request{Bench: c.bench, Kernel: c.kernel}
		if err := a.MakeAbsolute(); err != nil || a.Bench != c.wantBench || a.Kernel != c.wantKernel {
			t.Errorf("%s, %s: %+v, %v", c.bench, c.kernel, a, err)
		}
	}
}

// isRefused reports whether err is a refusal of the host for a reason.
func isRefused(err error, why string) bool {
	var exit *host.Exit
	return errors.As(err, &exit) && exit.Code == 3 && strings.Contains(err.Error(), why) && strings.HasPrefix(err.Error(), "certify: ")
}

// A killed certify leaves its reserved files. The next one in the folder removes only these.
func TestCreateRemovesTheReservedFilesOfAKilledCertify(t *testing.T) {
	dir := t.TempDir()
	killed, err := Create(filepath.Join(dir, "killed.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{killed.HTML, killed.JSON} {
		killed.Close()
		if err := os.WriteFile(name+".part", make([]byte, reservedSize), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	others, err := Create(filepath.Join(dir, "other.html"))
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	full := make([]byte, reservedSize)
	full[reservedSize-1] = 1
	for name, text := range map[string][]byte{"page.html.part": []byte("<html>"), "full.json.part": full, "empty.html.part": nil, "zeros.part": make([]byte, reservedSize)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Create(filepath.Join(dir, "next.html"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	var names []string
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	if want := []string{"empty.html.part", "full.json.part", "other.html.part", "other.json.part", "page.html.part", "zeros.part"}; !slices.Equal(names, want) {
		t.Errorf("there are %q, want %q", names, want)
	}
}

func TestCreateRefusesPlacesItCannotWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "no", "a.html"):   "no such file",
		filepath.Join(dir, "file", "a.html"): "not a directory",
		filepath.Join(dir, "d.html"):         "exists and is not a regular file",
		filepath.Join(dir, "a.txt"):          "ends in .html",
		filepath.Join(dir) + "/.html":        "ends in .html",
		"/dev/full":                          "ends in .html",
	} {
		if _, err := Create(name); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "certify: -o "+name) {
			t.Errorf("%s: %v, want: %s", name, err, want)
		}
	}
	var open *fs.PathError
	if _, err := Create("/proc/a.html"); !errors.As(err, &open) || open.Op != "open" || !strings.HasPrefix(err.Error(), "certify: -o /proc/a.html") {
		t.Errorf("below /proc: %v", err)
	}
	// A file size limit makes the reservation fail as a full disk does.
	signal.Ignore(syscall.SIGXFSZ)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := unix.Rlimit{Cur: 3 << 20, Max: limit.Max} // the log of go test, of 1 MB, still fits
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	_, err := Create(filepath.Join(dir, "a.html"))
	if e := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); e != nil {
		t.Fatal(e)
	}
	if !isRefused(err, "no space for 4 MB") || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("no space: %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("it left %v", list)
	}
}

func TestTheCompareCommandIsQuotedForAShell(t *testing.T) {
	for file, want := range map[string]string{
		"/a/b.json":       "lockstep certify -compare /a/b.json",
		"/a b/it's.json":  `lockstep certify -compare '/a b/it'\''s.json'`,
		"/a/$(reboot).js": "lockstep certify -compare '/a/$(reboot).js'",
	} {
		if got := compareCommand(file); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
