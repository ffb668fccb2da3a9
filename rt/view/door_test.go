package view

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/rt/bench/benchtest"
	"lockstep/rt/control"
	"lockstep/rt/graph"
	"lockstep/rt/trace"
	"lockstep/rt/virtual"
)

// simulated returns the record of a simulation of the demo bench.
func simulated(t *testing.T, length time.Duration) string {
	t.Helper()
	rec := filepath.Join(t.TempDir(), "run.rec")
	if _, err := (virtual.Simulation{Plant: benchtest.DemoFile(t), For: length, Every: 1, Record: rec}).Run(); err != nil {
		t.Fatal(err)
	}
	return rec
}

func ask(t *testing.T, d http.Handler, method, path string, to any) int {
	t.Helper()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	if to != nil {
		if err := json.Unmarshal(w.Body.Bytes(), to); err != nil {
			t.Fatalf("%s: %v: %s", path, err, w.Body)
		}
	}
	return w.Code
}

func all() trace.View { return trace.View{To: math.Inf(1)} }

// The door of two records answers with the values that export writes for each tick.
func TestValuesAreThoseOfTheRecords(t *testing.T) {
	files := []string{simulated(t, time.Second), simulated(t, time.Second/2)}
	d, err := Open(files, all())
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Signals []*control.Signal
		Record  span
	}
	if ask(t, d, "GET", "/description", &description); len(description.Signals) < 40 || len(description.Record.Files) != 2 || description.Record.To != 1 {
		t.Fatalf("%d signals, %+v", len(description.Signals), description.Record)
	}
	for i, prefix := range []string{"", second} {
		run, err := trace.Open("view", files[i], trace.View{To: math.Inf(1)})
		if err != nil {
			t.Fatal(err)
		}
		for k, at := range run.Time {
			query, tick := url.Values{"at": {fmt.Sprint(at)}}, int64(math.Round(at/0.005))
			for _, s := range run.Signals {
				query.Add("signal", prefix+s.Name)
			}
			var a control.Values
			if ask(t, d, "GET", "/values?"+query.Encode(), &a); a.Tick != tick || len(a.Values) != len(run.Signals) {
				t.Fatalf("at %g s: tick %d, %d values", at, a.Tick, len(a.Values))
			}
			for j, s := range run.Signals {
				if v := a.Values[j].Value; (v == nil) != math.IsNaN(s.Values[k]) || v != nil && *v != s.Values[k] || a.Values[j].Unit != s.Unit.Spelled {
					t.Fatalf("%s at %g s: %+v, want %g", a.Values[j].Name, at, a.Values[j], s.Values[k])
				}
			}
		}
	}
	var a control.Values
	ask(t, d, "GET", "/values?signal=2:w1&at=0.9", &a)
	if a.Values[0].Value == nil {
		t.Error("a signal has no value after its record; want the last one")
	}
}

func TestARecordCannotBeChanged(t *testing.T) {
	d, err := Open([]string{simulated(t, time.Second/10)}, all())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/set", "/fault", "/stop", "/param", "/mark"} {
		if code := ask(t, d, "POST", path, nil); code != http.StatusConflict {
			t.Errorf("POST %s: %d", path, code)
		}
	}
	var s control.Answer
	if ask(t, d, "GET", "/status", &s); s.State != "record" {
		t.Errorf("the state is %q", s.State)
	}
	var p graph.Plant
	if ask(t, d, "GET", "/plant", &p); len(p.Elements) == 0 {
		t.Error("the plant has no elements")
	}
	for path, want := range map[string]int{"/values": 400, "/values?signal=w1&at=x": 400, "/values?signal=w1[bar]": 400, "/bus": 404} {
		var r control.Refusal
		if code := ask(t, d, "GET", path, &r); code != want || r.Error == "" {
			t.Errorf("%s: %d %q", path, code, r.Error)
		}
	}
}

// A stream has the whole record, in at most maxSamples samples, and then waits for its client to leave.
func TestStreamHasTheWholeRecord(t *testing.T) {
	d, err := Open([]string{simulated(t, time.Second/2)}, trace.View{From: 0.1, To: 0.4})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(d)
	defer s.Close()
	a, err := http.Get(s.URL + "/stream?signal=w1&signal=w1[rad/s]&signal=health.missed&every=20ms")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := json.NewDecoder(a.Body)
	var start control.StreamStart
	if err := lines.Decode(&start); err != nil || start.Every != 1 || start.Signals[0].Unit != "rpm" {
		t.Fatalf("%+v, %v", start, err)
	}
	for tick := int64(20); tick <= 80; tick++ {
		var o control.Sample
		if err := lines.Decode(&o); err != nil || o.Tick != tick {
			t.Fatalf("tick %d: %+v, %v", tick, o, err)
		}
		if !scalar.EqualWithinRel(o.Last[1]*30/math.Pi, o.Last[0], 1e-9) || !math.IsNaN(o.Last[2]) {
			t.Errorf("tick %d: %v", tick, o.Last)
		}
	}
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	if _, err := Open([]string{filepath.Join(t.TempDir(), "none.rec")}, all()); err == nil || !strings.Contains(err.Error(), "none.rec") {
		t.Errorf("a missing file: %v", err)
	}
}
