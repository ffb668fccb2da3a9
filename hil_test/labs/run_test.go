package labs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockstep/hil_test/lab"
	"lockstep/sched"
)

// monitorResult is the output of witness.py.
type monitorResult struct {
	Count, Jumps               map[string]int            // frames and gaps of the counter, by identifier
	Length                     map[string]map[string]int // frames by identifier and length, bytes
	Gears                      [][]int
	Judged                     int   // checked frames Speeds
	Violations, Contradictions []any // their number, then the first ones
}

func TestLabBenchAndUnitDriveOnVcan(t *testing.T) {
	if !lab.Inside(t, lab.VCANSerial, "candump", "python3-can") {
		return
	}
	dump := lab.StartCandump(t, "vcan0")
	python := lab.Start(t, "/usr/bin/python3", "witness.py", "vcan0")
	python.AwaitOutput("listening")
	tcu := lab.StartUnit(t, "vcan0")
	bench := lab.StartDemo(t, lab.UntilStopped)
	bench.AwaitTicking()
	if locked := lab.StatusKilobytes(t, bench.Target(), "VmLck"); !(locked > 0 && locked<<10 < sched.LockedMemory) {
		t.Errorf("the target has locked %d kB, want less than %d", locked, sched.LockedMemory>>10)
	}
	tcu.AwaitOutputs("gear 2-4-7 engaged", 2) // the last of the seven shifts of 18 s
	r := bench.Stop()
	tcu.Signal(syscall.SIGINT)
	if code := tcu.Wait(); code != 0 {
		t.Errorf("%s: exit %d, want 0\n%s", tcu.Name, code, &tcu.Err)
	}
	t.Logf("%s\n%s%s", tcu.Name, &tcu.Out, &tcu.Err)
	byID, order := lab.EndCandump(t, dump)
	python.Signal(syscall.SIGTERM)
	if code := python.Wait(); code != 0 {
		t.Fatalf("%s: exit %d\n%s", python.Name, code, &python.Err)
	}
	var saw monitorResult
	_, text, _ := strings.Cut(python.Out.String(), "listening\n")
	if err := json.Unmarshal([]byte(text), &saw); err != nil {
		t.Fatalf("witness.py: %v\n%s", err, text)
	}
	checkFrames(t, byID, r)
	checkUnit(t, byID, order, r, tcu.Out.String()+tcu.Err.String())
	checkMonitor(t, byID, saw)
	// A frame waits at most for the next tick, and for its latency.
	if most := r.StepNs + r.LateNs.Max + r.TickNs.Max; !(r.Response.P50 > 0 && r.Response.P50 <= most) {
		t.Errorf("median response time from bus to bus %d ns; want more than 0 and at most %d ns, the sum of the period, the largest wake-up latency and the longest tick", r.Response.P50, most)
	}
	if r.Allocs != 0 || r.GCCycles != 0 {
		t.Errorf("the ticking process made %d allocations and %d collections, want none", r.Allocs, r.GCCycles)
	}
	if !(r.LagMax > 0 && r.Transitions > 20) || !r.BestEffort {
		t.Errorf("the report: largest lag %v s, %d transitions, best effort %v; want some of each", r.LagMax, r.Transitions, r.BestEffort)
	}
}

// checkFrames compares the frames of the bench in candump with its report.
func checkFrames(t *testing.T, byID map[string]*lab.Frames, r lab.Report) {
	t.Helper()
	for id, f := range byID {
		if _, known := lab.Counters[id]; !known {
			t.Errorf("%d frames with the unknown identifier %s", len(f.Data), id)
			continue
		}
		for _, data := range f.Data {
			if len(data) != 8 {
				t.Fatalf("frame %s# % X has %d bytes, want 8", id, data, len(data))
			}
		}
	}
	for id := range lab.Counters {
		if byID[id] == nil {
			t.Fatalf("no frame %s on the bus", id)
		}
		byID[id].CountLost(id)
	}
	sent, lost := 0, 0
	for _, id := range []string{"200", "201", "202"} {
		sent += len(byID[id].Data)
		lost += byID[id].Lost
	}
	// A frame that the bus refuses is lost after its counter has advanced.
	if sent != int(r.TxFrames) || lost != int(r.TxDropped) {
		t.Errorf("on the bus %d frames of the bench, %d missing by their counters; it reports %d sent, %d dropped",
			sent, lost, r.TxFrames, r.TxDropped)
	}
	checkSpeeds(t, byID["200"], r)
	if r.StepNs != 5e6 {
		t.Errorf("grid points each %d ns, want 200 per second", r.StepNs)
	}
}

// checkSpeeds compares the frames Speeds on the bus with the report. One is due at every grid
// point, 200 times a second; the missing ones belong to missed ticks or were dropped.
func checkSpeeds(t *testing.T, f *lab.Frames, r lab.Report) {
	t.Helper()
	f.CountLost("200")
	if len(f.Data)+f.Lost+int(r.Missed) != int(r.Ticks) {
		t.Errorf("%d Speeds sent, %d dropped, %d grid points missed: want %d together", len(f.Data), f.Lost, r.Missed, r.Ticks)
	}
}

// slack is the number of cycles of the unit between an event at one end of the bus and its entry in
// candump, while the lab stalls.
const slack = 25

// checkUnit compares the frames of the control unit in candump with its log and with the report of
// the bench.
func checkUnit(t *testing.T, byID map[string]*lab.Frames, order []string, r lab.Report, log string) {
	t.Helper()
	cycles, missed, dropped := unitCounts(t, log)
	one, two := byID["110"], byID["111"]
	if len(one.Data) != cycles || len(two.Data) != cycles || one.Lost+two.Lost != dropped || dropped != 0 {
		t.Errorf("on the bus %d and %d pressure frames, %d missing by their counters; the unit says %d cycles, %d dropped",
			len(one.Data), len(two.Data), one.Lost+two.Lost, cycles, dropped)
	}
	// While the bench sends Speeds, the unit has 100 cycles of two frames a second. It sends no more,
	// and less only for missed cycles.
	want := int(r.Ticks * uint64(r.StepNs) / 10e6)
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
	if during/2 > want+slack || during/2+missed < want-slack {
		t.Errorf("%d pressure frames, and the unit says it missed %d cycles; want %d frames, two for each missed cycle less",
			during, missed, 2*want)
	}
	if got := int(r.RxFrames + r.RxOverflow); got > during+2*slack || got < during-2*slack || r.RxUnknown+r.RxShort+r.RxRange != 0 {
		t.Errorf("the bench received %d frames and lost %d of the unit's %d; unknown %d, short %d, out of range %d",
			r.RxFrames, r.RxOverflow, during, r.RxUnknown, r.RxShort, r.RxRange)
	}
	checkClutches(t, log)
}

// unitCounts returns the counts of the control unit in the last line of its log.
func unitCounts(t *testing.T, log string) (cycles, missed, dropped int) {
	t.Helper()
	at := strings.LastIndex(log, "powershift: ")
	if _, err := fmt.Sscanf(log[max(at, 0):], "powershift: %d cycles sent, %d missed, %d frames dropped", &cycles, &missed, &dropped); err != nil {
		t.Fatalf("the unit's last line has no counts: %v\n%s", err, log)
	}
	return cycles, missed, dropped
}

// checkClutches fails if the control unit reports a clutch that slips too long. A unit that misses many cycles
// controls its clutches badly.
func checkClutches(t *testing.T, log string) {
	t.Helper()
	if cycles, missed, _ := unitCounts(t, log); missed < cycles/10 && (strings.Contains(log, "still slips") || strings.Contains(log, "should be engaged")) {
		t.Errorf("the unit reports a clutch that slips too long:\n%s", log)
	}
}

// checkMonitor compares python3-can with candump, and the speeds in python3-can with the ratios of
// the gearbox.
func checkMonitor(t *testing.T, byID map[string]*lab.Frames, saw monitorResult) {
	t.Helper()
	for id, f := range byID {
		if saw.Count[id] != len(f.Data) || saw.Jumps[id] != f.Lost || saw.Length[id]["8"] != len(f.Data) {
			t.Errorf("frame %s: python3-can saw %d, %d of them 8 bytes long, %d missing; candump %d, %d missing",
				id, saw.Count[id], saw.Length[id]["8"], saw.Jumps[id], len(f.Data), f.Lost)
		}
	}
	if !reflect.DeepEqual(saw.Violations, []any{0.0}) {
		t.Errorf("speeds that contradict a locked clutch: %v", saw.Violations)
	}
	if !reflect.DeepEqual(saw.Contradictions, []any{0.0}) {
		t.Errorf("clutches under full pressure that are not locked: %v", saw.Contradictions)
	}
	if saw.Judged < 1000 {
		t.Errorf("%d frames Speeds checked, want at least 1000", saw.Judged)
	}
	want := [][]int{{1, 3, 6}, {2, 3, 6}, {1, 5, 6}, {2, 4, 7}, {2, 5, 7}, {2, 5, 8}, {2, 4, 7}}
	if len(saw.Gears) < len(want) || !slices.EqualFunc(saw.Gears[:len(want)], want, slices.Equal) {
		t.Errorf("gears %v, want %v first", saw.Gears, want)
	}
}
