package proof

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
	"lockstep/rt"
)

// shifting drives the plant by tick numbers without a control unit, so that two runs are identical
// bit by bit.
const shifting = `scenario: proof-shifting
faults:
  - {input: clutch2.pressure, stuck: 24 bar, at: tick 100}
  - {input: clutch1.pressure, stuck: 0 bar, at: tick 100}
  - {input: clutch3.pressure, stuck: 0 bar, at: tick 100}
  - {input: clutch6.pressure, stuck: 0 bar, at: tick 100}
  - {name: a, input: clutch4.pressure, stuck: 17.5 bar, at: tick 100, for: 500 ticks}
  - {name: b, input: clutch7.pressure, stuck: 18 bar, at: tick 100, for: 500 ticks}
  - {name: c, input: clutch5.pressure, stuck: 17.5 bar, at: tick 600}
  - {name: d, input: clutch8.pressure, stuck: 18 bar, at: tick 600}
`

// soloRun is a run without units, by tick.
type soloRun struct {
	u, y   [][]float64 // inputs and outputs
	missed []bool
	frames []string // data of the sent frames, in order
	work   []int64  // time of receiving, stepping and sending, ns; 0 for a lost tick
	start  int64    // ns since 1970
	most   int      // largest number of frames received in a tick
	report lab.Report

	dropped int64 // first tick with a frame that the bus refused
}

// solo runs the bench for 12 s without units. With flood, a sender of unknown frames runs for some
// seconds in the middle; n is the number of its frames, from and to its start and end, ns since
// 1970.
func (p *proofRun) solo(flood bool) (r *soloRun, n uint64, from, to int64) {
	p.Helper()
	t := p.T
	dir := t.TempDir()
	scenario, rec, file := filepath.Join(dir, "shifting.yaml"), filepath.Join(dir, "run.rec"), filepath.Join(dir, p.name+".yaml")
	text, err := os.ReadFile(p.name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	database, err := filepath.Abs("gearbox.dbc")
	if err != nil {
		t.Fatal(err)
	}
	// Frames of lost grid points are sent late, so that the counters of two runs agree.
	text = []byte(strings.NewReplacer("overrun: skip 900", "overrun: catchup 900", "gearbox.dbc", database).Replace(string(text)))
	for path, text := range map[string][]byte{scenario: []byte(shifting), file: text} {
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b := &lab.Bench{File: filepath.Join(dir, "report.json"), For: 12 * time.Second}
	b.Process = lab.Start(t, lab.Command(t), append([]string{"run", file, "-bus", p.bus, "-for", b.For.String(),
		"-scenario", scenario, "-report", b.File, "-record", rec}, p.args...)...)
	if flood {
		b.AwaitTicking() // the first status line
		from = time.Now().UnixNano()
		n = lab.AwaitSender(t, lab.SendRandom(t, p.units, p.flood, "3", "7ff", "123", "1abcdef", "113"))
		to = time.Now().UnixNano()
	}
	r = &soloRun{report: b.AwaitReport()}
	r.read(t, rec)
	return r, n, from, to
}

func (r *soloRun) read(t *testing.T, path string) {
	t.Helper()
	in, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r.start, r.dropped = in.Header.Start, math.MaxInt64
	frames, count := map[int64]string{}, map[int64]int{}
	for {
		e, err := in.Next()
		if err != nil {
			break
		}
		switch {
		case e.Kind == record.TickEntry:
			p := e.Tick.Phases
			r.u, r.y = append(r.u, slices.Clone(e.Tick.U)), append(r.y, slices.Clone(e.Tick.Y))
			r.missed = append(r.missed, e.Tick.Flags&record.Missed != 0)
			r.work = append(r.work, p[rt.Receive]+p[rt.Step]+p[rt.Send])
		case e.Kind == record.FrameEntry && e.Frame.Sent && e.Frame.Lost:
			r.dropped = min(r.dropped, e.Frame.Tick)
		case e.Kind == record.FrameEntry && e.Frame.Sent:
			frames[e.Frame.Tick] += string(e.Frame.Data[:e.Frame.Len])
		case e.Kind == record.FrameEntry && !e.Frame.Sent && !e.Frame.Other:
			count[e.Frame.Tick]++
			r.most = max(r.most, count[e.Frame.Tick])
		}
	}
	for k := range r.y {
		r.frames = append(r.frames, frames[int64(k+1)])
	}
}

// median returns the median work of the served ticks inside or outside of a time, ns.
func (r *soloRun) median(from, to int64, within bool) float64 {
	var list []int64
	for k, ns := range r.work {
		at := r.start + int64(k+1)*5e6
		if !r.missed[k] && (at >= from && at < to) == within {
			list = append(list, ns)
		}
	}
	slices.Sort(list)
	if len(list) < 100 {
		return math.NaN()
	}
	return float64(list[len(list)/2])
}

// flooded sends unknown frames as fast as the lab can during a run. The filter of the kernel drops
// them: no tick reads one, every input, output and frame is identical to a run without the flood,
// and the work of a tick does not grow.
func flooded(p *proofRun) {
	t := p.T
	calm, _, _, _ := p.solo(false)
	r, n, from, to := p.solo(true)
	if len(calm.y) != 2400 || len(r.y) != 2400 {
		t.Fatalf("%d and %d ticks, want 2400 of each", len(calm.y), len(r.y))
	}
	same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	compared := 0
	for k := range r.y {
		if !slices.EqualFunc(calm.u[k], r.u[k], same) || !slices.EqualFunc(calm.y[k], r.y[k], same) {
			t.Fatalf("tick %d: %v and %v; with the flood %v and %v", k+1, calm.u[k], calm.y[k], r.u[k], r.y[k])
		}
		if int64(k+1) >= min(calm.dropped, r.dropped) { // after a dropped frame the counters differ
			continue
		}
		if compared++; calm.frames[k] != r.frames[k] {
			t.Fatalf("tick %d: frames %X; with the flood %X", k+1, calm.frames[k], r.frames[k])
		}
	}
	if r.report.Transitions < 5 {
		t.Errorf("%d transitions, want at least 5", r.report.Transitions)
	}
	perSecond, own := float64(n)/(float64(to-from)/1e9), float64(r.report.TxFrames)/12
	if least := map[bool]float64{true: 0, false: own}[p.bus != p.units]; !(perSecond > least) { // a card is limited by the bit rate
		t.Errorf("a flood of %.0f frames a second with %.0f of the bench, want more than %.0f", perSecond, own, least)
	}
	if r.report.RxFrames+r.report.RxUnknown+r.report.RxOverflow != 0 || r.most != 0 {
		t.Errorf("the bench has read %d frames, %d unknown, and lost %d; at most %d at a tick", r.report.RxFrames, r.report.RxUnknown, r.report.RxOverflow, r.most)
	}
	within, without := r.median(from, to, true), r.median(from, to, false)
	t.Logf("%d frames in %.1f s, %d of the bench; %d identical ticks, frames compared at %d of them; work per tick during the flood and outside of it: %.0f and %.0f ns, ratio %.2f",
		n, float64(to-from)/1e9, r.report.TxFrames, len(r.y), compared, within, without, within/without)
	if ratio := within / without; !(ratio < 5) { // in the labs the sender shares a CPU with the loop
		t.Errorf("the median tick takes %.2f times as long during the flood, want less than 5", ratio)
	}
}

// wrongFrames checks that frames with a wrong length, a value that is not a number or a wrong
// checksum are counted by message.
func wrongFrames(t *testing.T) {
	dir := t.TempDir()
	b := &lab.Bench{File: filepath.Join(dir, "report.json"), For: lab.UntilStopped}
	b.Process = lab.Start(t, lab.Command(t), "run", "fd.yaml", "-bus", "vcan0", "-report", b.File, "-besteffort")
	b.AwaitTicking()
	for range 3 {
		lab.Shell(t, "cansend vcan0 110#01020304050607")
	}
	lab.Shell(t, "cansend vcan0 110#0001020304050607")
	python := lab.Start(t, "/usr/bin/python3", "-c", `
import can, sys
sys.path.insert(0, "unit")
import unit
bus = can.Bus("vcan0", bustype="socketcan", fd=True)
for n, clutch6 in enumerate((1.5, float("nan"), float("inf"), 2.5)):
    bus.send(unit.frame(n, True, clutch6))
`)
	if code := python.Wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, &python.Err)
	}
	b.AwaitTicks(1) // reads the frames
	b.Stop()
	var full struct {
		Messages []struct {
			Message    string
			Frames, OK uint64
			Errors     uint64 `json:"error"`
			Length     uint64 `json:"wrong_length"`
			Range      uint64 `json:"out_of_range"`
		}
	}
	data, err := os.ReadFile(b.File)
	if err == nil {
		err = json.Unmarshal(data, &full)
	}
	if err != nil || len(full.Messages) != 2 {
		t.Fatalf("%v, %+v", err, full)
	}
	if m := full.Messages[0]; m.Frames != 4 || m.Errors != 4 || m.Length != 3 || m.OK != 0 {
		t.Errorf("counts of three frames with 7 bytes and one with a wrong checksum: %+v", m)
	}
	if m := full.Messages[1]; m.Frames != 4 || m.OK != 4 || m.Range != 2 {
		t.Errorf("counts of four good frames, two of them with values that are not numbers: %+v", m)
	}
}

// cablePulled takes the interface down and up in the middle of a run.
func cablePulled(t *testing.T) {
	dir := t.TempDir()
	b := &lab.Bench{File: filepath.Join(dir, "report.json"), For: lab.UntilStopped}
	b.Process = lab.Start(t, lab.Command(t), "run", "fd.yaml", "-bus", "vcan0", "-report", b.File, "-besteffort")
	b.AwaitTicking()
	lab.Shell(t, "ip link set vcan0 down")
	b.AwaitTicks(100)
	lab.Shell(t, "ip link set vcan0 up")
	b.AwaitTicks(100)
	r := b.Stop()
	if r.BusDown == 0 || r.TxDropped == 0 || r.TxFrames == 0 {
		t.Errorf("the report counts the bus down %d times, %d frames sent and %d dropped; want some of each", r.BusDown, r.TxFrames, r.TxDropped)
	}
	if n := strings.Count(b.Out.String(), "bus errors  "); n != 1 {
		t.Errorf("the report has %d lines about the bus, want one:\n%s", n, &b.Out)
	}
}
