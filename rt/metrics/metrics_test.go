package metrics

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockstep/rt/bench/benchtest"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
	"lockstep/sched"
)

// family is a family of an answer, as the test reads it.
type family struct {
	kind, help string
	samples    map[string]float64 // by what follows the name of the family
	order      []string
}

var (
	nameForm   = regexp.MustCompile(`^lockstep(_[a-z0-9]+)+$`)
	sampleForm = regexp.MustCompile(`^([a-z0-9_]+)((?:\{(?:[a-z_][a-z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+\})?) (NaN|\+Inf|[-+0-9.e]+)$`)
)

// parse reads an answer by the rules of the text format, and of promtool check metrics.
func parse(t *testing.T, text string) map[string]*family {
	t.Helper()
	all := map[string]*family{}
	var f *family
	name := ""
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ = strings.Cut(help, " ")
			if all[name] != nil || help == "" || !nameForm.MatchString(name) {
				t.Fatalf("line %d: %s", i+1, line)
			}
			f = &family{help: help, samples: map[string]float64{}}
			all[name] = f
			continue
		}
		if kind, ok := strings.CutPrefix(line, "# TYPE "+name+" "); ok && f.kind == "" {
			f.kind = kind
			if total := strings.HasSuffix(name, "_total"); total != (kind == "counter") {
				t.Errorf("line %d: %s", i+1, line)
			}
			continue
		}
		m := sampleForm.FindStringSubmatch(line)
		if m == nil || f.kind == "" || !strings.HasPrefix(m[1], name) {
			t.Fatalf("line %d: %q", i+1, line)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		key := strings.TrimPrefix(m[1], name) + m[2]
		if _, twice := f.samples[key]; err != nil || twice || f.kind != "histogram" && m[1] != name || f.kind == "counter" && !(v >= 0) {
			t.Fatalf("line %d: %s", i+1, line)
		}
		f.samples[key], f.order = v, append(f.order, key)
	}
	for name, f := range all {
		if len(f.samples) == 0 {
			t.Errorf("%s has no sample", name)
		}
		if f.kind == "histogram" {
			checkHistogram(t, name, f)
		}
	}
	return all
}

func checkHistogram(t *testing.T, name string, f *family) {
	t.Helper()
	le, n := -1.0, -1.0
	for _, key := range f.order {
		text, ok := strings.CutPrefix(key, `_bucket{le="`)
		if !ok {
			continue
		}
		bound, err := strconv.ParseFloat(strings.TrimSuffix(text, `"}`), 64)
		if err != nil || !(bound > le) || f.samples[key] < n {
			t.Errorf("%s: the bucket %s does not follow %g", name, key, le)
		}
		le, n = bound, f.samples[key]
	}
	if f.samples["_count"] != n || f.samples[`_bucket{le="+Inf"}`] != n {
		t.Errorf("%s: %g durations in the last bucket, %g in all", name, n, f.samples["_count"])
	}
}

// guarded returns the figures of a protected bench that ticks in this process.
func guarded(t *testing.T) (*Run, *runtest.Run) {
	t.Helper()
	run := runtest.Guarded(t, benchtest.GuardedText(t))
	return &Run{
		View:   report.View{Handover: run.Handover, Status: run.Status},
		Buses:  func() []Bus { return nil },
		Record: func() *Record { return nil },
		Ended:  func() *End { return nil },
	}, run
}

// full gives a run all figures that a run can have.
func full(r *Run) {
	r.Previous = &End{Why: "a \"tick\" was\nmissed", Clean: false}
	r.Buses = func() []Bus {
		return []Bus{{Name: "drive", Interface: "can0", State: "error-passive", ErrorFrames: 7, HasCounters: true, Tx: 128, Rx: 3}}
	}
	r.Record = func() *Record { return &Record{Free: 5e9, FreeKnown: true} }
	r.Ended = func() *End { return &End{Why: "done", Clean: true} }
}

func TestFiguresAreThoseOfTheStatusBlock(t *testing.T) {
	r, run := guarded(t)
	run.Loop.Tick(1)
	run.Loop.Tick(1)
	run.Status.Missed.Store(3)
	run.Status.Late.Record(1000)    // in the bucket to 1.024 us
	run.Status.Late.Record(1024)    // beyond it
	run.Status.Late.Record(1 << 36) // beyond the last bucket
	full(r)
	all := parse(t, string(r.Text()))
	latency := all["lockstep_wakeup_latency_seconds"]
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"lockstep_ticks_total", "", float64(run.Status.Ticks.Load())},
		{"lockstep_ticks_missed_total", "", 3},
		{"lockstep_frames_sent_total", "", float64(run.Status.TxFrames.Load())},
		{"lockstep_period_seconds", "", 0.005},
		{"lockstep_running", "", 0},
		{"lockstep_run_end_clean", `{reason="done"}`, 1},
		{"lockstep_previous_run_end_clean", `{reason="a \"tick\" was\nmissed"}`, 0},
		{"lockstep_bus_state", `{bus="drive",interface="can0",state="error-passive"}`, 1},
		{"lockstep_bus_error_counter", `{bus="drive",interface="can0",counter="transmit"}`, 128},
		{"lockstep_record_disk_free_bytes", "", 5e9},
	} {
		if f := all[c.name]; f == nil || f.samples[c.labels] != c.want {
			t.Errorf("%s%s: %+v, want %g", c.name, c.labels, f, c.want)
		}
	}
	if run.Status.TxFrames.Load() == 0 || all["lockstep_message_e2e_state"] == nil {
		t.Error("the bench has sent no frame, or has no protected message")
	}
	if n := latency.samples["_count"]; latency.samples[`_bucket{le="2.048e-06"}`]-latency.samples[`_bucket{le="1.024e-06"}`] != 1 ||
		n-latency.samples[`_bucket{le="17.179869184"}`] != 1 || n != float64(run.Status.Late.N()) {
		t.Errorf("wake-up latency: %v", latency.samples)
	}
	if sum := latency.samples["_sum"]; !(sum > 0.98*float64(1<<36)/1e9 && sum < 1.02*float64(1<<36)/1e9) {
		t.Errorf("the latencies add up to %g s", sum)
	}
}

// Names of benches and messages are any text.
func TestLabelsKeepAnyText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.String().Draw(r, "text")
		a := &text{}
		a.family("lockstep_a", gauge, s+"x")
		a.sample(1, "label", s)
		lines := strings.Split(a.String(), "\n")
		m := sampleForm.FindStringSubmatch(lines[2])
		if len(lines) != 4 || m == nil {
			r.Fatalf("%q", a.String())
		}
		value := strings.TrimSuffix(strings.TrimPrefix(m[2], `{label="`), `"}`)
		if got := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(value); got != strings.ToValidUTF8(s, "\uFFFD") {
			r.Fatalf("%q is read as %q", s, got)
		}
	})
}

func TestAlertsUseFiguresThatExist(t *testing.T) {
	r, _ := guarded(t)
	full(r)
	all := parse(t, string(r.Text()))
	rules, err := os.ReadFile("../../deploy/root/usr/share/lockstep/prometheus/lockstep.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\blockstep_[a-z_]+`).FindAllString(string(rules), -1)
	if len(names) < 9 {
		t.Fatalf("found only %v", names)
	}
	for _, name := range names {
		if all[name] == nil {
			t.Errorf("an alert uses %s, which no run has", name)
		}
	}
}

func TestGuideNamesEachFigure(t *testing.T) {
	r, _ := guarded(t)
	full(r)
	guide, err := os.ReadFile("FLEET.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range parse(t, string(r.Text())) {
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("the guide does not name %s", name)
		}
	}
}

func TestServerAnswersGetMetricsOnly(t *testing.T) {
	r, _ := guarded(t)
	s, err := Open("127.0.0.1:0", r)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "/metrics", "", 200}, {"HEAD", "/metrics", "", 200}, {"GET", "/metrics", "localhost:1", 200},
		{"POST", "/metrics", "", 405}, {"GET", "/", "", 404}, {"GET", "/metrics", "evil.example", 403},
		{"GET", "/metrics", "127.0.0.1.evil.example", 403}, {"GET", "/metrics", "192.168.0.1", 403},
	} {
		q, _ := http.NewRequest(c.method, strings.TrimSuffix(s.URL(), "/metrics")+c.path, nil)
		if c.host != "" {
			q.Host = c.host
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if a.StatusCode != c.want || c.want == 200 && !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("%+v: %d %s %.100s", c, a.StatusCode, a.Header, body)
		}
		if c.method == "GET" && c.want == 200 {
			parse(t, string(body))
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	r, _ := guarded(t)
	s, err := Open("127.0.0.1:0", r)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var last net.Conn
	for range maxConnections + 1 {
		if last, err = net.Dial("tcp", s.from.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer last.Close()
	}
	_ = last.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := last.Read(make([]byte, 1)); err == nil {
		t.Error("the last connection is served")
	}
}

// An answer counts what the loop writes at the same time, and its cost is bounded whatever the run is like.
func TestHistogramOfManyDurationsIsExactAtTheEndsOfBuckets(t *testing.T) {
	h := &sched.Histogram{}
	for ns := int64(1); ns < 1<<36; ns = ns*5/4 + 1 {
		h.Record(ns)
	}
	a := &text{}
	a.histogram("lockstep_a_seconds", "help", h)
	f := parse(t, a.String())["lockstep_a_seconds"]
	for i := firstBucket; i <= lastBucket; i++ {
		want := 0
		for ns := int64(1); ns < 1<<36; ns = ns*5/4 + 1 {
			if ns < 1<<i {
				want++
			}
		}
		key := fmt.Sprintf(`_bucket{le="%s"}`, number(float64(int64(1)<<i)/1e9))
		if got := f.samples[key]; got != float64(want) {
			t.Errorf("%s: %g durations, want %d", key, got, want)
		}
	}
}
