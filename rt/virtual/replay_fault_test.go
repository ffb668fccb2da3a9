package virtual

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// disturbances are faults of every kind on the truck bench, whose CCVS1 protectedTruck
// protects; # stands for a number from 1 to 9.
var disturbances = []string{
	"signal: EEC1.EngSpeed, stuck: #00 rpm", "signal: EEC1.EngSpeed, hold: true", "signal: ShaftSpeeds.input_shaft, offset: #0 rpm",
	"signal: ShaftSpeeds.output_shaft, gain: 1.#", "signal: EEC1.EngSpeed, noise: #0 rpm", "signal: HRW.FrontAxleLeftWheelSpeed, ramp: # km/h/s",
	"signal: CCVS1.WheelBasedVehicleSpeed, drift: # km/h/s", "signal: EEC1.EngSpeed, floor: #00 rpm", "signal: EEC1.EngSpeed, ceiling: #00 rpm",
	"signal: EEC1.EngSpeed, leak: {share: #0 %, time: #0 ms}", "signal: ShaftSpeeds.input_shaft, delay: #0 ms", "signal: CCVS1.WheelBasedVehicleSpeed, open: true",
	"signal: EBC2.FrontAxleSpeed, short: ground", "signal: TC1.TransRqestedGear, stuck: #", "input: C1.pressure, short: supply", "input: C2.pressure, open: true",
	"input: C3.pressure, noise: 0.# bar", "input: throttle, gain: 0.#", "input: throttle, delay: #0 ms", "input: mu_left, stuck: 0.#", "input: brake, offset: 0.01",
	"input: C1.pressure, leak: {share: #0 %, time: #0 ms}", "element: C5, does_not_close: true", "element: C1, does_not_open: # bar",
	"frame: CCVS1, drop: true", "frame: CCVS1, freeze_counter: true", "frame: CCVS1, checksum: {value: 0x#}", "frame: CCVS1, checksum: frozen",
	"frame: CCVS1, checksum: random", "frame: CCVS1, checksum: {offset: #}", "frame: CCVS1, length: 4", "frame: CCVS1, delay: #0 ms", "frame: ShaftSpeeds, delay: 3 ticks",
	"frame: EEC1, duplicate: true", "frame: HRW, burst: #", "frame: ClutchPressures, drop: true", "frame: TSC1, delay: #0 ms", "frame: ClutchPressures, delay: 2 ticks",
	"bus: drive, bus_off: true",
	"frame: TSC1, freeze_counter: true", "frame: TSC1, checksum: {value: #}", "frame: TSC1, checksum: frozen", "frame: TSC1, checksum: random", "frame: TSC1, checksum: {offset: #}",
	"frame: TSC1, length: 3", "frame: ClutchPressures, duplicate: true", "frame: TSC1, burst: #", "frame: ClutchPressures, freeze_counter: true",
	"signal: ClutchPressures.pressure_C1, stuck: # bar", "signal: ClutchPressures.pressure_C2, hold: true", "signal: ClutchPressures.pressure_C3, noise: 0.# bar",
	"signal: ClutchPressures.pressure_C4, leak: {share: #0 %, time: #0 ms}", "signal: ClutchPressures.pressure_C1, delay: #0 ms", "signal: TSC1.EngRqstedTorqueTorqueLimit, open: true",
	"signal: TSC1.EngRqstedTorqueTorqueLimit, ramp: #0 %/s", "signal: ClutchPressures.pressure_C5, short: supply", "signal: ClutchPressures.pressure_C5, gain: 1.#",
}

// randomScenario returns a scenario of some disturbances, at random times and under random
// conditions.
func randomScenario(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 0))
	text := "scenario: random\nstimuli: {grade: {sine: {mean: 0, amplitude: 2 %, frequency: 0.5 Hz}}, TransRqestedGear: {table: [[0 s, 1], [1 s, 3], [2 s, 2]]}}\nfaults:\n"
	for i := range 30 {
		f := strings.ReplaceAll(disturbances[r.IntN(len(disturbances))], "#", fmt.Sprint(1+r.IntN(9)))
		start := []string{fmt.Sprintf("at: tick %d", r.IntN(250)), fmt.Sprintf("at: %d0 ms, when: w_engine > %d00 rpm", r.IntN(250), 5+r.IntN(15)),
			fmt.Sprintf("when: v > 0.%d m/s and w_engine < %d00 rpm", r.IntN(9), 8+r.IntN(20)), "seed: 9"}[r.IntN(4)]
		last := []string{fmt.Sprintf(", for: %d ticks", 1+r.IntN(60)), fmt.Sprintf(", for: %d0 ms", 1+r.IntN(60)), ""}[r.IntN(3)]
		if strings.HasPrefix(f, "frame") || strings.HasPrefix(f, "signal") && r.IntN(2) == 0 {
			last = fmt.Sprintf(", for: %d frames", 1+r.IntN(20))
		}
		if strings.HasPrefix(f, "bus") {
			last = ", for: 9 ticks"
		}
		text += fmt.Sprintf("  - {name: f%d, %s, %s%s}\n", i, f, start, last)
	}
	return text
}

// protectedTruck returns the truck bench with a counter and a checksum in CCVS1 and an overrun
// policy.
func protectedTruck(t *testing.T, policy string) string {
	t.Helper()
	_, data, err := bench.ReadAny("truck-bench")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, r := range [][2]string{
		{"overrun: skip 100", "overrun: " + policy},
		{"CCVS1: {cycle: 100 ms,", "CCVS1: {cycle: 20 ms, protect: {profile: crc8, poly: 0x1D, counter: 32|4, checksum: 56|8},"},
	} {
		if !strings.Contains(text, r[0]) {
			t.Fatalf("the truck bench has no %q", r[0])
		}
		text = strings.Replace(text, r[0], r[1], 1)
	}
	file := filepath.Join(t.TempDir(), "truck.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// virtualRun is a run in virtual time with faults and missed ticks.
type virtualRun struct {
	bench, scenario string
	commands        []string // at the first tick
	length          time.Duration
	misses          [][2]int64 // lost grid points: first tick and number
	broken          bool       // the run breaks its policy
}

// run runs it and returns the record.
func (c virtualRun) run(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script, file := filepath.Join(dir, "scenario.yaml"), filepath.Join(dir, "run.rec")
	if err := os.WriteFile(script, []byte(c.scenario), 0o644); err != nil {
		t.Fatal(err)
	}
	v := &simulation{
		Simulation: Simulation{Plant: c.bench, For: c.length, Every: 1, Record: file, Scenario: script},
		view:       report.View{Status: new(rt.StatusBlock)},
	}
	defer v.close()
	if err := v.prepare(); err != nil {
		t.Fatalf("%v in\n%s", err, c.scenario)
	}
	commands := scenario.NewCommands(v.view.Handover)
	for i, line := range c.commands {
		list, err := commands.Translate(line)
		if err != nil {
			t.Fatal(err)
		}
		v.record.EventLog().KeepLine(uint64(i+1), line)
		if !v.view.Status.Post(uint64(i+1), list) {
			t.Fatal("the page takes no more")
		}
	}
	for _, m := range c.misses {
		v.clock.Miss(m[0], m[1])
	}
	if _, err := v.finish(v.run()); (err != nil) != c.broken {
		t.Fatalf("%v in\n%s", err, c.scenario)
	}
	return file
}

func TestRunsWithRandomFaultsReplay(t *testing.T) {
	bench := map[bool]string{false: protectedTruck(t, "skip 100"), true: protectedTruck(t, "catchup 100")}
	kinds, marks := map[string]int{}, [4]int{}
	for seed := range uint64(12) {
		scenario := randomScenario(seed)
		file := virtualRun{bench: bench[seed%2 == 1], scenario: scenario, commands: []string{"fault name=live 'input=C4.pressure' 'offset=0.3 bar' 'for=50 ticks'", "set TransRqestedGear=2 'ParkingBrakeSwitch=Not set'"}[seed%2 : seed%2+1],
			length: 3 * time.Second, misses: [][2]int64{{40, 5}, {90, 1}, {91, 2}, {170, 3}}}.run(t)
		same, err := Replay{Record: file}.Run()
		if err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, scenario)
		}
		if same.Ticks != 300 || same.Frames == 0 {
			t.Errorf("seed %d: %+v", seed, same)
		}
		for _, e := range recordtest.Entries(t, file) {
			switch {
			case e.Kind == record.EventEntry && (e.Event.Kind == record.Fault || e.Event.Kind == record.Parameter):
				kinds[strings.SplitN(e.Event.Text, " ", 2)[0]]++
			case e.Kind == record.FrameEntry:
				for i, set := range []bool{e.Frame.Sent && e.Frame.Withheld, e.Frame.Sent && e.Frame.Copy, !e.Frame.Sent && e.Frame.Withheld, !e.Frame.Sent && e.Frame.Copy} {
					if set {
						marks[i]++
					}
				}
			}
		}
	}
	if kinds["armed:"] < 12*30+6 || kinds["active:"] < 200 || kinds["over:"] < 100 || kinds["fault"] != 6 || kinds["set"] != 6 || slices.Min(marks[:]) < 20 {
		t.Errorf("%v, frames %v: too few for this test", kinds, marks)
	}
}

// The safe state begins after a gap so long that the plant catches up over several wake-ups. Safe
// values follow the end.
func TestRunsWithFaultsInTheSafeStateAndAfterTheEndReplay(t *testing.T) {
	data, err := os.ReadFile(protectedTruck(t, "skip 2"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bench.yaml")
	text := strings.Replace(string(data), "planned: silence", "planned: safe", 1)
	if err := os.WriteFile(file, []byte(strings.Replace(text, "time: 200 ms", "time: 2 s", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2) {
		seed += 100
		scenario := randomScenario(seed) + "  - {name: deaf, frame: TSC1, drop: true}\n  - {name: slow, frame: CCVS1, delay: 90 ms}\n  - {name: off, bus: drive, bus_off: true, at: 17.95 s}\n"
		record := virtualRun{bench: file, scenario: scenario, length: 18 * time.Second, misses: [][2]int64{{100, 1400}}, broken: true}.run(t)
		same, err := Replay{Record: record}.Run()
		if err != nil || same.Ticks != 1800 || same.Frames == 0 {
			t.Errorf("seed %d: %+v, %v in\n%s", seed, same, err, scenario)
		}
		safe, after := 0, 0
		for _, e := range recordtest.Entries(t, record) {
			if f := &e.Frame; e.Frame.Safe {
				if safe++; f.Tick > 1800 && f.Sent && !f.Withheld {
					after++
				}
			}
		}
		if safe < 200 || after < 200 {
			t.Errorf("seed %d: %d frames with the safe values, %d after the end: too few for this test", seed, safe, after)
		}
	}
}

// rewritten writes a record with the header of another record and other entries.
func rewritten(t *testing.T, from string, list []record.Entry) string {
	t.Helper()
	r, err := record.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	file := filepath.Join(t.TempDir(), "rewritten.rec")
	h := r.Header
	if h.Handover, err = r.Handover(); err != nil {
		t.Fatal(err)
	}
	writeRecord(t, file, h, list)
	return file
}

// writeRecord writes a record with a header and entries.
func writeRecord(t *testing.T, file string, h record.Header, list []record.Entry) {
	t.Helper()
	w, err := record.Create(file, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		switch e.Kind {
		case record.TickEntry:
			err = w.Tick(&e.Tick)
		case record.FrameEntry:
			err = w.Frame(&e.Frame)
		case record.EventEntry:
			err = w.Event(&e.Event)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A replay needs no source of the run: text that no program can prepare changes nothing. Prepared data
// that are not those of the run are refused.
func TestReplayTakesItsTablesFromTheRecord(t *testing.T) {
	file := virtualRun{bench: protectedTruck(t, "skip 100"), scenario: someFaults, length: 2 * time.Second}.run(t)
	r, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range r.Header.Files {
		if role := r.Header.Files[i].Role; role != "dbc" {
			r.Header.Files[i].Text = []byte("not a " + role)
		}
	}
	data, err := r.Handover()
	if err != nil {
		t.Fatal(err)
	}
	data, tables := slices.Clone(data), r.Header.Hashes["tables"]
	altered := slices.Clone(data)
	altered[len(altered)/2] ^= 1
	copied := filepath.Join(t.TempDir(), "copied.rec")
	const otherVersion = "copied.rec: made by v0.0.1, whose prepared data this version cannot read: replay it with that version"
	changed := fmt.Sprintf("copied.rec: made by this version, %s, but its prepared data cannot be read: the file was changed", host.Version())
	for name, c := range map[string]struct {
		version, tables string
		handover        []byte
		refused         string
	}{
		"the run's":               {host.Version(), tables, data, ""},
		"the run's, elsewhere":    {"v0.0.1", tables, data, ""},
		"other tables, elsewhere": {"v0.0.1", "other tables", data, otherVersion},
		"other tables":            {host.Version(), "other tables", data, changed},
		"an altered hand-over":    {host.Version(), tables, altered, changed},
		"an empty hand-over":      {host.Version(), tables, nil, changed},
	} {
		h := r.Header
		h.Version, h.Hashes["tables"], h.Handover = c.version, c.tables, c.handover
		writeRecord(t, copied, h, recordtest.Entries(t, file))
		same, err := Replay{Record: copied}.Run()
		switch {
		case c.refused == "" && (err != nil || same.Ticks != 200):
			t.Errorf("%s: %v, %v", name, same, err)
		case c.refused != "" && (err == nil || !strings.HasSuffix(err.Error(), c.refused)):
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
}

// withHeader returns the bytes of a record with a changed header, whose hashes stay as they are.
func withHeader(t *testing.T, file string, change func(h *record.Header)) []byte {
	t.Helper()
	all, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.NewReader(file, bytes.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	change(&r.Header)
	text, err := json.Marshal(r.Header)
	if err != nil {
		t.Fatal(err)
	}
	const magic, head = 8, 24 // sizes; the chunk of the header follows the magic
	stored := binary.LittleEndian.Uint32(all[magic+12:])
	list := append([]byte(nil), all[:magic+head]...)
	list[magic+9] = 0 // not packed
	binary.LittleEndian.PutUint32(list[magic+12:], uint32(len(text)))
	binary.LittleEndian.PutUint32(list[magic+16:], uint32(len(text)))
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(list[magic+20:], crc32.Update(crc32.Checksum(list[magic:magic+20], table), table, text))
	return append(append(list, text...), all[magic+head+stored:]...)
}

// A CRC protects the header of a record from damage, not from an editor.
func TestReplayRefusesASourceWithoutItsHash(t *testing.T) {
	file := virtualRun{bench: protectedTruck(t, "skip 100"), scenario: someFaults, length: 2 * time.Second}.run(t)
	var files []record.File
	edited := filepath.Join(t.TempDir(), "edited.rec")
	replayed := func(change func(h *record.Header)) error {
		if err := os.WriteFile(edited, withHeader(t, file, change), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Replay{Record: edited}.Run()
		return err
	}
	if err := replayed(func(h *record.Header) { files = h.Files }); err != nil || len(files) < 3 {
		t.Fatalf("the same header: %v, %d files", err, len(files))
	}
	for i, f := range files {
		err := replayed(func(h *record.Header) { h.Files[i].Text = append(h.Files[i].Text, '\n') })
		want := fmt.Sprintf("edited.rec: the text of %s %s does not have its hash in the header: the file was changed", f.Role, f.Name)
		if err == nil || !strings.HasSuffix(err.Error(), want) || errors.As(err, new(*host.Exit)) {
			t.Errorf("%s: %v", f.Role, err)
		}
	}
}

// someFaults drop, repeat and delay sent and received frames.
const someFaults = `scenario: some
faults:
  - {name: drop, frame: EEC1, drop: true, at: tick 20, for: 3 frames}
  - {name: twice, frame: EEC1, duplicate: true, at: tick 30, for: 2 frames}
  - {name: late, frame: ShaftSpeeds, delay: 2 ticks, at: tick 60, for: 4 frames}
  - {name: deaf, frame: ClutchPressures, drop: true, at: tick 100, for: 2 frames}
  - {name: slow, frame: ClutchPressures, delay: 2 ticks, at: tick 110, for: 2 frames}
`

// A replay compares the faults in the record with their effects.
func TestReplayFindsFalseEffectsOfFaultsInARecord(t *testing.T) {
	command := "fault name=live input=throttle stuck=0.9"
	file := virtualRun{bench: protectedTruck(t, "skip 100"), scenario: someFaults, commands: []string{command}, length: 3 * time.Second}.run(t)
	entries := recordtest.Entries(t, file)
	first := func(is func(e *record.Entry) bool) func(list []record.Entry) int {
		return func(list []record.Entry) int {
			return slices.IndexFunc(list, func(e record.Entry) bool { return is(&e) })
		}
	}
	frame := func(sent, withheld, again bool) func(list []record.Entry) int {
		return first(func(e *record.Entry) bool {
			f := &e.Frame
			return e.Kind == record.FrameEntry && f.Sent == sent && f.Withheld == withheld && f.Copy == again
		})
	}
	event := func(text string) func(list []record.Entry) int {
		return first(func(e *record.Entry) bool {
			return e.Kind == record.EventEntry && strings.HasPrefix(e.Event.Text, text)
		})
	}
	drop := func(list []record.Entry, i int) []record.Entry { return slices.Delete(list, i, i+1) }
	for name, c := range map[string]struct {
		find   func(list []record.Entry) int
		change func(list []record.Entry, i int) []record.Entry
		tick   int64  // of the first difference; 0 there is none
		of     string // what differs: begins so
	}{
		"nothing":      {event("armed"), func(list []record.Entry, _ int) []record.Entry { return list }, 0, ""},
		"not withheld": {frame(true, true, false), func(list []record.Entry, i int) []record.Entry { list[i].Frame.Withheld = false; return list }, 20, "EEC1"},
		"no copy":      {frame(true, false, true), drop, 30, "0x0CFF0180"},
		"another copy": {frame(true, false, true), func(list []record.Entry, i int) []record.Entry { return slices.Insert(list, i, list[i]) }, 30, "0x0CF00400"},
		"other copy":   {frame(true, false, true), func(list []record.Entry, i int) []record.Entry { list[i].Frame.Data[3] ^= 1; return list }, 30, "0x0CF00400"},
		"heard":        {frame(false, true, false), func(list []record.Entry, i int) []record.Entry { list[i].Frame.Withheld = false; return list }, 100, "0x18FF0003"},
		"not late":     {frame(false, false, true), drop, 112, "0x18FF0003"},
		"no state":     {event("active: drop"), drop, 20, "active: drop"},
		"other state":  {event("active: drop"), func(list []record.Entry, i int) []record.Entry { list[i].Event.Text = "over: drop"; return list }, 20, "over: drop"},
		"other count":  {event("over: drop"), func(list []record.Entry, i int) []record.Entry { list[i].Event.Count++; return list }, 23, "over: drop"},
		"a state more": {event("over: twice"), func(list []record.Entry, i int) []record.Entry { return slices.Insert(list, i, list[i]) }, 32, "over: twice"},
		"no command":   {event(command), drop, 1, "armed: live"},
		"other command": {event(command), func(list []record.Entry, i int) []record.Entry {
			list[i].Event.Text = strings.Replace(command, "0.9", "0.8", 1)
			return list
		}, 1, "armed: live"},
		"bad command": {event(command), func(list []record.Entry, i int) []record.Entry { list[i].Event.Text = "fault x"; return list }, 1, "fault x"},
	} {
		list := slices.Clone(entries)
		i := c.find(list)
		if i < 0 {
			t.Errorf("%s: the record has no such entry", name)
			continue
		}
		_, err := Replay{Record: rewritten(t, file, c.change(list, i))}.Run()
		var at *DifferenceError
		if is := errors.As(err, &at); c.tick == 0 && err != nil || c.tick != 0 && (!is || at.Tick != c.tick || !strings.HasPrefix(at.Of, c.of) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want tick %d, %s", name, err, c.tick, c.of)
		}
	}
}
