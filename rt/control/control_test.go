package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"lockstep/io/can"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/fault"
	"lockstep/rt/host"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/rt/tableset"
	"lockstep/sched"
)

// controlled is a bench that ticks in this process, faster than real time, with a control socket.
type controlled struct {
	report.View
	t    *testing.T
	s    *Server
	dir  string
	stop chan os.Signal
	over chan struct{} // closed when the loop has ended
	rec  *recorder.Recorder
}

// openControlled starts the bench of benchtest.OpenFile.
func openControlled(t testing.TB) *bench.Handover {
	t.Helper()
	b, err := bench.Load(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// newTableSets returns the memory for tables, and the kernels in it as a target has them.
func newTableSets(t *testing.T, h *bench.Handover) (*tableset.Memory, []*kernel.Kernel) {
	t.Helper()
	f, m, err := tableset.New(kernel.New(h.Tables), 1+len(h.Changes))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	target, err := tableset.Map(f)
	if err != nil {
		t.Fatal(err)
	}
	return m, target.Kernels()
}

// newControlled starts a controlled bench without a record.
func newControlled(t *testing.T) *controlled {
	t.Helper()
	return newRecorded(t, "")
}

// newRecorded starts a controlled bench with a record; file "": without one.
func newRecorded(t *testing.T, file string) *controlled {
	t.Helper()
	h := openControlled(t)
	dir, err := os.MkdirTemp("", "ctl") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	c := &controlled{t: t, dir: dir, stop: make(chan os.Signal, 4), over: make(chan struct{})}
	c.View = report.View{Handover: h, Status: new(rt.StatusBlock)}
	var slots []*kernel.Kernel
	c.TableSets, slots = newTableSets(t, h)
	own, err := bench.Prepare(h.Bench) // as the target's: in another process
	if err != nil {
		t.Fatal(err)
	}
	h.Loop.Virtual = true // the recorder does not wait for the start of a grid
	rec, err := recorder.New(c.View, recorder.Options{Live: true, Path: file})
	if err != nil {
		t.Fatal(err)
	}
	if c.s, err = Open(dir, c.View, os.Getpid(), rec, c.stop); err != nil {
		t.Fatal(err)
	}
	rec.Record(false)
	c.rec = rec
	target, unit, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	if err := can.DropReceived(unit); err != nil { // nobody reads: a full buffer would drop what is sent
		t.Fatal(err)
	}
	bus, err := can.Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	clock := sched.NewVirtual(time.Duration(h.Tables.PeriodNs))
	own.Loop.Virtual = true
	plant := own.Plant()
	plant.UseSlots(slots)
	plant.ReserveSnapshots(fault.MaxSnapshots)
	loop, err := rt.New(own.Loop, plant, []*can.Bus{bus}, own.Maps, clock, c.Status)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.over)
		c.Status.State.Store(uint64(rt.Running))
		for !loop.Over() {
			loop.Tick(clock.Wait())
			time.Sleep(200 * time.Microsecond)
		}
		c.Status.State.Store(uint64(rt.Ended))
	}()
	t.Cleanup(func() {
		c.end()
		rec.Finish()
		c.s.Close()
		unit.Close()
		bus.Close()
		os.RemoveAll(dir)
	})
	return c
}

func (c *controlled) end() {
	c.Status.Stop.Store(rt.StopPlanned)
	<-c.over
}

// ask sends a request as the command does.
func (c *controlled) ask(words ...string) (*Answer, error) {
	a := &Answer{}
	return a, c.askFor(a, "", words...)
}

// askFor sends a request and decodes its answer.
func (c *controlled) askFor(a any, every string, words ...string) error {
	var text strings.Builder
	if err := ask(sockets(c.dir), "open bench", words, Options{JSON: true, Every: every, Out: &text}); err != nil {
		return err
	}
	return json.Unmarshal([]byte(text.String()), a)
}

func (c *controlled) must(words ...string) *Answer {
	c.t.Helper()
	a, err := c.ask(words...)
	if err != nil {
		c.t.Fatalf("%q: %v", words, err)
	}
	return a
}

func TestRunAnswersQueriesAndCommands(t *testing.T) {
	c := newControlled(t)
	a := c.must("status")
	for a.Tick == 0 || a.Outputs == nil { // no outputs while the host holds the loop half-way through writing them
		time.Sleep(time.Millisecond)
		a = c.must("status")
	}
	if a.Bench != "open bench" || a.Process != os.Getpid() || a.State != "running" || len(a.Outputs) != len(c.Handover.Tables.Outputs) {
		t.Errorf("status: %+v", a)
	}
	if _, ok := a.Outputs["w1[rpm]"]; !ok {
		t.Errorf("status has no w1: %v", a.Outputs)
	}
	if a = c.must("faults"); len(a.Faults) != 0 {
		t.Errorf("faults: %+v", a.Faults)
	}
	before := c.must("status").Tick
	a = c.must("fault", "name=a", "frame=Speeds", "drop", "for=3 frames")
	if a.Tick <= before || len(a.Slots) != 1 || a.Slots[0] != 0 || len(a.Faults) != 1 || a.Faults[0].State != "active" && a.Faults[0].State != "over" {
		t.Errorf("fault: %+v; want slot 0, begun, after tick %d", a, before) // it may be over when the answer comes
	}
	if f := c.must("faults").Faults[0]; f.Since == nil || *f.Since != a.Tick {
		t.Errorf("the fault of tick %d: %+v", a.Tick, f)
	}
	a = c.must("set", "clutch7.pressure=3 bar", "Status.lag=1ms")
	if s := c.must("set", "lag=2 ms"); len(s.Slots)+len(s.Faults) != 0 {
		t.Errorf("a signal that is set takes a slot: %+v", s)
	}
	if s := c.must("status").Set; len(s) != 2 || s["clutch7.pressure"] != "3 bar" || s["Status.lag"] != "2 ms" {
		t.Errorf("status shows %v set", s)
	}
	if c.must("release", "clutch7.pressure"); len(c.must("status").Set) != 1 {
		t.Errorf("status shows %v set", c.must("status").Set)
	}
	if at := c.must("release", "all").Tick; !(at > a.Tick) {
		t.Errorf("set at tick %d, released at %d", a.Tick, at)
	}
	for c.must("faults").Faults[0].State != "over" {
		time.Sleep(time.Millisecond)
	}
	if a = c.must("faults"); a.Faults[0].Count != 3 || a.Faults[0].Spec != "frame=Speeds drop 'for=3 frames'" {
		t.Errorf("faults: %+v; want 3 frames", a.Faults)
	}
	if c.must("clear", "a"); len(c.must("faults").Faults) != 0 {
		t.Error("the fault is still there")
	}
	if c.must("stop"); (<-c.stop).String() != "ctl" {
		t.Error("the supervisor is not asked to stop")
	}
	if c.must("stop"); len(c.stop) != 0 {
		t.Error("asked twice, which would kill the target")
	}
	c.end()
	if _, err := c.ask("fault", "frame=Speeds", "drop"); err == nil || err.Error() != "ctl: open_bench: the run has ended" {
		t.Errorf("after the end: %v", err)
	}
	if a := c.must("status"); a.State != "ended: stopped" {
		t.Errorf("after the end: %+v", a)
	}
}

// A loop that stands still has the change: the client must not take it as refused.
func TestChangeThatTheLoopDoesNotTakeInTimeIsNotRefused(t *testing.T) {
	r := report.View{Handover: openControlled(t), Status: new(rt.StatusBlock)}
	d, err := Describe(r)
	if err != nil {
		t.Fatal(err)
	}
	c := newServer(r, d)
	for _, want := range []struct {
		code, exit int
		text       string
	}{
		{http.StatusGatewayTimeout, 1, "x: the loop has not taken the change within 2.01s; the change has effect when the loop goes on"},
		{http.StatusConflict, 0, "x: the loop has not taken the last change yet: ask again when it goes on"},
	} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("POST", "/set", strings.NewReader(`{"values": {"clutch7.pressure": 3}}`)))
		exit := &host.Exit{}
		err := (&socket{name: "x"}).parseAnswer(w.Code, w.Body, nil)
		if w.Code != want.code || err == nil || err.Error() != want.text || errors.As(err, &exit) != (want.exit != 0) || exit.Code != want.exit {
			t.Errorf("%d, %v, exit code %d; want %+v", w.Code, err, exit.Code, want)
		}
	}
	if set := c.after.Load().Set; len(set) != 1 {
		t.Errorf("set is %v", set)
	}
}

func TestRefusalIsOneLine(t *testing.T) {
	c := newControlled(t)
	for request, want := range map[string]string{
		"statsu":      `unknown request "statsu" (did you mean status?)`,
		"":            `unknown request ""; known are status, list, `,
		"status now":  "status takes no further words",
		"get":         "get needs the name of a signal; list names all",
		"get w11 w_1": `there is no signal "w11" (did you mean w1?); list names all`,
		"watch lagg":  `there is no signal "lagg" (did you mean lag?); list names all`,
		"set clutch7.pressure=3 clutch7.pressure=4": "set clutch7.pressure is set twice",
		"set clutch7.pressure":                      `ctl: set "clutch7.pressure" is not PORT=VALUE`,
		"set clutch7.pressure=":                     `set: "clutch7.pressure=" is not PORT=VALUE`,
		"set clutch7.pressure=3":                    "set: clutch7.pressure: 3 needs a unit: 3 bar?",
		"set clutch7.pressure='3 rpm'":              "set: clutch7.pressure: ",
		"set clutch7.pressure='400 bar'":            "set: clutch7.pressure: 400 bar is outside the range of the input, ",
		"mark":                                      "mark: the run has no record that could hold the mark: record on FILE starts one",
		"stop later":                                "stop takes no further words",
		"clear x":                                   `"x"`,
		"set clutch1.pressure=1":                    "set: clutch1.pressure: TCU_Pressure_1.pressure_C1 ",
		"fault frame=Speeds hold":                   "fault: word 2: fault: hold ",
		"fault frame=Speeds freeze_counter 'at=tick\x1b 3'": "the request has characters that cannot be printed",
	} {
		words, err := scenario.SplitWords(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ask(words...); err == nil || !strings.HasPrefix(err.Error(), "ctl: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v\nwant %s", request, err, want)
		}
	}
	if _, err := c.ask("mark", "a\xffb"); err == nil || err.Error() != "ctl: the request is not UTF-8" {
		t.Errorf("a mark that is not UTF-8: %v", err)
	}
	if a := c.must("faults"); len(a.Faults) != 0 {
		t.Errorf("what was refused is there: %+v", a.Faults)
	}
}

func TestSeveralClientsCommandARunAtOnce(t *testing.T) {
	c := newControlled(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("f%d", i)
			last := int64(0)
			for range 10 {
				for _, words := range [][]string{{"fault", "name=" + name, "frame=Status", "drop"}, {"clear", name}} {
					a, err := c.ask(words...)
					if err != nil || a.Tick <= last || len(a.Slots) != 1 {
						t.Errorf("%q: %+v, %v after tick %d", words, a, err, last)
						return
					}
					last = a.Tick
				}
			}
		})
	}
	wg.Wait()
	if a := c.must("faults"); len(a.Faults) != 0 {
		t.Errorf("faults are left: %+v", a.Faults)
	}
}

// raw connects to the socket without the client of this package.
func (c *controlled) raw() *net.UnixConn {
	c.t.Helper()
	conn, _, _, err := dialControl(c.s.path)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

func TestAskListsTheRunningBenches(t *testing.T) {
	dir := t.TempDir()
	var listeners []*net.UnixListener
	for _, name := range []string{"left", "right"} {
		l, _, err := listenControl(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	orphan := socket{name: "lone", pid: 7, uid: os.Getuid(), orphan: &targetProcess{}}
	foreign := slices.Concat(sockets(dir), []socket{{name: "theirs", err: &fs.PathError{Err: fs.ErrPermission}}})
	for _, c := range []struct {
		list        []socket
		which, want string
		code        int
	}{
		{nil, "left", `ctl: no bench "left" runs; no bench runs at all`, 3},
		{sockets(dir), "middle", fmt.Sprintf(`ctl: no bench "middle" runs; there are left (process %d), right (process %d)`, os.Getpid(), os.Getpid()), 3},
		{[]socket{orphan}, "lone", "ctl: lone (process 7) has no supervisor: lockstep attach 7 takes it over, lockstep stop 7 ends it", 3},
		{append(foreign, foreign[2]), "theirs", "ctl: theirs is another user's run: use sudo, or ask as that user", 3},
	} {
		err := ask(c.list, c.which, []string{"status"}, Options{Out: io.Discard})
		var exit *host.Exit
		if err == nil || err.Error() != c.want || !errors.As(err, &exit) || exit.Code != c.code {
			t.Errorf("%s: %v; want %s", c.which, err, c.want)
		}
	}
}

func TestAskChoosesTheRunWithAccess(t *testing.T) {
	dir := t.TempDir()
	l, _, err := listenControl(dir, "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs := socket{name: "demo", err: &fs.PathError{Err: fs.ErrPermission}}
	s, err := chooseRun(append([]socket{theirs}, sockets(dir)...), "demo")
	if err != nil || s.pid != os.Getpid() {
		t.Errorf("%v, %v", s, err)
	}
}

func TestBrokenStreamNamesTheRunAndTheRemedy(t *testing.T) {
	for _, from := range []io.Reader{strings.NewReader(""), iotest.ErrReader(io.ErrUnexpectedEOF)} {
		err := (&socket{name: "x", pid: 7}).printStream(from, &Options{Out: io.Discard})
		exit := &host.Exit{}
		want := "x (process 7) ended the stream before the end of the run: lockstep ps lists the runs"
		if !errors.As(err, &exit) || exit.Code != 1 || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// takenSlots names the faults with which the commands of a run begin.
func takenSlots(h *bench.Handover) (names []string) {
	for _, f := range scenario.NewCommands(h).Slots {
		if f.Name != "" {
			names = append(names, f.Name)
		}
	}
	return names
}

func TestAttachedSupervisorKnowsTheSlots(t *testing.T) {
	c := newControlled(t)
	c.must("fault", "name=live", "frame=Speeds", "drop")
	h := openControlled(t)
	h.Named = []bench.NamedFault{{Name: "zero", Spec: "..."}, {Name: "one", Spec: "..."}}
	v := report.View{Handover: h, Status: c.Status}
	NameFaults(v) // slot 0 is in use, the scenario's second was cleared
	if got := takenSlots(h); !slices.Equal(got, []string{"zero"}) {
		t.Errorf("%q", got)
	}
	h.Named = nil
	NameFaults(v)
	if got := takenSlots(h); !slices.Equal(got, []string{"slot0"}) {
		t.Errorf("%q", got)
	}
}

// A second supervisor shows what the first one has set, and can release it.
func TestAttachedSupervisorKnowsTheValuesThatAreSet(t *testing.T) {
	c := newControlled(t)
	c.must("set", "clutch7.pressure=3 bar", "Status.lag=2 ms")
	c.must("set", "clutch7.pressure=4 bar")
	c.s.Close()
	var err error
	if c.s, err = Open(c.dir, report.View{Handover: openControlled(t), Status: c.Status}, os.Getpid(), c.rec, c.stop); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"clutch7.pressure": "4 bar", "Status.lag": "0.002 s"} // in the units of their ports
	if got := c.must("status").Set; !maps.Equal(got, want) {
		t.Errorf("after the attach set is %v, want %v", got, want)
	}
	c.must("release", "Status.lag")
	if list := c.Status.SetValues(); len(list) != 1 || !(math.Abs(list[0].Value-4e5) < 1e-6) {
		t.Errorf("the loop has set %+v", list)
	}
	if c.must("release", "all"); len(c.Status.SetValues()) != 0 || len(c.must("status").Set) != 0 {
		t.Errorf("after the release: %+v", c.Status.SetValues())
	}
}

func TestOneSnapshotMoreThanThereIsRoomForIsRefused(t *testing.T) {
	c := newControlled(t)
	for i := range fault.MaxSnapshots {
		c.must("snapshot", fmt.Sprint("s", i))
	}
	first := c.must("snapshot", "s3")
	if _, err := c.ask("snapshot", "more"); err == nil || !strings.Contains(err.Error(), "a run stores 8 snapshots: take one of their names again, or delete one: s0, s1, s2") {
		t.Error(err)
	}
	if a := c.must("reset", "s3"); a.Tick <= first.Tick {
		t.Errorf("%+v after %+v", a, first)
	}
	if a := c.must("status"); len(a.Snapshots) != fault.MaxSnapshots || a.Snapshots[3].Tick != first.Tick || a.Resets != 1 {
		t.Errorf("%+v", a)
	}
}
