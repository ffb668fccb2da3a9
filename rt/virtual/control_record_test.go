package virtual

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/control"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/sched"
)

// startLoop ticks the bench of a view in a goroutine, faster than real time, with its own copy of
// the hand-over, as a target has. end stops the loop and waits for it.
func startLoop(t *testing.T, v report.View) (end func()) {
	t.Helper()
	target, unit, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	bus, err := can.Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(v.Handover.Bench)
	if err != nil {
		t.Fatal(err)
	}
	h.Loop.Virtual = true
	clock := sched.NewVirtual(time.Duration(h.Tables.PeriodNs))
	loop, err := rt.New(h.Loop, kernel.New(h.Tables), []*can.Bus{bus}, h.Maps, clock, v.Status)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		v.Status.State.Store(uint64(rt.Running))
		for !loop.Over() {
			loop.Tick(clock.Wait())
			time.Sleep(200 * time.Microsecond)
		}
		v.Status.State.Store(uint64(rt.Ended))
	}()
	end = func() {
		v.Status.Stop.Store(rt.StopPlanned)
		<-over
	}
	t.Cleanup(func() {
		end()
		unit.Close()
		bus.Close()
	})
	return end
}

// openControl opens the control socket of a run; ask sends a request as lockstep ctl does.
func openControl(t *testing.T, v report.View, rec *recorder.Recorder) (ask func(words ...string) error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server, err := control.Open(dir, v, os.Getpid(), rec, make(chan os.Signal, 4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	sockets, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %q, %v", sockets, err)
	}
	return func(words ...string) error {
		conn, err := net.Dial("unix", sockets[0])
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute)) // cannot fail for an open socket
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, scenario.QuoteWord(w))
		}
		if _, err := fmt.Fprintln(conn, strings.Join(quoted, " ")); err != nil {
			return err
		}
		text, err := bufio.NewReader(conn).ReadBytes('\n')
		if err != nil {
			return err
		}
		var a control.Answer
		if err := json.Unmarshal(text, &a); err != nil {
			return err
		}
		if !a.OK {
			return errors.New(a.Error)
		}
		return nil
	}
}

// Clients, the recorder with its judge and the loop share the status block; the race detector
// checks their accesses.
func TestConcurrentLiveChangesReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "changed.rec")
	b, err := bench.Load(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	v := report.View{Status: new(rt.StatusBlock)}
	if v.Handover, err = bench.Prepare(b); err != nil {
		t.Fatal(err)
	}
	v.Handover.Loop.Virtual = true
	expected, err := scenario.Parse("s.yaml", []byte("scenario: s\nexpect: [{count: {message: Speeds, of: frames}, at_least: 1}, {value: w1, below: 9000 rpm}]\n"), v.Handover)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recorder.New(v, recorder.Options{Path: file, Scenario: expected})
	if err != nil {
		t.Fatal(err)
	}
	ask := openControl(t, v, rec)
	end := startLoop(t, v)
	rec.Record(false)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for n := range 15 {
				name := fmt.Sprintf("f%d", i)
				for _, words := range [][]string{
					{"fault", "name=" + name, "frame=Speeds", "drop", "for=2 frames"},
					{"fault", "name=" + name, "signal=Speeds.w1", "noise=3 rad/s", fmt.Sprintf("seed=%d", n)},
					{"set", fmt.Sprintf("clutch7.pressure=%d bar", n), fmt.Sprintf("Status.lag=%d ms", i)}, {"faults"}, {"status"}, {"clear", name},
				} {
					if err := ask(words...); err != nil {
						t.Errorf("%q: %v", words, err)
						return
					}
				}
			}
		}()
	}
	clients.Wait()
	end()
	if why := rec.Finish(); why != "" {
		t.Error(why)
	}
	if len(rec.Findings) != 2 {
		t.Errorf("%d findings, want 2", len(rec.Findings))
	}
	for _, f := range rec.Findings {
		if !f.Held {
			t.Errorf("%+v", f)
		}
	}
	if same, err := (Replay{Record: file}).Run(); err != nil || same.Ticks == 0 {
		t.Errorf("%+v (%v)", same, err)
	}
}
