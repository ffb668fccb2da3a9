package view

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/record"
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

// exported writes a record in another format.
func exported(t *testing.T, rec, file, format string) {
	t.Helper()
	r, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	to, err := os.Create(file)
	if err == nil {
		err = record.Export(r, format, to)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
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

// A CSV file and the MDF4 file of an export are shown as their record is, without a plant.
func TestValuesOfCSVAndMDFAreThoseOfTheirRecord(t *testing.T) {
	rec := simulated(t, time.Second/4)
	of, err := Open([]string{rec}, all())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range of.signals {
		names = append(names, name)
	}
	for _, format := range []string{"csv", "mdf4"} {
		file := filepath.Join(t.TempDir(), "run."+format)
		exported(t, rec, file, format)
		d, err := Open([]string{file, rec}, all())
		if err != nil {
			t.Fatal(err)
		}
		var p graph.Plant
		if ask(t, d, "GET", "/plant", &p); p.Elements == nil || len(p.Elements) != 0 {
			t.Errorf("%s: plant %+v", format, p)
		}
		for _, at := range []string{"0.005", "0.1", "0.2012", "0.25"} {
			query, both := url.Values{"at": {at}, "signal": names}, url.Values{"at": {at}}
			for _, n := range names {
				both["signal"] = append(both["signal"], n, second+n)
			}
			var want, got control.Values
			ask(t, of, "GET", "/values?"+query.Encode(), &want)
			ask(t, d, "GET", "/values?"+both.Encode(), &got)
			for i, w := range want.Values {
				for _, g := range got.Values[2*i : 2*i+2] {
					if (g.Value == nil) != (w.Value == nil) || w.Value != nil && !scalar.EqualWithinAbsOrRel(*g.Value, *w.Value, 1e-9, 1e-9) || g.Unit != w.Unit {
						t.Fatalf("%s: %s at %s s: %+v, want %+v", format, g.Name, at, g, w)
					}
				}
			}
		}
	}
}

// A file of another program may have any times.
func TestRowsNeedNoGrid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.csv")
	if err := os.WriteFile(file, []byte("time[s],n[rpm]\n0.0013,1\n0.0521,2\n0.0522,3\n7.3,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open([]string{file}, all())
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"0.001": "<nil>", "0.0013": "1", "0.05": "1", "0.0521": "2", "0.0522": "3", "7.29": "3", "7.3": "4", "9": "4"} {
		var a struct{ Values []struct{ Value any } }
		if ask(t, d, "GET", "/values?signal=n&at="+at, &a); fmt.Sprint(a.Values[0].Value) != want {
			t.Errorf("at %s s: %v, want %s", at, a.Values[0].Value, want)
		}
	}
	if err := os.WriteFile(file, []byte("time[s],n[rpm]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open([]string{file}, all()); err == nil || !strings.Contains(err.Error(), "no row") {
		t.Errorf("a file without rows: %v", err)
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

// Each of two records has its plant. An input that follows a table of the plant file has no value in a record.
func TestTwoRecordsHaveTheirPlants(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "open.rec")
	if _, err := (virtual.Simulation{Plant: benchtest.OpenFile(t), For: time.Second, Every: 1, Record: rec}).Run(); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "run.csv")
	exported(t, rec, table, "csv")
	d, err := Open([]string{table, rec}, trace.View{To: math.Inf(1)})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]bool{"": false, "?file=1": false, "?file=2": true} {
		var p graph.Plant
		if code := ask(t, d, "GET", "/plant"+query, &p); code != http.StatusOK || len(p.Elements) > 0 != want {
			t.Errorf("/plant%s: %d, %d elements", query, code, len(p.Elements))
		}
	}
	for _, query := range []string{"?file=0", "?file=3", "?file=x"} {
		if code := ask(t, d, "GET", "/plant"+query, nil); code != http.StatusBadRequest {
			t.Errorf("/plant%s: %d", query, code)
		}
	}
	var a control.Values
	ask(t, d, "GET", "/values?signal=2:clutch1.pressure&signal=2:clutch7.pressure", &a)
	if a.Values[0].Value == nil || a.Values[1].Value != nil {
		t.Errorf("values %+v, want that of clutch1.pressure only", a.Values)
	}
}
