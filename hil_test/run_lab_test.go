package hiltest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// report is what the tests need of `lockstep run -report`.
type report struct {
	StepNs      int64   `json:"step_ns"`
	Ticks       uint64  `json:"ticks"`
	LateNs      spread  `json:"late_ns"`
	TickNs      spread  `json:"tick_ns"`
	Response    spread  `json:"response_ns"`
	Missed      uint64  `json:"missed"`
	Transitions uint64  `json:"transitions"`
	LagMax      float64 `json:"lag_max_s"`
	Allocs      uint64  `json:"allocs"`
	GCCycles    uint64  `json:"gc_cycles"`
	Minor       uint64  `json:"page_faults_minor"`
	Major       uint64  `json:"page_faults_major"`
	BusDown     uint64  `json:"bus_down"`
	RxFrames    uint64  `json:"rx_frames"`
	RxUnknown   uint64  `json:"rx_unknown"`
	RxShort     uint64  `json:"rx_short"`
	RxRange     uint64  `json:"rx_range"`
	RxOverflow  uint64  `json:"rx_overflow"`
	TxFrames    uint64  `json:"tx_frames"`
	TxDropped   uint64  `json:"tx_dropped"`
	TxAgain     uint64  `json:"tx_again"`
	TxLost      uint64  `json:"tx_lost"`
	BestEffort  bool    `json:"besteffort"`
	Ended       string  `json:"ended"`
	Silent      []struct {
		Message string  `json:"message"`
		Last    float64 `json:"last_s"`
		For     float64 `json:"for_s"`
	} `json:"silent"`
}

// spread is how a time is distributed, as the report says it, ns.
type spread struct {
	P50 int64 `json:"p50"`
	Max int64 `json:"max"`
}

// bench is `lockstep run` for a while.
type bench struct {
	*process
	file string
	d    time.Duration
}

// run starts a bench on vcan0, best effort.
func run(t *testing.T, d time.Duration) *bench {
	t.Helper()
	return runOn(t, "vcan0", d, nil, "-besteffort")
}

// edit replaces a piece of a bench file.
type edit struct{ from, to string }

// runOn starts the demo bench, edited, with more arguments.
func runOn(t *testing.T, bus string, d time.Duration, edits []edit, args ...string) *bench {
	t.Helper()
	return startBench(t, d, edits, append([]string{"run", "-bus", bus}, args...)...)
}

// startBench starts a command on the demo bench, edited. The demo bench gives up
// after 200 ticks missed at once; the lab's processors may well be away for longer,
// so it gets a longer patience.
func startBench(t *testing.T, d time.Duration, edits []edit, args ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	plants := start(t, command(t), "plants", "powershift-bench")
	if code := plants.wait(time.Minute); code != 0 {
		t.Fatalf("lockstep plants powershift-bench: exit %d\n%s", code, &plants.err)
	}
	text := plants.out.String()
	for _, e := range append(edits, edit{"overrun: skip 200", "overrun: skip 900"}) {
		if !strings.Contains(text, e.from) {
			t.Fatalf("the demo bench has no line %q:\n%s", e.from, text)
		}
		text = strings.Replace(text, e.from, e.to, 1)
	}
	file := filepath.Join(dir, "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &bench{file: filepath.Join(dir, "report.json"), d: d}
	b.process = start(t, command(t), append(args, file, "-for", d.String(), "-report", b.file)...)
	return b
}

// report waits for the end of a run, clean and complete, and returns what it reports.
func (b *bench) report() report {
	b.t.Helper()
	r := b.end(b.d + 30*time.Second)
	if want := uint64(b.d.Nanoseconds() / r.StepNs); r.Ticks != want {
		b.t.Errorf("%d grid points stepped in %v, want every one of %d", r.Ticks, b.d, want)
	}
	return r
}

// stop ends a run as Ctrl-C does and returns what it reports. The run must have
// ended clean.
func (b *bench) stop() report {
	b.t.Helper()
	b.signal(syscall.SIGINT)
	return b.end(30 * time.Second)
}

func (b *bench) end(patience time.Duration) (r report) {
	b.t.Helper()
	if code := b.wait(patience); code != 0 {
		b.t.Fatalf("%s: exit %d, want 0\n%s%s", b.name, code, &b.out, &b.err)
	}
	data, err := os.ReadFile(b.file)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("report: %s", data)
	if err := json.Unmarshal(data, &r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// unit starts the virtual control unit.
func unit(t *testing.T, bus string) *process {
	t.Helper()
	p := start(t, command(t), "ecu", "powershift", "-bus", bus)
	p.await("waiting for Speeds", patience)
	return p
}

// frames is what candump saw of one identifier.
type frames struct {
	data [][]byte
	lost int // by the rolling counter
}

// candump starts candump, with a buffer for all that comes, and waits until the kernel
// has it among those that get every frame of the bus: it says nothing itself.
func candump(t *testing.T, bus string) *process {
	t.Helper()
	listeners := func() int {
		list, err := os.ReadFile("/proc/net/can/rcvlist_all")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(list), " "+bus+" ")
	}
	before := listeners()
	p := start(t, "candump", "-L", "-d", "-r", "8000000", bus)
	for end := time.Now().Add(20 * time.Second); listeners() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("candump does not listen to %s:\n%s", bus, &p.err)
		}
	}
	return p
}

// caughtUp waits until candump has no more to say.
func caughtUp(p *process) {
	quiet := 500 * time.Millisecond
	if os.Getenv(insideVar) == vcanLab.script {
		quiet = 3 * time.Second // it stands still for a second and more
	}
	for before := -1; before != len(p.out.String()); time.Sleep(quiet) {
		before = len(p.out.String())
	}
}

// dumped ends candump once it has caught up, and returns what it saw by
// identifier, and in which order.
func dumped(t *testing.T, p *process) (byID map[string]*frames, order []string) {
	t.Helper()
	caughtUp(p)
	return dumpedNow(t, p)
}

// dumpedNow ends candump at once.
func dumpedNow(t *testing.T, p *process) (byID map[string]*frames, order []string) {
	t.Helper()
	p.signal(syscall.SIGTERM)
	p.wait(10 * time.Second)
	if strings.Contains(p.out.String()+p.err.String(), "DROPCOUNT") {
		t.Fatalf("candump itself lost frames:\n%s", &p.err)
	}
	byID = map[string]*frames{}
	for line := range strings.Lines(p.out.String()) {
		id, text, ok := strings.Cut(strings.TrimSpace(line[strings.LastIndex(strings.TrimSpace(line), " ")+1:]), "#")
		data := make([]byte, len(text)/2)
		for i := range data {
			b, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
			ok = ok && err == nil
			data[i] = byte(b)
		}
		if !ok {
			t.Fatalf("candump: %q is not a frame", line)
		}
		if byID[id] == nil {
			byID[id] = &frames{}
		}
		byID[id].data = append(byID[id].data, data)
		order = append(order, id)
	}
	return byID, order
}

// counters are byte and shift of the rolling counters.
var counters = map[string]struct{ at, shift int }{
	"110": {6, 4}, "111": {6, 4}, "200": {7, 4}, "201": {6, 0}, "202": {7, 4},
}

// count fills in what the rolling counters say is missing.
func (f *frames) count(id string) {
	c := counters[id]
	f.lost = 0
	for i := 1; i < len(f.data); i++ {
		jump := int(f.data[i][c.at]>>c.shift) - int(f.data[i-1][c.at]>>c.shift)
		f.lost += (jump + 15) & 15
	}
}

// testimony is what witness.py prints.
type testimony struct {
	Count, Jumps               map[string]int
	Length                     map[string]map[string]int
	Gears                      [][]int
	Judged                     int
	Violations, Contradictions []any // their number, then some of them
}

func TestLabBenchAndUnitDriveOnVcan(t *testing.T) {
	if !inside(t, pacedLab, "candump", "python3-can") {
		return
	}
	dump := candump(t, "vcan0")
	python := start(t, "/usr/bin/python3", "witness.py", "vcan0")
	python.await("listening", patience)
	tcu := unit(t, "vcan0")
	r := run(t, 20*time.Second).report()
	tcu.signal(syscall.SIGINT)
	if code := tcu.wait(10 * time.Second); code != 0 {
		t.Errorf("%s: exit %d, want 0\n%s", tcu.name, code, &tcu.err)
	}
	t.Logf("%s\n%s%s", tcu.name, &tcu.out, &tcu.err)
	byID, order := dumped(t, dump)
	python.signal(syscall.SIGTERM)
	if code := python.wait(30 * time.Second); code != 0 {
		t.Fatalf("%s: exit %d\n%s", python.name, code, &python.err)
	}
	var saw testimony
	_, text, _ := strings.Cut(python.out.String(), "listening\n")
	if err := json.Unmarshal([]byte(text), &saw); err != nil {
		t.Fatalf("witness.py: %v\n%s", err, text)
	}
	checkFrames(t, byID, r)
	checkUnit(t, byID, order, r, tcu.out.String()+tcu.err.String())
	checkTestimony(t, byID, saw)
	// A frame waits for the next tick at most, if that is in time.
	if most := r.StepNs + r.LateNs.Max + r.TickNs.Max; !(r.Response.P50 > 0 && r.Response.P50 <= most) {
		t.Errorf("bus to bus half of the frames take %d ns, want more than 0 and at most the period, the latest wake-up and the longest tick, %d ns", r.Response.P50, most)
	}
	if r.Allocs != 0 || r.GCCycles != 0 {
		t.Errorf("the ticking process made %d allocations and %d collections, want none", r.Allocs, r.GCCycles)
	}
	if !(r.LagMax > 0 && r.Transitions > 20) || !r.BestEffort {
		t.Errorf("the report: largest lag %v s, %d transitions, best effort %v; want some of each", r.LagMax, r.Transitions, r.BestEffort)
	}
}

// checkFrames holds what candump saw of the bench against its report.
func checkFrames(t *testing.T, byID map[string]*frames, r report) {
	t.Helper()
	for id, f := range byID {
		if _, known := counters[id]; !known {
			t.Errorf("%d frames with the identifier %s, which nobody should send", len(f.data), id)
			continue
		}
		for _, data := range f.data {
			if len(data) != 8 {
				t.Fatalf("frame %s# % X has %d bytes, want 8", id, data, len(data))
			}
		}
	}
	for id := range counters {
		if byID[id] == nil {
			t.Fatalf("no frame %s on the bus", id)
		}
		byID[id].count(id)
	}
	sent, lost := 0, 0
	for _, id := range []string{"200", "201", "202"} {
		sent += len(byID[id].data)
		lost += byID[id].lost
	}
	// A frame that the bus refuses is lost after its counter has advanced.
	if sent != int(r.TxFrames) || lost != int(r.TxDropped) {
		t.Errorf("on the bus %d frames of the bench, %d missing by their counters; it reports %d sent, %d dropped",
			sent, lost, r.TxFrames, r.TxDropped)
	}
	checkSpeeds(t, byID["200"], r)
	if r.Ticks*uint64(r.StepNs) != 20e9 || r.Ticks != 4000 {
		t.Errorf("%d grid points of %d ns, want 200 per second for 20 s", r.Ticks, r.StepNs)
	}
}

// checkSpeeds holds the Speeds on the bus against the report. One is due at every
// grid point, 200 times a second; what is not there was due at a grid point that
// was missed, or was dropped.
func checkSpeeds(t *testing.T, f *frames, r report) {
	t.Helper()
	f.count("200")
	if len(f.data)+f.lost+int(r.Missed) != int(r.Ticks) {
		t.Errorf("%d Speeds sent, %d dropped, %d grid points missed: want %d together", len(f.data), f.lost, r.Missed, r.Ticks)
	}
}

// slack is how many cycles of the unit may lie between what happens at one end of
// the bus and what the witness writes down, when the lab stands still just then.
const slack = 25

// checkUnit holds what candump saw of the control unit against its own log and
// the bench's report.
func checkUnit(t *testing.T, byID map[string]*frames, order []string, r report, log string) {
	t.Helper()
	var cycles, missed, dropped int
	at := strings.LastIndex(log, "powershift: ")
	if _, err := fmt.Sscanf(log[max(at, 0):], "powershift: %d cycles sent, %d missed, %d frames dropped", &cycles, &missed, &dropped); err != nil {
		t.Fatalf("the unit's last line has no counts: %v\n%s", err, log)
	}
	one, two := byID["110"], byID["111"]
	if len(one.data) != cycles || len(two.data) != cycles || one.lost+two.lost != dropped || dropped != 0 {
		t.Errorf("on the bus %d and %d pressure frames, %d missing by their counters; the unit says %d cycles, %d dropped",
			len(one.data), len(two.data), one.lost+two.lost, cycles, dropped)
	}
	// While the bench sends Speeds, for 20 s, the unit has 2000 cycles of two
	// frames, 200 frames a second: never more, and what is less it was late for.
	first, last := slices.Index(order, "200"), 0
	for i, id := range order {
		if id == "200" {
			last = i
		}
	}
	during := 0
	for _, id := range order[first:last] {
		if id == "110" || id == "111" {
			during++
		}
	}
	if during/2 > 2000+slack || during/2+missed < 2000-slack {
		t.Errorf("%d pressure frames in 20 s, and the unit says it missed %d cycles; want 4000 frames, two for each missed cycle less",
			during, missed)
	}
	if got := int(r.RxFrames + r.RxOverflow); got > during+2*slack || got < during-2*slack || r.RxUnknown+r.RxShort+r.RxRange != 0 {
		t.Errorf("the bench received %d frames and lost %d of the unit's %d; unknown %d, short %d, out of range %d",
			r.RxFrames, r.RxOverflow, during, r.RxUnknown, r.RxShort, r.RxRange)
	}
	if strings.Contains(log, "still slips") || strings.Contains(log, "should be engaged") {
		t.Errorf("the unit is not content:\n%s", log)
	}
}

// checkTestimony holds the two witnesses against each other, and the physics
// that python3-can saw against the gearbox.
func checkTestimony(t *testing.T, byID map[string]*frames, saw testimony) {
	t.Helper()
	for id, f := range byID {
		if saw.Count[id] != len(f.data) || saw.Jumps[id] != f.lost || saw.Length[id]["8"] != len(f.data) {
			t.Errorf("frame %s: python3-can saw %d, %d of them 8 bytes long, %d missing; candump %d, %d missing",
				id, saw.Count[id], saw.Length[id]["8"], saw.Jumps[id], len(f.data), f.lost)
		}
	}
	if !reflect.DeepEqual(saw.Violations, []any{0.0}) {
		t.Errorf("speeds that do not satisfy a clutch that is stuck: %v", saw.Violations)
	}
	if !reflect.DeepEqual(saw.Contradictions, []any{0.0}) {
		t.Errorf("clutches under full pressure that are not stuck: %v", saw.Contradictions)
	}
	if saw.Judged < 1000 {
		t.Errorf("only %d Speeds frames could be judged", saw.Judged)
	}
	want := [][]int{{1, 3, 6}, {2, 3, 6}, {1, 5, 6}, {2, 4, 7}, {2, 5, 7}, {2, 5, 8}, {2, 4, 7}}
	if len(saw.Gears) < len(want) || !slices.EqualFunc(saw.Gears[:len(want)], want, slices.Equal) {
		t.Errorf("gears %v, want %v first", saw.Gears, want)
	}
}
