package virtual

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
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

// openControl opens the door of a run; ask sends a request with package net/http.
func openControl(t *testing.T, v report.View, rec *recorder.Recorder) (ask func(path, body string) error) {
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
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", sockets[0])
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	return func(path, body string) error {
		method := "GET"
		if body != "" {
			method = "POST"
		}
		q, err := http.NewRequest(method, "http://lockstep"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r, err := client.Do(q)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", r.Status, text)
		}
		return err
	}
}

// countMarks counts the marks of a record that the clients of TestConcurrentLiveChangesReplay set.
func countMarks(t *testing.T, file string) (n int) {
	t.Helper()
	r, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err != nil {
			return n
		}
		if e.Kind == record.EventEntry && e.Event.Kind == record.Parameter && e.Event.Tick > 0 && strings.HasPrefix(e.Event.Text, `mark 'client `) {
			n++
		}
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
				for _, q := range [][2]string{
					{"/fault", fmt.Sprintf(`{"arguments": ["name=%s", "frame=Speeds", "drop", "for=2 frames"]}`, name)},
					{"/fault", fmt.Sprintf(`{"arguments": ["name=%s", "signal=Speeds.w1", "noise=3 rad/s", "seed=%d"]}`, name, n)},
					{"/set", fmt.Sprintf(`{"values": {"clutch7.pressure": %d, "Status.lag": "%d ms"}}`, n, i)},
					{"/mark", fmt.Sprintf(`{"text": "client %d, 'round' %d"}`, i, n)},
					{"/faults", ""}, {"/status", ""}, {"/values?signal=w1&signal=clutch7.pressure", ""}, {"/clear", `{"names": ["` + name + `"]}`},
				} {
					if err := ask(q[0], q[1]); err != nil {
						t.Errorf("%q: %v", q, err)
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
	if n := countMarks(t, file); n != 4*15 {
		t.Errorf("the record has %d marks, want 60", n)
	}
	if same, err := (Replay{Record: file}).Run(); err != nil || same.Ticks == 0 {
		t.Errorf("%+v (%v)", same, err)
	}
}
