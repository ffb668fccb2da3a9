package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/report"
)

// fedJudge is a judge with the entries of a test; a tick is 5 ms.
type fedJudge struct {
	t    *testing.T
	h    *bench.Handover
	page *rt.StatusBlock
	j    *Judge
	u, y []float64
	e    rt.Entry // at hand
}

// begin returns a judge of one expectation, with a fault called f in slot 0.
func begin(t *testing.T, expect string) *fedJudge {
	t.Helper()
	h := fuzzed()
	text := "scenario: test\nfaults:\n  - {name: f, frame: Speeds, drop: true}\nexpect:\n  - {" + expect + "}\n"
	s, err := Parse("s.yaml", []byte(text), h)
	if err != nil {
		t.Fatal(err)
	}
	page := new(rt.StatusBlock)
	return &fedJudge{
		t: t, h: h, page: page, j: NewJudge(s, h, page),
		u: make([]float64, len(h.Tables.Inputs)), y: make([]float64, len(h.Tables.Outputs)),
	}
}

// step adds tick k with these values of w1 and of the pressure of clutch 1.
func (r *fedJudge) step(k int64, w1, c1 float64) {
	r.y[bench.PortIndex(r.h.Tables.Outputs, "w1")], r.u[bench.PortIndex(r.h.Tables.Inputs, "clutch1.pressure")] = w1, c1
	r.e = rt.Entry{Kind: rt.KindStep, Tick: k, U: r.u, Y: r.y}
	r.j.Entry(&r.e)
}

// steps adds the ticks from one to another, with w1 by tick.
func (r *fedJudge) steps(from, to int64, w1 func(k int64) float64) {
	for k := from; k <= to; k++ {
		r.step(k, w1(k), 0)
	}
}

// received adds a frame of TCU_Pressure_1 that tick k reads; stamp is its time, ns.
func (r *fedJudge) received(k, stamp int64) {
	r.e = rt.Entry{Kind: rt.KindFrame, Tick: k, Fate: rt.Received, Stamp: can.Stamp{Soft: stamp}}
	r.j.Entry(&r.e)
}

// verdict checks the finding of the only expectation; seen is part of Seen.
func (r *fedJudge) verdict(held bool, seen string) report.Finding {
	r.t.Helper()
	list := r.j.End(0)
	if len(list) != 1 || list[0].Held != held || !strings.Contains(list[0].Seen, seen) {
		r.t.Errorf("%+v, want held %v, seen %q", list, held, seen)
	}
	return list[0]
}

func constant(v float64) func(int64) float64 { return func(int64) float64 { return v } }

func TestWindowIncludesItsFirstAndLastTick(t *testing.T) {
	const window = "value: w1, within: 2 %, of: 100 rad/s, from: 50 ms, to: 100 ms" // ticks 10 to 20
	for bad, held := range map[int64]bool{9: true, 10: false, 15: false, 20: false, 21: true} {
		r := begin(t, window)
		r.steps(1, 30, func(k int64) float64 {
			if k == bad {
				return 102.5
			}
			return 101
		})
		if f := r.verdict(held, "worst "); !scalar.EqualWithinAbs(f.Time, 0.055, 1e-12) {
			t.Errorf("judged for %v s, 11 ticks are 0.055 s", f.Time)
		} else if !held && !strings.Contains(f.Seen, fmt.Sprintf("worst 978.803 rpm at %g s, outside at 1 of 11 ticks", float64(bad)*0.005)) {
			t.Errorf("tick %d was outside: %s", bad, f.Seen)
		}
	}
}

func TestWindowOffTheGridHasTheTicksInside(t *testing.T) {
	const window = "value: w1, below: 5 rad/s, from: 12 ms, to: 24 ms" // 15 ms and 20 ms
	for bad, held := range map[int64]bool{2: true, 3: false, 4: false, 5: true} {
		r := begin(t, window)
		r.steps(1, 10, func(k int64) float64 { return map[bool]float64{true: 6, false: 1}[k == bad] })
		r.verdict(held, "")
	}
}

func TestLimitsAndTolerancesHaveTheirOwnUnits(t *testing.T) {
	rpm := math.Pi / 30
	for _, c := range []struct {
		expect string
		v      float64
		held   bool
		seen   string
	}{
		{"value: w1, within: 2 %, of: 1500 rpm", 1529 * rpm, true, "worst 1529 rpm"},
		{"value: w1, within: 2 %, of: 1500 rpm", 1531 * rpm, false, "worst 1531 rpm"},
		{"value: w1, within: 2 %, of: -1500 rpm", -1531 * rpm, false, "worst -1531 rpm"}, // % of the size
		{"value: w1, within: 10 rpm, of: 1500 rpm", 1490.1 * rpm, true, ""},
		{"value: w1, within: 10 rpm, of: 1500 rpm", 1489.9 * rpm, false, ""},
		{"value: w1, within: 10 rad/s, of: 0", -10, true, ""},           // the limit is inside
		{"value: w1, above: 100 rad/s", 100, false, "worst 954.93 rpm"}, // the limit is outside; w1 is declared in rpm
		{"value: w1, above: 100 rad/s", 100.001, true, ""},
		{"value: w1, below: 100 rad/s", 100, false, ""},
		{"value: w1, above: 1 rpm, below: 3 rpm", 2 * rpm, true, "2 rpm"},
		{"value: w1, above: 1 rpm, below: 3 rpm", 4 * rpm, false, "4 rpm"},
		{"value: clutch1.w_rel, below: 30 rpm", 0, true, "worst 0 rad/s"}, // no declared unit: SI, not that of the limit
		{"value: Speeds.w1, above: 100 rad/s", 101, true, "101 rad/s"},    // the port that the signal is bound to
		{"value: w1, below: 1e300 rad/s", math.NaN(), false, "worst NaN"},
		{"value: w1, above: 1 rad/s", math.Inf(1), false, "worst +Inf"},
		{"value: w1, within: 2 %, of: 100 rad/s", math.NaN(), false, "NaN"},
	} {
		r := begin(t, c.expect)
		r.steps(1, 3, constant(c.v))
		r.verdict(c.held, c.seen)
	}
}

func TestNaNIsTheWorstValue(t *testing.T) {
	r := begin(t, "value: w1, below: 5 rad/s")
	r.step(1, 7, 0)
	r.step(2, math.NaN(), 0)
	r.step(3, 9, 0)
	r.verdict(false, "worst NaN rpm at 0.01 s, outside at 3 of 3 ticks")
}

func TestExpectationAfterTheEndOfTheRunFails(t *testing.T) {
	r := begin(t, "value: w1, below: 5 rad/s, from: 50 ms, to: 100 ms")
	r.steps(1, 19, constant(1)) // 95 ms
	r.verdict(false, "not judged: the run ended at 0.095 s")
	r = begin(t, "value: w1, below: 5 rad/s, from: 50 ms, to: 100 ms")
	r.steps(1, 19, constant(6)) // outside before the end: broken
	r.verdict(false, "worst 57.2958 rpm")
	r = begin(t, "value: w1, below: 5 rad/s, from: 50 ms")
	r.steps(1, 9, constant(1))
	r.verdict(false, "not judged: the run ended at 0.045 s")
	r = begin(t, "value: w1, below: 5 rad/s")
	r.verdict(false, "not judged: the run ended at 0 s")
	for _, expect := range []string{"answer: w1 > 3 rad/s, after: 1 s, within: 50 ms", "answer: {frame: TCU_Pressure_1}, after: 1 s, within: 50 ms"} {
		r = begin(t, expect)
		r.steps(1, 150, constant(1))
		r.verdict(false, "not judged: the run ended at 0.75 s")
		r = begin(t, expect)
		r.steps(1, 205, constant(1)) // 25 ms of the 50
		r.verdict(false, "not judged: the run ended at 1.025 s")
	}
	r = begin(t, "answer: w1 > 3 rad/s, after: {fault: f}, within: 50 ms")
	r.steps(1, 100, constant(9))
	r.verdict(false, "not judged: fault f never became active")
	r = begin(t, "answer: w1 > 3 rad/s, after: {when: w1 < 0}, within: 50 ms")
	r.steps(1, 100, constant(9))
	r.verdict(false, "not judged: w1 < 0 never held")
}

func TestLostEntriesOfTheRingBreakExpectations(t *testing.T) {
	r := begin(t, "value: w1, below: 5 rad/s")
	r.steps(1, 19, constant(1))
	if f := r.j.End(3); f[0].Held || f[0].Seen != "not judged: 3 entries of the ring were lost" {
		t.Errorf("%+v", f)
	}
}

func TestAnswerIsTimedFromTheTickOfTheCause(t *testing.T) {
	for _, c := range []struct {
		answer int64 // tick
		held   bool
		seen   string
	}{
		{200, true, "an answer after 0 ms, at tick 200, timed by ticks; cause at tick 200, where the answer held already"},
		{203, true, "an answer after 15 ms, at tick 203, timed by ticks; cause at tick 200"},
		{210, true, "after 50 ms"},
		{211, false, "after 55 ms"},
		{999, false, "no answer within 500 ms from tick 200 to the end"},
	} {
		r := begin(t, "answer: w1 > 3 rad/s, after: 1 s, within: 50 ms")
		r.steps(1, 300, func(k int64) float64 { return map[bool]float64{true: 4, false: 1}[k >= c.answer || k < 100] })
		r.verdict(c.held, c.seen)
	}
}

func TestAnswerToAFaultIsTimedFromTheFirstActiveTick(t *testing.T) {
	r := begin(t, "answer: clutch1.pressure < 1 bar, after: {fault: f}, within: 50 ms")
	for k := range int64(100) {
		state := fault.Armed
		if k >= 20 {
			state = fault.Active
		}
		if k == 5 || k == 20 || k == 60 { // armed, active, and active again
			r.j.Entry(&rt.Entry{Kind: rt.KindFault, Tick: k, State: state})
			r.j.Entry(&rt.Entry{Kind: rt.KindFault, Tick: 1, Slot: 1, State: fault.Active})
		}
		r.step(k, 0, map[bool]float64{true: 0.5e5, false: 2e5}[k >= 25])
	}
	r.verdict(true, "an answer after 25 ms, at tick 25, timed by ticks; cause at tick 20")
}

func TestAnswerToConditionsIsTimedFromTheFirstTickWithAllOfThem(t *testing.T) {
	r := begin(t, "answer: w1 > 50 rad/s, after: {when: w1 > 10 rad/s and clutch1.pressure > 1 bar}, within: 20 ms")
	for k := range int64(100) {
		r.step(k, float64(k), map[bool]float64{true: 2e5, false: 0}[k >= 48])
	}
	r.verdict(true, "an answer after 15 ms, at tick 51, timed by ticks; cause at tick 48")
}

func TestAnsweringFrameIsTimedByItsStamp(t *testing.T) {
	const start = 1_000_000_000_000
	at := func(tick, ns int64) int64 { return start + tick*5e6 + ns }
	r := begin(t, "answer: {frame: TCU_Pressure_1}, after: 1 s, within: 9 ms")
	r.j.Begin(start)
	r.steps(1, 199, constant(0))
	r.received(200, at(200, -1_000_000)) // before tick 200 was due: no answer
	r.steps(200, 201, constant(0))
	r.received(202, at(200, 8_765_432))
	r.received(203, at(202, 1))
	r.steps(202, 300, constant(0))
	r.verdict(true, "an answer after 8.765432 ms, read at tick 202, timed by the kernel's stamp; cause at tick 200")
}

func TestFrameWithoutAStampIsTimedByItsTick(t *testing.T) {
	r := begin(t, "answer: {frame: TCU_Pressure_1}, after: 1 s, within: 9 ms")
	r.steps(1, 199, constant(0))
	r.received(200, 0)
	other := rt.Entry{Kind: rt.KindFrame, Tick: 201, Fate: rt.Received, Message: 1}
	r.j.Entry(&other)
	lost := rt.Entry{Kind: rt.KindFrame, Tick: 201, Fate: rt.Received, Withheld: true}
	r.j.Entry(&lost)
	r.received(202, 77) // a stamp is useless without the start of the grid
	r.steps(200, 300, constant(0))
	r.verdict(false, "after 10 ms, at tick 202, timed by ticks")
}

func TestCountsAreOfReceivedMessagesAndOfSentFrames(t *testing.T) {
	for _, name := range slices.DeleteFunc(slices.Clone(countNames), func(name string) bool { return name == conflictsCount }) {
		r := begin(t, "count: {message: TCU_Pressure_2, of: "+name+"}, is: 5")
		r.page.Rx[1].StoreCounts(&sigmap.Counts{
			Frames: 100, Errors: 101, Repeated: 102, Sequence: 103, SomeLost: 104,
			NoNew: 105, Timeouts: 106, Length: 107, Format: 108, Beyond: 109, BRS: 110, ESI: 111, Invalid: 112, Range: 113,
		})
		r.verdict(false, fmt.Sprint(100+slices.Index(countNames, name)))
	}
	for n, held := range map[int]bool{2: false, 3: true, 5: true, 6: false} {
		r := begin(t, "count: {message: Speeds, of: frames}, at_least: 3, at_most: 5")
		for range n {
			r.j.Entry(&rt.Entry{Kind: rt.KindFrame, Fate: rt.Sent})
			r.j.Entry(&rt.Entry{Kind: rt.KindFrame, Fate: rt.Sent, Message: 1})
			r.j.Entry(&rt.Entry{Kind: rt.KindFrame, Fate: rt.Sent, Withheld: true})
			r.j.Entry(&rt.Entry{Kind: rt.KindFrame, Fate: rt.Dropped})
			r.received(1, 0)
		}
		r.verdict(held, fmt.Sprint(n))
	}
}

func TestConflictsOfASentMessageAreCounted(t *testing.T) {
	for n, held := range map[uint64]bool{0: true, 1: false} {
		r := begin(t, "count: {message: Torque, of: conflicts}, is: 0")
		r.page.TxConflicts[1].Frames.Store(n)
		r.page.TxConflicts[0].Frames.Store(7)
		r.j.Entry(&rt.Entry{Kind: rt.KindFrame, Fate: rt.Sent, Message: 1})
		r.verdict(held, fmt.Sprint(n))
	}
}

func TestJudgeDoesNotAllocate(t *testing.T) {
	r := begin(t, "value: w1, below: 5 rad/s")
	k := int64(0)
	if n := testing.AllocsPerRun(1000, func() { k++; r.step(k, 9, 0); r.received(k, k) }); n != 0 {
		t.Errorf("%v allocations per tick", n)
	}
}

func TestExpectationsUpToTheEndFailWhenTheRunEndsEarly(t *testing.T) {
	for _, c := range []struct {
		expect string
		ticks  int64 // of 30
		w1     float64
		held   bool
		seen   string
	}{
		{"value: w1, below: 5 rad/s, from: 20 ms", 30, 1, true, "worst 9.5493 rpm"},
		{"value: w1, below: 5 rad/s, from: 20 ms", 29, 1, false, "not judged: the run ended at 0.145 s"},
		{"value: w1, below: 5 rad/s", 10, 1, false, "not judged"},
		{"value: w1, below: 5 rad/s", 10, 6, false, "worst 57.2958 rpm at 0.005 s, outside at 10 of 10 ticks"},
		{"value: w1, below: 5 rad/s, to: 50 ms", 10, 1, true, "worst 9.5493 rpm"},
		{"count: {message: Speeds, of: frames}, is: 10", 10, 1, false, "not judged: the run ended at 0.05 s with a count of 10"},
		{"count: {message: Speeds, of: frames}, is: 9", 10, 1, false, "10"},
		{"count: {message: Speeds, of: frames}, at_most: 20", 10, 1, false, "not judged"},
		{"count: {message: Speeds, of: frames}, at_most: 20", 30, 1, false, "30"},
		{"count: {message: Speeds, of: frames}, at_least: 10", 10, 1, true, "10"},
		{"count: {message: Speeds, of: frames}, at_least: 20", 10, 1, false, "not judged"},
		{"count: {message: Speeds, of: frames}, is: 30", 30, 1, true, "30"},
	} {
		r := begin(t, c.expect)
		r.j.length = 30
		for k := int64(1); k <= c.ticks; k++ {
			r.step(k, c.w1, 0)
			r.j.Entry(&rt.Entry{Kind: rt.KindFrame, Tick: k, Fate: rt.Sent})
		}
		r.verdict(c.held, c.seen)
	}
}

// A shorter run that reached its planned end is no reason for a broken expectation.
func TestExpectationsAfterAShorterRunAreSkipped(t *testing.T) {
	for expect, want := range map[string]string{
		"value: w1, below: 5 rad/s, from: 20 ms, to: 500 ms":                    "skipped",
		"value: w1, below: 5 rad/s, from: 500 ms":                               "skipped",
		"value: w1, below: 0.5 rad/s, to: 500 ms":                               "broken",
		"value: w1, below: 5 rad/s":                                             "held",
		"answer: w1 > 3 rad/s, after: 100 ms, within: 200 ms":                   "skipped",
		"answer: w1 > 3 rad/s, after: 50 ms, within: 20 ms":                     "broken",
		"answer: w1 > 3 rad/s, after: {fault: f}, within: 50 ms":                "skipped",
		"count: {message: Speeds, of: frames}, at_least: 31":                    "skipped",
		"count: {message: Speeds, of: frames}, at_least: 20":                    "held",
		"count: {message: Speeds, of: frames}, at_most: 29":                     "broken",
		"count: {message: Speeds, of: frames}, is: 31":                          "skipped",
		"answer: w1 > 3 rad/s, after: {when: w1 < 0}, within: 50 ms, name: one": "skipped",
	} {
		r := begin(t, expect)
		r.j.length, r.j.short = 30, true
		for k := int64(1); k <= 30; k++ {
			r.step(k, 1, 0)
			r.j.Entry(&rt.Entry{Kind: rt.KindFrame, Tick: k, Fate: rt.Sent})
			if f := r.j.End(0)[0]; k == 29 && f.Skipped {
				t.Errorf("%s: skipped before the planned end", expect)
			}
		}
		f := r.j.End(0)[0]
		if f.Verdict() != want || f.Broken() != (want == "broken") || !strings.HasPrefix(f.Line(), want+": ") {
			t.Errorf("%s: %s, want %s", expect, f.Line(), want)
		}
		if f := r.j.End(1)[0]; f.Skipped {
			t.Errorf("%s: skipped although entries were lost", expect)
		}
	}
}

// The length of the run is no reason for a window that ended before without a judged tick.
func TestWindowThatEndedWithoutATickIsBroken(t *testing.T) {
	r := begin(t, "value: w1, below: 5 rad/s, from: 20 ms, to: 30 ms")
	r.j.length, r.j.short = 30, true
	r.steps(10, 30, constant(1)) // the ticks before were missed
	if f := r.verdict(false, "not judged"); f.Skipped {
		t.Errorf("%+v, want broken", f)
	}
}

func TestFaultInAReusedSlotIsNotTheCause(t *testing.T) {
	r := begin(t, "answer: w1 > 3 rad/s, after: {fault: f}, within: 50 ms")
	for k, s := range []fault.State{fault.Armed, fault.Free, fault.Armed, fault.Active} {
		r.j.Entry(&rt.Entry{Kind: rt.KindFault, Tick: int64(k + 1), State: s})
		r.step(int64(k+1), 5, 0)
	}
	r.steps(5, 30, constant(5))
	r.verdict(false, "not judged: fault f never became active")
}

// An expectation is open until nothing can change it any more.
func TestExpectationIsOpenUntilItIsDecided(t *testing.T) {
	state := func(r *fedJudge, want, seen string) {
		t.Helper()
		if list := r.j.Progress(); len(list) != 1 || list[0].State != want || !strings.Contains(list[0].Seen, seen) {
			t.Errorf("%+v, want %s with %q", list, want, seen)
		}
	}
	r := begin(t, "value: w1, above: 10 rad/s, from: 1 s, to: 2 s")
	state(r, "open", "the window begins at 1 s")
	r.steps(1, 300, constant(20))
	state(r, "open", "within the limits at 101 ticks; worst 190.986 rpm")
	r.steps(301, 400, constant(20))
	state(r, "held", "worst 190.986 rpm")

	r = begin(t, "value: w1, above: 10 rad/s, from: 1 s, to: 2 s")
	r.steps(1, 250, constant(5))
	state(r, "broken", "outside at 51 of 51 ticks")

	r = begin(t, "answer: w1 > 10 rad/s, after: {when: w1 > 5 rad/s}, within: 1 s")
	r.steps(1, 100, constant(1))
	state(r, "open", "waits for")
	r.steps(101, 200, constant(6))
	state(r, "open", "waits for the answer since tick 101")
	r.steps(201, 302, constant(6))
	state(r, "broken", "no answer within")
}
