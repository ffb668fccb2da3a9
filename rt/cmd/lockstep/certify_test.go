package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/deploy/certify"
)

// patient waits for the end of a command that measures as long as a busy machine needs.
func patient(s *session) int {
	s.t.Helper()
	select {
	case <-s.over:
	case <-time.After(4 * time.Minute):
	}
	return s.end()
}

// ticking waits until a command has measured what comes before its run.
func ticking(s *session) {
	s.t.Helper()
	for end := time.Now().Add(4 * time.Minute); s.find("target") == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("there is no target")
		}
	}
	time.Sleep(2 * time.Second)
}

// certificate reads one.
func certificate(t *testing.T, file string) *certify.Certificate {
	t.Helper()
	c, err := readCertificate(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The figures of the page, of the JSON and of the run's own report are one.
func TestACertificateHasTheFiguresOfItsRunAndIsMeasuredAgainAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "c.json")
	s := begin(t, nil, "certify", patientBench(t), "-for", "10s", "-load=false", "-o", filepath.Join(dir, "c.html"))
	code := patient(s)
	out, errs := s.out.String(), s.errors.String()
	c := certificate(t, file)
	if len(c.Failed()) > 0 != (code == 1) || code > 1 {
		t.Errorf("code %d, failed %q\n%s", code, c.Failed(), errs)
	}
	page, err := os.ReadFile(filepath.Join(dir, "c.html"))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Run
	for _, want := range []string{
		fmt.Sprintf("\n  ticks        %d of 5 ms, missed %d ", r.Ticks, r.Missed),
		"\n  lateness     " + r.Late.String(), "\n  tick time    " + r.Tick.String(),
		fmt.Sprintf("\n  frames out   %d; dropped %d, of missed ticks %d\n", r.TxFrames, r.TxDropped, r.TxLost),
		"\nNOT REPRESENTATIVE of a tuned real-time host:\n", "\n  - no load: ", "\n  - too short: ", "\n  - bus drive is a pair of sockets",
		"\nagain, and what has changed: lockstep certify -compare " + file + "\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("standard output does not say %q:\n%s", want, out)
		}
	}
	for _, ns := range []int64{r.Late.Max, r.Late.P50, r.Tick.Max, r.Tick.P999, c.Worst.DearestNs, c.Late.MaxNs} {
		if want := fmt.Sprintf(`data-ns="%d">%.1f`, ns, float64(ns)/1e3); !strings.Contains(string(page), want) {
			t.Errorf("the page does not show %d ns", ns)
		}
	}
	if c.Late.Samples != r.Ticks || c.Late.MaxNs != r.Late.Max || c.Representative || c.CutShort != "" || len(c.Versions.Binary) != 64 || c.Versions.Go == "" {
		t.Errorf("%d samples up to %d ns of %d ticks up to %d ns; representative %t, cut %q, %+v", c.Late.Samples, c.Late.MaxNs, r.Ticks, r.Late.Max, c.Representative, c.CutShort, c.Versions)
	}
	var roles []string
	for _, f := range c.Versions.Files {
		roles = append(roles, f.Role)
	}
	if !slices.Equal(roles, []string{"bench", "plant", "dbc", "tables"}) {
		t.Errorf("hashes of %q", roles)
	}
	if c.Beside != nil && c.Beside.Cyclictest != nil && (c.Beside.Loop.RatioP50 == nil || c.Beside.Loop.Samples < 100 || c.Beside.Alone == nil) {
		t.Errorf("beside cyclictest: %+v", c.Beside.Loop)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("it left %v", list)
	}
	out, errs, code = lockstep(t, "certify", "-compare", file, file)
	if code != 0 || errs != "" || !strings.HasSuffix(out, "\nnothing changed\n") {
		t.Errorf("with itself: code %d\n%s%s", code, out, errs)
	}
	measuredAgain(t, file)
}

// One command measures what was measured, again, beside the old certificate, and says
// what changed.
func measuredAgain(t *testing.T, old string) {
	t.Helper()
	was := certificate(t, old)
	s := begin(t, nil, "certify", "-compare", old, "-for", "11s")
	code := patient(s)
	files, _ := filepath.Glob(strings.TrimSuffix(old, ".json") + "-*.json")
	if len(files) != 1 {
		t.Fatalf("code %d, %q; %s", code, files, &s.errors)
	}
	now := certificate(t, files[0])
	was.Asked.ForNs = int64(11 * time.Second)
	if !reflect.DeepEqual(was.Asked, now.Asked) {
		t.Errorf("asked for %+v, then for %+v", was.Asked, now.Asked)
	}
	for _, want := range []string{"\n  length\n    was  10s\n    is   11s\n", "\n  wake-up, worst ", "\n  tick, p50 "} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if worse := strings.Contains(s.errors.String(), "certify: worse: "); strings.Contains(s.out.String(), "  WORSE") != worse || worse && code != 1 {
		t.Errorf("code %d: %s", code, &s.errors)
	}
}

func TestWrongCertifiesAreRefusedInOneLine(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "x.json")
	if err := os.WriteFile(text, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	html := filepath.Join(dir, "c.html")
	for _, c := range []struct{ line, want string }{
		{"certify", "certify: -o FILE.html is wanted"},
		{"certify -for 9s -o " + html, "certify: -for 9s: at least 10s are needed"},
		{"certify -o /nosuch/c.html", "certify: -o /nosuch/c.html: open /nosuch/c.json.part: no such file"},
		{"certify -o c.txt", "certify: -o c.txt: a name that ends in .html"},
		{"certify nosuch.yaml -o " + html, "bench: no file nosuch.yaml"},
		{"certify -compare /nosuch.json", "certify: stat /nosuch.json: no such file"},
		{"certify -compare " + text, "certify: " + text + ": it is not the JSON of a certificate"},
		{"certify -compare " + text + " " + text + " -for 10s", "certify: -for is of a measurement"},
		{"certify -bus drive=9 -bus x=can0 -o " + html, "run: -bus x=can0: write -bus BUS=INTERFACE"},
		{"certify -cmopare x", "certify: unknown flag -cmopare (did you mean -compare?)"},
	} {
		_, errors, code := lockstep(t, strings.Fields(c.line)...)
		if code != 2 || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(errors, "lockstep: "+c.want) {
			t.Errorf("lockstep %s: code %d\ngot  %swant lockstep: %s...", c.line, code, errors, c.want)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("they left %v", list)
	}
}

// What was measured is kept when somebody ends it, and says so; a kill leaves none.
func TestACertificateThatIsCutShortSaysSo(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		dir := t.TempDir()
		html := filepath.Join(dir, "c.html")
		s := begin(t, nil, "certify", patientBench(t), "-for", "10m", "-load=false", "-o", html)
		ticking(s)
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		code := patient(s)
		if sig == syscall.SIGKILL {
			for _, name := range []string{"c.html", "c.json"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
					t.Errorf("killed: %s is there", name)
				}
			}
			continue
		}
		c := certificate(t, filepath.Join(dir, "c.json"))
		if code != 1 || c.CutShort != "stopped by interrupt" || c.Representative || c.Late == nil {
			t.Errorf("code %d, cut %q, representative %t", code, c.CutShort, c.Representative)
		}
		page, _ := os.ReadFile(html)
		if top, _, _ := strings.Cut(string(page), "Worst cases"); !strings.Contains(top, "CUT SHORT") || !strings.Contains(top, "cut short: stopped by interrupt after ") {
			t.Errorf("the page does not say at its top that it was cut short:\n%s", top)
		}
	}
}

func TestInterruptedBeforeTheRunACertificateLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := begin(t, nil, "certify", "-for", "10m", "-o", filepath.Join(dir, "c.html"))
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if list, _ := os.ReadDir(dir); len(list) == 2 {
			break
		} else if time.Now().After(end) {
			t.Fatal("it does not begin")
		}
	}
	time.Sleep(50 * time.Millisecond)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code := s.end()
	if list, _ := os.ReadDir(dir); code != 1 || len(list) != 0 || !strings.Contains(s.errors.String(), "interrupted before the run, nothing is written") {
		t.Errorf("code %d, it left %v: %s", code, list, &s.errors)
	}
}
