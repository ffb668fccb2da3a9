package virtual

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/report"
)

// openDoor starts a simulation with a door. ask sends it a request of lockstep ctl and returns the answer;
// ended gives its report.
func openDoor(t *testing.T, name string, s Simulation) (ask func(request string) string, ended chan *report.Report) {
	t.Helper()
	ended, s.Every, s.Door = make(chan *report.Report), 1, true
	go func() {
		r, err := s.Run()
		if err != nil && s.Cycle == "" { // a cycle that is cut short fails
			t.Error(err)
		}
		ended <- r
	}()
	ask = func(request string) string {
		var out strings.Builder
		words, deletes := strings.CutPrefix(request, "snapshot -delete")
		if deletes {
			words = "snapshot" + words
		}
		if err := control.Ask(name, strings.Fields(words), control.Options{Out: &out, Delete: deletes}); err != nil {
			return err.Error()
		}
		return out.String()
	}
	for end := time.Now().Add(10 * time.Second); strings.Contains(ask("status"), "no bench") && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return ask, ended
}

// exchange is a request, and a part of its answer.
type exchange struct{ request, want string }

func expectAnswers(t *testing.T, ask func(string) string, list []exchange) {
	t.Helper()
	for _, q := range list {
		if got := ask(q.request); !strings.Contains(got, q.want) {
			t.Errorf("%s: %q, want %q", q.request, got, q.want)
		}
	}
}

// eventTexts returns the changes in a record, each after its tick.
func eventTexts(t *testing.T, file string) (lines []string) {
	t.Helper()
	for _, e := range recordtest.Entries(t, file) {
		if e.Kind == record.EventEntry && e.Event.Kind == record.Parameter {
			lines = append(lines, fmt.Sprint(e.Event.Tick, " ", e.Event.Text))
		}
	}
	return lines
}

// A run with a door stands until a client asks, takes several changes at one tick, and replays.
func TestRunWithADoorAdvancesOnRequest(t *testing.T) {
	dir, name := t.TempDir(), fmt.Sprintf("door-%d", os.Getpid())
	file, rec := filepath.Join(dir, "bench.yaml"), filepath.Join(dir, "a.rec")
	if err := os.WriteFile(file, []byte(benchtest.DemoText(t, "bench: powershift-bench", "bench: "+name)), 0o644); err != nil {
		t.Fatal(err)
	}
	ask, ended := openDoor(t, name, Simulation{Plant: file, Record: rec})
	expectAnswers(t, ask, []exchange{
		{"get w1 w1[rad/s]", "tick 0, 0.000 s\n  w1  954.929659 rpm  \n  w1  100 rad/s       \n"},
		{"get w1[bar]", `w1[bar]: unit "bar" (kg/m/s2) does not fit "rpm" (1/s)`},
		{"advance 12", `advance: "12" is not a time up to 1h0m0s, like 100ms`},
		{"advance 12 ms", "advanced to tick 3, 0.015 s\n"},
		{"mark one", "in effect from tick 4, 0.020 s on\n"},
		{"fault name=lost frame=Speeds drop", "in effect from tick 4, 0.020 s on\n"},
		{"clear lost", "in effect from tick 4, 0.020 s on\n"},
		{"fault name=lost frame=Speeds drop", "in effect from tick 4, 0.020 s on\n"},
		{"faults", "lost  armed"},
		{"advance 5ms", "advanced to tick 4, 0.020 s\n"},
		{"faults", "lost  active"},
		{"snapshot one", "in effect from tick 5, 0.025 s on\n"},
		{"reset", "in effect from tick 5, 0.025 s on\n"},
		{"reset one", "in effect from tick 5, 0.025 s on\n"},
		{"reset on", `there is no snapshot "on" (did you mean one?)`},
		{"status", name + ": running; tick 4, 0.020 s;"},
		{"stop wait", name + ": stopped by ctl, after "},
	})
	if r := <-ended; r != nil && (!r.Clean || r.Ticks > 6) {
		t.Errorf("%+v", r)
	}
	want := "[4 mark one 4 fault name=lost frame=Speeds drop 4 clear lost 4 fault name=lost frame=Speeds drop " +
		"5 snapshot one 5 reset 5 reset one]"
	if got := fmt.Sprint(eventTexts(t, rec)); got != want {
		t.Errorf("the record has %s, want %s", got, want)
	}
	if _, err := (Replay{Record: rec}).Run(); err != nil {
		t.Error(err)
	}
}

// A client that leaves ends its advance: the run stands, and the next client finds it long before the end of the
// hour that was asked for.
func TestAdvanceEndsWhenItsClientLeaves(t *testing.T) {
	name, file := writeBench(t, "leave", nil)
	ask, ended := openDoor(t, name, Simulation{Plant: file})
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(host.ControlDir(), name+".sock"))
	}}}
	asked, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(asked, http.MethodPost, "http://lockstep/advance", strings.NewReader(`{"time": "1 h"}`))
		if err == nil {
			_, err = client.Do(r)
		}
		gone <- err
	}()
	for strings.Contains(ask("status"), "tick 0,") {
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-gone; err == nil {
		t.Fatal("the advance was answered")
	}
	const hour = 3600 * 200
	var tick int
	if answer := ask("advance 5ms"); strings.HasPrefix(answer, "advanced to tick ") {
		_, _ = fmt.Sscanf(answer, "advanced to tick %d", &tick)
	}
	if !(tick > 1 && tick < hour) {
		t.Errorf("the run stands at tick %d", tick)
	}
	ask("stop wait")
	<-ended
}
