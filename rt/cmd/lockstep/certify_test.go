package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/deploy/certify"
	"lockstep/rt/control"
)

// patient waits for the end of a measurement, however long a busy machine needs.
func patient(s *session) int {
	s.t.Helper()
	select {
	case <-s.over:
	case <-time.After(4 * time.Minute):
	}
	return s.end()
}

// ticking waits until a command has finished the measurements before its run, and 1 s of the run.
func ticking(s *session) {
	s.t.Helper()
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, errs, code := lockstep(s.t, "ctl", "-json", strconv.Itoa(s.cmd.Process.Pid), "status")
		var a control.Answer
		if code == 0 && json.Unmarshal([]byte(out), &a) == nil && a.Tick >= 200 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("it does not tick: %s%s", out, errs)
		}
	}
}

// certificate reads a certificate.
func certificate(t *testing.T, file string) *certify.Certificate {
	t.Helper()
	c, err := readCertificate(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The page, the JSON and the report of the run have the same figures.
func TestACertificateHasTheFiguresOfItsRunAndCanBeMeasuredAgain(t *testing.T) {
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
	if len(c.Reasons) < 3 || !slices.ContainsFunc(c.Reasons, func(r string) bool { return strings.Contains(r, "drive") }) {
		t.Errorf("of 10 s without load on a pair of sockets: %q", c.Reasons)
	}
	for _, want := range append(slices.Clone(c.Reasons),
		fmt.Sprintf(" %d of 5 ms, ", r.Ticks), " "+r.Late.String(), " "+r.Tick.String(),
		fmt.Sprintf(" %d; ", r.TxFrames), "lockstep certify -compare "+file+"\n",
	) {
		if !strings.Contains(out, want) {
			t.Errorf("standard output does not say %q:\n%s", want, out)
		}
	}
	for _, ns := range []int64{r.Late.Max, r.Late.P50, r.Tick.Max, r.Tick.P999, c.Worst.WorstNs, c.Late.MaxNs} {
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
	if c.Reference != nil && c.Reference.Cyclictest != nil && (c.Reference.Loop.RatioP50 == nil || c.Reference.Loop.Samples < 100 || c.Reference.Alone == nil) {
		t.Errorf("beside cyclictest: %+v", c.Reference.Loop)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("it left %v", list)
	}
	out, errs, code = lockstep(t, "certify", "-compare", file, file)
	if same := comparison(t, c, c); code != 0 || errs != "" || !strings.HasSuffix(out, "\n\n"+same) {
		t.Errorf("with itself: code %d\n%s%s\nwant at its end\n%s", code, out, errs, same)
	}
	measuredAgain(t, file)
}

// comparison returns the printed comparison of two certificates.
func comparison(t *testing.T, old, now *certify.Certificate) string {
	t.Helper()
	c, err := certify.Compare(old, now)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	c.Text(&text)
	return text.String()
}

// measuredAgain repeats the measurement of an old certificate with one command, and checks the
// printed comparison.
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
	if want := comparison(t, was, now); !strings.HasSuffix(s.out.String(), "\n\n"+want) {
		t.Errorf("it does not end with the comparison:\n%s", want)
	}
	c, err := certify.Compare(was, now)
	if err != nil || !slices.Contains(c.Settings, certify.Change{What: "asked.for_ns", Old: "10s", New: "11s"}) {
		t.Errorf("settings %v, %v", c.Settings, err)
	}
	for _, f := range c.Worse() {
		if !strings.Contains(s.errors.String(), f.Name) || code != 1 {
			t.Errorf("%s is worse: code %d: %s", f.Name, code, &s.errors)
		}
	}
	was.Request.ForNs = int64(11 * time.Second)
	if !reflect.DeepEqual(was.Request, now.Request) {
		t.Errorf("asked for %+v, then for %+v", was.Request, now.Request)
	}
}

func TestWrongCertifyCommandsAreRefusedInOneLine(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "x.json")
	if err := os.WriteFile(text, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	html := filepath.Join(dir, "c.html")
	for _, c := range []struct{ line, says string }{
		{"certify", "-o FILE.html"},
		{"certify -for 9s -o " + html, "-for 9s: "},
		{"certify -o /nosuch/c.html", "-o /nosuch/c.html: open /nosuch/c.json: no such file"},
		{"certify -o c.txt", "-o c.txt: "},
		{"certify nosuch.yaml -o " + html, "nosuch.yaml"},
		{"certify -compare /nosuch.json", "/nosuch.json: no such file"},
		{"certify -compare " + text, text + " is a file in JSON, "},
		{"certify -compare " + text + " " + text + " -for 10s", "-for "},
		{"certify -bus drive=9 -bus x=can0 -o " + html, "-bus x=can0: "},
		{"certify -cmopare x", "-compare?"},
	} {
		_, errors, code := lockstep(t, strings.Fields(c.line)...)
		if code != 2 || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(errors, "lockstep: ") || !strings.Contains(errors, c.says) {
			t.Errorf("lockstep %s: code %d\ngot  %swant a line that says %s", c.line, code, errors, c.says)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("they left %v", list)
	}
}

// An interrupted measurement leaves a certificate that names the interruption; a killed one leaves
// none.
func TestAnInterruptedCertificateNamesTheInterruption(t *testing.T) {
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
		if code != 1 || !strings.Contains(c.CutShort, "interrupt") || c.Representative || c.Late == nil {
			t.Errorf("code %d, cut %q, representative %t", code, c.CutShort, c.Representative)
		}
		page, _ := os.ReadFile(html)
		if top, _, _ := strings.Cut(string(page), "Worst cases"); !strings.Contains(top, "CUT SHORT") || !strings.Contains(top, c.CutShort) {
			t.Errorf("the page does not say at its top that it was cut short:\n%s", top)
		}
	}
}

func TestCertifyInterruptedBeforeTheRunLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var errs bytes.Buffer
	c := exec.CommandContext(t.Context(), program, "certify", "-for", "10m", "-o", filepath.Join(dir, "c.html"))
	c.Stdout, c.Stderr = out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The command prints its first measurement after it has created the files and handles signals.
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if info, err := out.Stat(); err != nil || info.Size() > 0 || time.Now().After(end) {
			break
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("it has reserved %v", list)
	}
	stop := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer stop.Stop()
	if err := errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait()); err == nil {
		t.Error("it ends as if nothing had been")
	}
	if list, _ := os.ReadDir(dir); c.ProcessState.ExitCode() != 1 || len(list) != 0 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("code %d, it left %v: %s", c.ProcessState.ExitCode(), list, &errs)
	}
}
