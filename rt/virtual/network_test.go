package virtual

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/io/record"
	"lockstep/rt/report"
)

// keyBench is a small bench with an ignition, and the automatic unit with an after-run of 0.3 s: the plant does not matter.
const keyBench = `bench: key-bench
plant: two-masses
period: 5 ms
control_unit: {name: automatic, after_run: 0.3 s}
network: {start: run, signal: Pedals.ignition}
buses:
  drive:
    interface: pair
    database: automatic.dbc
    nm: {message: NM_Bench, node: 0x10, from: NM_TCU, cycle: 100 ms, offset: 20 ms, repeat: 300 ms, timeout: 400 ms, wait: 200 ms}
    restbus:
      ShaftSpeeds: {cycle: 10 ms, phase: 5 ms, delay: 30 ms, protect: {profile: e2e-1a, data_id: 0x210, counter: counter_S, checksum: checksum_S}}
      Pedals: {cycle: 10 ms, phase: 0 s, in: all, protect: {profile: e2e-1a, data_id: 0x211, counter: counter_D, checksum: checksum_D}}
    messages: {ClutchPressures: {timeout: 0 s}}
`

// driveKey runs a scenario on keyBench, with replacements in pairs, and returns its report and its record.
func driveKey(t *testing.T, scenario string, replace ...string) (*report.Report, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"bench.yaml": strings.NewReplacer(replace...).Replace(keyBench), "s.yaml": "scenario: key\n" + scenario} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rec := filepath.Join(dir, "key.rec")
	r, err := Simulation{Plant: filepath.Join(dir, "bench.yaml"), Scenario: filepath.Join(dir, "s.yaml"), Record: rec, Every: 1}.Run()
	if r == nil {
		t.Fatal(err)
	}
	return r, rec
}

// The identifiers of keyBench.
const (
	clutchPressures = 0x120
	shaftSpeeds     = 0x210
	pedals          = 0x211
	nmBench         = 0x510
	nmUnit          = 0x511
)

// framesOf returns the ticks of the frames with an identifier, and the notes of a record with their ticks.
func framesOf(t *testing.T, rec string) (ticks map[uint32][]int64, notes map[string]int64) {
	t.Helper()
	ticks, notes = map[uint32][]int64{}, map[string]int64{}
	for _, e := range eventsOf(t, rec) {
		switch {
		case e.Kind == record.FrameEntry:
			ticks[e.Frame.ID] = append(ticks[e.Frame.ID], e.Frame.Tick)
		case e.Kind == record.EventEntry && e.Event.Kind == record.Note:
			notes[e.Event.Text] = e.Event.Tick
		}
	}
	return ticks, notes
}

// between returns the first and the last tick of a list from a to b, and their number.
func between(list []int64, a, b int64) (first, last int64, n int) {
	for _, k := range list {
		if k >= a && k <= b {
			if n++; n == 1 {
				first = k
			}
			last = k
		}
	}
	return first, last, n
}

// The ignition ends at tick 201 (1 s) and returns at 1001 (5 s). The times follow from keyBench: after-run 0.3 s (60
// ticks), NM timeout 80, wait 40, delay of ShaftSpeeds 6.
func TestIgnitionEndsAndStartsTheFramesAtTheirTicks(t *testing.T) {
	const cycle = `for: 8 s
steps: [{at: 1 s, ignition: off}, {at: 5 s, ignition: run}]
expect:
  - {silent: TCU, within: 320 ms, after: ignition off}
  - {silent: ClutchPressures, within: 320 ms, after: ignition off}
`
	r, rec := driveKey(t, cycle)
	if !r.Scenario.Pass {
		t.Errorf("%+v", r.Scenario.Findings)
	}
	ticks, notes := framesOf(t, rec)
	for text, want := range map[string]int64{"ignition off": 201, "ignition run": 1001} {
		if notes[text] != want {
			t.Errorf("%q is noted at tick %d, want %d", text, notes[text], want)
		}
	}
	if first, last, _ := between(ticks[shaftSpeeds], 190, 1100); last < 1090 || first != 191 {
		t.Errorf("ShaftSpeeds from %d to %d around the cycle", first, last)
	}
	_, end, _ := between(ticks[shaftSpeeds], 0, 1000)
	begin, _, _ := between(ticks[shaftSpeeds], 1001, 1600)
	if end != 199 || begin != 1007 {
		t.Errorf("ShaftSpeeds end at tick %d and start at %d, want 199 and 1007: 30 ms after the switch-on", end, begin)
	}
	_, unitEnd, n := between(ticks[nmUnit], 201, 1000)
	if unitEnd > 201+62 || n == 0 {
		t.Errorf("the unit's last NM message is read at tick %d, %d of them; want some up to 263: its after-run of 60 ticks", unitEnd, n)
	}
	_, pedalEnd, _ := between(ticks[pedals], 0, 1000)
	if asleep := notes["network of drive: prepare bus sleep"]; asleep != unitEnd+1+80 || pedalEnd != asleep-1 && pedalEnd != asleep-2 {
		t.Errorf("prepare bus sleep at tick %d, the last Pedals at %d; want %d: the NM timeout after the unit's last message, and Pedals until then",
			asleep, pedalEnd, unitEnd+1+80)
	}
	if got, want := notes["network of drive: bus sleep"], notes["network of drive: prepare bus sleep"]+40; got != want {
		t.Errorf("bus sleep at tick %d, want %d", got, want)
	}
	if first, _, _ := between(ticks[clutchPressures], 800, 1600); first < 1007 || first > 1015 {
		t.Errorf("the unit is awake again at tick %d; want after the first ShaftSpeeds at 1007", first)
	}
	if first, _, _ := between(ticks[nmBench], 800, 1600); first != 1005 {
		t.Errorf("the bench's NM message after the switch-on is sent at tick %d; want 1005, after its offset of 20 ms", first)
	}

	same, err := Replay{Record: rec}.Run()
	if err != nil || same.Frames < 1000 {
		t.Errorf("replay: %v, %v", same, err)
	}
	_, again := driveKey(t, cycle)
	if !reflect.DeepEqual(eventsOf(t, rec), eventsOf(t, again)) {
		t.Error("a second run differs")
	}
}

func TestUnitThatWakesTheNetworkWakesTheBench(t *testing.T) {
	r, rec := driveKey(t, "for: 8 s\nsteps: [{at: 1 s, ignition: off}]\nexpect: [{silent: TCU, within: 1 s, after: ignition off}]\n",
		"after_run: 0.3 s", "after_run: 0.3 s, wake_up: 4 s")
	ticks, _ := framesOf(t, rec)
	first, _, _ := between(ticks[nmUnit], 700, 1600)
	woken, sleeps, n := between(ticks[pedals], 700, 1600)
	if first < 800 || first > 804 || woken < first || woken > first+3 || n == 0 || sleeps > 1200 {
		t.Errorf("the unit wakes up at tick %d, Pedals from %d to %d; want 800, at once, and an end", first, woken, sleeps)
	}
	if _, _, n := between(ticks[clutchPressures], 700, 1600); n != 0 {
		t.Errorf("%d ClutchPressures without ignition", n)
	}
	if f := r.Scenario.Findings[0]; r.Scenario.Pass || !strings.Contains(f.Seen, "NM_TCU at tick ") || !strings.Contains(f.Seen, "after ignition off at tick 201; the last frame is NM_TCU at tick") {
		t.Errorf("a unit that wakes by itself: %+v", f)
	}
	if _, err := (Replay{Record: rec}).Run(); err != nil {
		t.Error(err)
	}
}

// The supply drops for 100 ms: the unit starts anew, in its first gear. Off and on in one tick leave it on.
func TestBrownOutStartsTheUnitAnew(t *testing.T) {
	_, rec := driveKey(t, "for: 3 s\nsteps: [{at: 1 s, power: off}, {at: 1.1 s, power: on}, {at: 2 s, ignition: off}, {at: 2.005 s, ignition: run}]\n")
	ticks, notes := framesOf(t, rec)
	if _, _, n := between(ticks[clutchPressures], 203, 220); n != 0 || notes["power off"] != 201 || notes["power on"] != 221 {
		t.Errorf("%d frames without supply; %v", n, notes)
	}
	if first, _, n := between(ticks[clutchPressures], 221, 400); first > 226 || n < 80 {
		t.Errorf("the unit answers from tick %d on, %d frames", first, n)
	}
	if _, _, n := between(ticks[clutchPressures], 401, 600); n < 95 {
		t.Errorf("%d frames after a cold start at once; want about 100: the unit does not sleep", n)
	}
	if _, err := (Replay{Record: rec}).Run(); err != nil {
		t.Error(err)
	}
}

// A unit that does not wake up at one of the ignitions breaks the expectation, whatever it does at the others.
func TestEachIgnitionWantsItsAnswer(t *testing.T) {
	r, _ := driveKey(t, `for: 12 s
steps:
  - {at: 1 s, ignition: off}
  - {at: 4 s, ignition: run}
  - {at: 6 s, ignition: off}
  - {at: 6.5 s, power: off}
  - {at: 7 s, ignition: run}
  - {at: 7.5 s, power: on}
  - {at: 8 s, ignition: off}
  - {at: 10 s, ignition: run}
expect: [{answer: {frame: ClutchPressures}, after: ignition run, within: 100 ms}]
`)
	if f := r.Scenario.Findings[0]; f.Held || !strings.Contains(f.Seen, "an answer after 51") || !strings.Contains(f.Seen, "cause at tick 1401; 2 times before in time") {
		t.Errorf("%+v", f)
	}
}

func TestHundredCyclesOfIgnitionAreAllAlike(t *testing.T) {
	r, rec := driveKey(t, `for: 200 s
steps:
  - {at: 500 ms, ignition: off, every: 2 s, times: 100}
  - {at: 2 s, ignition: run, every: 2 s, times: 99}
expect:
  - {silent: TCU, within: 320 ms, after: ignition off}
  - {answer: {frame: ClutchPressures}, after: ignition run, within: 100 ms}
`)
	if f := r.Scenario.Findings; !r.Scenario.Pass || !strings.Contains(f[0].Seen, "judged 100 times") || !strings.Contains(f[1].Seen, "; the slowest of 100") {
		t.Fatalf("%+v", f)
	}
	ticks, _ := framesOf(t, rec)
	var cycles [99][]int64
	for i := range cycles {
		start := int64(i+1)*400 + 1
		for _, id := range []uint32{shaftSpeeds, pedals, nmBench} {
			for _, k := range ticks[id] {
				if k >= start && k < start+400 {
					cycles[i] = append(cycles[i], k-start)
				}
			}
		}
		if i > 0 && !slices.Equal(cycles[i], cycles[1]) {
			t.Fatalf("cycle %d sends %d frames at other ticks than cycle 2, %d", i+1, len(cycles[i]), len(cycles[1]))
		}
	}
}

// A record that starts while the ignition is off replays: the state, the phases of the messages and the network
// management are in the copy at its start.
func TestRecordThatStartsWithoutIgnitionReplays(t *testing.T) {
	name := fmt.Sprintf("key-%d", os.Getpid())
	dir := t.TempDir()
	file, rec := filepath.Join(dir, "bench.yaml"), filepath.Join(dir, "a.rec")
	if err := os.WriteFile(file, []byte(strings.Replace(keyBench, "key-bench", name, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	ask, ended := openDoor(t, name, Simulation{Plant: file})
	expectAnswers(t, ask, []exchange{
		{"ignition 7", "ignition: \"7\" is no ignition state"},
		{"advance 1s", "advanced to tick 200"},
		{"ignition off", "in effect from tick 201"},
		{"status", "ignition run"},
		{"advance 100ms", "advanced to tick 220"},
		{"status", "ignition off"},
		{"record on " + rec, "in effect from tick 221"},
		{"advance 3s", "advanced to tick 820"},
		{"ignition on", "in effect from tick 821"},
		{"advance 1s", "advanced to tick 1020"},
		{"record off", "in effect from tick 1021"},
		{"stop wait", name + ": stopped by ctl"},
	})
	<-ended
	if same, err := (Replay{Record: rec}).Run(); err != nil || same.Frames < 200 {
		t.Errorf("replay: %v, %v", same, err)
	}
}
