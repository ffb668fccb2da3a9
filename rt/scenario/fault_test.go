package scenario

import (
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/fault"
)

// faultBench prepares the bench of benchtest.FaultFolder.
func faultBench(t *testing.T) *bench.Handover {
	t.Helper()
	b, err := bench.Load(faultBenchFile(t))
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func faultBenchFile(t testing.TB) string { return filepath.Join(benchtest.FaultFolder(t), "b.yaml") }

// yamlFault parses a fault as an entry of a scenario file.
func yamlFault(t *testing.T, h *bench.Handover, text string) (fault.Fault, *faultSpec, error) {
	t.Helper()
	s, err := Parse("s.yaml", []byte("scenario: test\nfaults:\n  - {"+text+"}\n"), h)
	if err != nil {
		return fault.Fault{}, nil, err
	}
	return s.Plan.Faults[0], s.Faults[0], nil
}

func TestFaultIsResolvedToIndicesTicksAndTheUnitOfItsPort(t *testing.T) {
	h := faultBench(t)
	c1 := bench.PortIndex(h.Tables.Inputs, "clutch1.pressure")
	w1, w4 := bench.PortIndex(h.Tables.Outputs, "w1"), bench.PortIndex(h.Tables.Outputs, "w4")
	rpm := math.Pi / 30
	tx := func(name string) int {
		return slices.IndexFunc(h.Bench.Buses[0].Frames, func(f bench.Frame) bool { return f.Message == name })
	}
	in := func(f fault.Fault) fault.Fault { f.Input = c1; return f }
	sent := func(name string, f fault.Fault) fault.Fault { f.Where, f.Message = fault.SentFrame, tx(name); return f }
	for text, want := range map[string]fault.Fault{
		`input: clutch1.pressure, stuck: 3 bar`:                                         in(fault.Fault{Kind: fault.Stuck, A: 3e5}),
		`input: clutch1.pressure, stuck: 60 bar`:                                        in(fault.Fault{Kind: fault.Stuck, A: 6e6}), // outside the range of the control unit, possible for a defect
		`input: clutch1.pressure, hold: true, at: 3 s`:                                  in(fault.Fault{Kind: fault.Hold, Start: fault.Trigger{Tick: 600}}),
		`input: clutch1.pressure, offset: -1 bar, at: tick 7`:                           in(fault.Fault{Kind: fault.Offset, A: -1e5, Start: fault.Trigger{Tick: 7}}),
		`input: clutch1.pressure, gain: 110 %, for: 200 ms`:                             in(fault.Fault{Kind: fault.Gain, A: 1.1, Duration: 40}),
		`input: clutch1.pressure, noise: 0.1 bar, seed: 7`:                              in(fault.Fault{Kind: fault.Noise, A: 1e4, Seed: 7}),
		`input: clutch1.pressure, ramp: 1 bar/s, for: 40 ticks`:                         in(fault.Fault{Kind: fault.Ramp, A: 1e5, Duration: 40}),
		`input: clutch1.pressure, drift: -60 bar/min, for: 1 tick`:                      in(fault.Fault{Kind: fault.Drift, A: -1e5, Duration: 1}),
		`input: clutch1.pressure, floor: 2 bar, at: 12 ms`:                              in(fault.Fault{Kind: fault.Floor, A: 2e5, Start: fault.Trigger{Tick: 3}}), // rounded up
		`input: clutch1.pressure, ceiling: 500 kPa`:                                     in(fault.Fault{Kind: fault.Ceiling, A: 5e5}),
		`"input": clutch1.pressure, leak: {share: 30 %, time: 200 ms}`:                  in(fault.Fault{Kind: fault.Leak, A: 0.3, B: 0.2}),
		`input: clutch1.pressure, delay: 20 ms`:                                         in(fault.Fault{Kind: fault.Delay, N: 4}),
		`input: clutch1.pressure, open: true`:                                           in(fault.Fault{Kind: fault.Open}),
		`input: clutch1.pressure, short: ground`:                                        in(fault.Fault{Kind: fault.Short}),
		`input: clutch1.pressure, short: supply`:                                        in(fault.Fault{Kind: fault.Short, N: 1}),
		`signal: TCU_Pressure_1.pressure_C1, stuck: 3 bar`:                              {Where: fault.ReceivedSignal, Kind: fault.Stuck, A: 3e5},
		`signal: TCU_Pressure_1.pressure_C1, stuck: 40.5 bar, for: 2 frames`:            {Where: fault.ReceivedSignal, Kind: fault.Stuck, A: 40.5e5, Duration: 2, Frames: true}, // beyond the range of the input, within the bits
		`signal: Speeds.w1, stuck: 1500 rpm, for: 5 frames`:                             {Where: fault.Signal, Kind: fault.Stuck, A: 1500 * rpm, Duration: 5, Frames: true},
		`signal: Speeds.w4, offset: 1 rad/s`:                                            {Where: fault.Signal, Field: 3, Kind: fault.Offset, A: 1},
		`signal: Motor.speed, stuck: 1500 rpm, when: "w1 > 1500 rpm and w4 < -1 rad/s"`: {Where: fault.Signal, Message: tx("Motor"), Kind: fault.Stuck, A: 1500, Start: fault.Trigger{When: fault.Conditions{{Set: true, Output: true, Above: true, Index: w1, Limit: 1500 * rpm}, {Set: true, Output: true, Index: w4, Limit: -1}}}},
		`signal: Motor.speed, stuck: 50 Hz*60`:                                          {}, // see below
		`signal: Motor.mode, stuck: running`:                                            {Where: fault.Signal, Message: tx("Motor"), Field: 2, Kind: fault.Stuck, A: 3},
		`frame: Speeds, drop: true, for: 3 frames`:                                      sent("Speeds", fault.Fault{Kind: fault.Drop, Duration: 3, Frames: true}),
		`frame: Speeds, freeze_counter: true`:                                           sent("Speeds", fault.Fault{Kind: fault.FreezeCounter}),
		`frame: Torque, checksum: {value: 0x00}`:                                        sent("Torque", fault.Fault{Kind: fault.ChecksumValue}),
		`frame: Torque, checksum: {value: 0xFF}`:                                        sent("Torque", fault.Fault{Kind: fault.ChecksumValue, N: 255}),
		`frame: Torque, checksum: frozen`:                                               sent("Torque", fault.Fault{Kind: fault.ChecksumFrozen}),
		`frame: Torque, checksum: random, seed: 0x10`:                                   sent("Torque", fault.Fault{Kind: fault.ChecksumRandom, Seed: 16}),
		`frame: Torque, checksum: {offset: 1}`:                                          sent("Torque", fault.Fault{Kind: fault.ChecksumOffset, N: 1}),
		`frame: Speeds, length: 4`:                                                      sent("Speeds", fault.Fault{Kind: fault.WrongLength, N: 4}),
		`frame: Speeds, delay: 20 ms`:                                                   sent("Speeds", fault.Fault{Kind: fault.DelayFrame, N: 4}),
		`frame: Speeds on drive, duplicate: true`:                                       sent("Speeds", fault.Fault{Kind: fault.Duplicate}),
		`frame: Speeds, burst: 5`:                                                       sent("Speeds", fault.Fault{Kind: fault.Burst, N: 5}),
		`frame: TCU_Pressure_2, drop: true`:                                             {Where: fault.ReceivedFrame, Message: 1, Kind: fault.Drop},
		`frame: TCU_Pressure_2, delay: 3 ticks`:                                         {Where: fault.ReceivedFrame, Message: 1, Kind: fault.DelayFrame, N: 3},
		`frame: TCU_Pressure_1, freeze_counter: true`:                                   {Where: fault.ReceivedFrame, Kind: fault.FreezeCounter},
		`frame: TCU_Pressure_1, checksum: {offset: 3}`:                                  {Where: fault.ReceivedFrame, Kind: fault.ChecksumOffset, N: 3},
		`frame: TCU_Pressure_1, length: 7`:                                              {Where: fault.ReceivedFrame, Kind: fault.WrongLength, N: 7},
		`frame: TCU_Pressure_2, burst: 5, for: 1 frame`:                                 {Where: fault.ReceivedFrame, Message: 1, Kind: fault.Burst, N: 5, Duration: 1, Frames: true},
		`bus: drive, bus_off: true, when: TCU_Pressure_1.pressure_C1 < 3 bar`:           {Where: fault.Bus, Kind: fault.BusOff, Start: fault.Trigger{When: fault.Conditions{{Set: true, Index: c1, Limit: 3e5}}}},
		`bus: drive, bus_off: true`:                                                     {Where: fault.Bus, Kind: fault.BusOff},
		`element: clutch1, does_not_open: true`:                                         in(fault.Fault{Kind: fault.Floor, A: 4e6}),
		`element: clutch1, does_not_open: 18 bar`:                                       in(fault.Fault{Kind: fault.Floor, A: 18e5}),
		`element: clutch1, does_not_close: true`:                                        in(fault.Fault{Kind: fault.Ceiling}),
		`element: clutch8, does_not_close: true`:                                        {Input: bench.PortIndex(h.Tables.Inputs, "clutch8.pressure"), Kind: fault.Ceiling},
	} {
		if want.Kind == fault.None {
			continue
		}
		if want.Seed == 0 {
			want.Seed = 1
		}
		got, spec, err := yamlFault(t, h, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !near(got.A, want.A) || !near(got.B, want.B) || !near(got.Start.When[0].Limit, want.Start.When[0].Limit) {
			t.Errorf("%s: A %v, B %v, limit %v; want %v, %v, %v", text, got.A, got.B, got.Start.When[0].Limit, want.A, want.B, want.Start.When[0].Limit)
		}
		got.A, got.B, got.Start.When[0].Limit = want.A, want.B, want.Start.When[0].Limit
		if got != want {
			t.Errorf("%s:\n %+v, want\n %+v", text, got, want)
		}
		checkWords(t, h, text, spec, want)
	}
}

func near(a, b float64) bool { return scalar.EqualWithinAbsOrRel(a, b, 1e-12, 1e-12) }

// checkWords checks that String of a fault parses to the same fault.
func checkWords(t *testing.T, h *bench.Handover, text string, spec *faultSpec, want fault.Fault) {
	t.Helper()
	words, err := SplitWords(spec.String())
	if err != nil {
		t.Errorf("%s: as words %s: %v", text, spec.String(), err)
		return
	}
	again, err := parseFault(words)
	if err != nil {
		t.Errorf("%s: as words %s: %v", text, spec.String(), err)
		return
	}
	got, err := resolved(h, again)
	got.A, got.B, got.Start.When[0].Limit = want.A, want.B, want.Start.When[0].Limit
	if err != nil || got != want {
		t.Errorf("%s: as words %s: %+v (%v), want %+v", text, spec.String(), got, err, want)
	}
}

// TestMistakesInAFaultAreNamed checks the error and its position.
func TestMistakesInAFaultAreNamed(t *testing.T) {
	h := faultBench(t)
	for _, c := range []struct{ text, at, want string }{
		{`input: clutch1.presure, stuck: 3 bar`, "clutch1.presure", `there is no input "clutch1.presure" (did you mean clutch1.pressure?)`},
		{`inputs: clutch1.pressure, stuck: 3 bar`, "inputs", `unknown key "inputs" (did you mean input?)`},
		{`input: clutch1.pressure, stick: 3 bar`, "stick", `unknown key "stick" (did you mean stuck?)`},
		{`input: clutch1.pressure`, "{input", "input clutch1.pressure: the kind is missing: one of stuck, hold,"},
		{`stuck: 3 bar`, "{stuck", "the target is missing: one of input, signal, frame, bus, element"},
		{`input: clutch1.pressure, frame: Speeds, drop: true`, "Speeds", "input and frame: expected one target"},
		{`input: clutch1.pressure, gain: 1e308`, "1e308", "gain of input clutch1.pressure: 1e308: a gain is -1000 to 1000"},
		{`input: clutch1.pressure, drift: 1e300 bar/s`, "1e300 bar/s", "drift of input clutch1.pressure: 1e300 bar/s: the value leaves the range"},
		{`input: clutch1.pressure, stuck: 3 bar, gain: 2`, "2", "stuck and gain: expected one kind"},
		{`signal: Speeds.w1, stuck: 3 bar`, "3 bar", `stuck of signal Speeds.w1: "3 bar": unit bar`},
		{`signal: Speeds.w1, stuck: 4000 rpm`, "4000 rpm", "4000 rpm is outside the range of the signal, -327.68 to 327.66 rad/s"},
		{`signal: Motor.speed, floor: 9000 rpm`, "9000 rpm", "9000 rpm is outside the range of the signal, 0 to 8000 rpm"},
		{`signal: Speeds.w1, stuck: .nan`, ".nan", "is not a finite number"},
		{`input: clutch1.pressure, stuck: 1e999 bar`, "1e999", "stuck of input clutch1.pressure"},
		{`signal: Speeds.w9, stuck: 1`, "Speeds.w9", `there is no signal of Speeds called "w9" (did you mean w1?)`},
		{`signal: Speed.w1, stuck: 1`, "Speed.w1", `called "Speed" (did you mean Speeds?)`},
		{`signal: w1, stuck: 1`, "w1", `"w1" is not of the form MESSAGE.SIGNAL`},
		{`signal: Speeds.counter_S, stuck: 1`, "Speeds.counter_S", "signal Speeds.counter_S is the counter: use a fault of the frame (frame: Speeds, with freeze_counter or checksum)"},
		{`signal: Torque.counter_T, stuck: 1`, "Torque.counter_T", "is counter of e2e-2: use a fault of the frame"},
		{`signal: Motor.level, stuck: 1`, "Motor.level", `called "level"`},
		{`frame: TCU_Pressure_1, delay: 700 ms`, "700 ms", "delay of frame TCU_Pressure_1: 700 ms: more than 64 frames would be held back at once"},
		{`frame: Speeds, delay: 2 s`, "2 s", "delay of frame Speeds: 2 s: more than 64 frames"},
		{`signal: TCU_Pressure_2.pressure_C8, stuck: 1`, "TCU_Pressure_2.pressure_C8", "is received, and drives no input"},
		{`frame: Speeds on engine, drop: true`, "Speeds on", `there is no bus "engine"`},
		{`bus: drve, bus_off: true`, "drve", `there is no bus "drve" (did you mean drive?)`},
		{`element: clutch9, does_not_open: true`, "clutch9", `there is no friction element "clutch9" (did you mean clutch1?)`},
		{`input: clutch1.pressure, drop: true`, "true", "drop does not fit input clutch1.pressure; its kinds are stuck, hold,"},
		{`frame: TCU_Pressure_1, stuck: 3`, "3", "stuck does not fit frame TCU_Pressure_1; its kinds are drop, delay, freeze_counter"},
		{`frame: TCU_Pressure_2, freeze_counter: true`, "true", "freeze_counter of frame TCU_Pressure_2: the frame has no counter"},
		{`frame: TCU_Pressure_2, checksum: random`, "random", "checksum of frame TCU_Pressure_2: the frame has no checksum"},
		{`frame: TCU_Pressure_2, length: 8`, "8", "the frame has 8 bytes already"},
		{`signal: TCU_Pressure_1.pressure_C1, stuck: 9000 bar`, "9000 bar", "9000 bar is outside the range of the signal, 0 to "},
		{`signal: TCU_Pressure_1.counter_P1, stuck: 1`, "TCU_Pressure_1.counter_P1", "is counter of crc8: use a fault of the frame"},
		{`element: clutch1, stuck: 3 bar`, "3 bar", "its kinds are does_not_open, does_not_close"},
		{`input: clutch1.pressure, hold: 3 bar`, "3 bar", `this kind takes no value, got "3 bar"`},
		{`input: clutch1.pressure, noise: 0 bar`, "0 bar", "the deviation 0 bar is not positive"},
		{`input: clutch1.pressure, ramp: 1 bar`, "1 bar", "unit bar does not fit, bar/s is wanted"},
		{`input: clutch1.pressure, leak: 30 %`, "30 %", "expected share and time: {share: 30 %, time: 200 ms}"},
		{`input: clutch1.pressure, leak: {share: 130 %, time: 1 s}`, "130 %", "share: 130 % is not more than 0 and at most 100 %"},
		{`input: clutch1.pressure, leak: {share: 30 %, time: 0 s}`, "30 %", "time: 0 s is not positive"},
		{`input: clutch1.pressure, delay: 0 s`, "0 s", "0 s is 0 ticks; 1 to 1000 are possible"},
		{`input: clutch1.pressure, delay: 6 s`, "6 s", "6 s is 1200 ticks"},
		{`input: clutch1.pressure, short: plus`, "plus", `"plus" is neither ground nor supply`},
		{`frame: Torque, checksum: {value: 0x100}`, "0x100", `"0x100" is not a whole number from 0 to 255 (0xFF)`},
		{`frame: Torque, checksum: {offset: 0}`, "0}", `"0" is not a whole number from 1 to 255`},
		{`frame: Torque, checksum: wrong`, "wrong", `"wrong" is not one of: {value: 0x00}, frozen, random, {offset: 1}`},
		{`frame: Speeds, checksum: frozen`, "frozen", "the frame has no checksum"},
		{`frame: Motor, freeze_counter: true`, "true", "the frame has no counter"},
		{`frame: Speeds, length: 8`, "8}", "the frame has 8 bytes already"},
		{`frame: Speeds, length: 12`, "12", "no frame of this kind has 12 bytes"},
		{`frame: Speeds, burst: 0`, "0}", `"0" is not a whole number from 1 to 64`},
		{`frame: Speeds, drop: true, at: tick -1`, "tick -1", `at: "-1" is not a whole number`},
		{`frame: Speeds, drop: true, at: -1 s`, "-1 s", "at: -1 s is not from 0 s"},
		{`frame: Speeds, drop: true, for: 0 ticks`, "0 ticks", "0 ticks is not a positive duration"},
		{`input: clutch1.pressure, hold: true, for: 5 frames`, "5 frames", "has no frames to count"},
		{`frame: Speeds, drop: true, when: w1`, "w1", `"w1" is not of the form PORT > VALUE`},
		{`frame: Speeds, drop: true, when: w1 >= 3`, "w1 >=", "only > and < are compared"},
		{`frame: Speeds, drop: true, when: w1 > 3 bar`, "w1 >", "w1: \"3 bar\": unit bar"},
		{`frame: Speeds, drop: true, when: w11 > 3`, "w11 >", `there is no input, output or bound signal "w11" (did you mean w1?)`},
		{`frame: Speeds, drop: true, when: Speeds.w9 > 3`, "Speeds.w9", `there is no signal of Speeds called "w9" (did you mean w1?)`},
		{`frame: Speeds, drop: true, when: Motor.speed > 3`, "Motor.speed", "signal Motor.speed is bound to no port"},
		{`frame: Speeds, drop: true, when: w1 > 3 and w2 > 3 and w3 > 3`, "w1 >", "has 3 conditions; at most 2 are possible"},
		{`frame: Speeds, drop: true, seed: x`, "x}", `seed: "x" is not a whole number`},
	} {
		_, _, err := yamlFault(t, h, c.text)
		text := "scenario: test\nfaults:\n  - {" + c.text + "}\n"
		_, col := benchtest.Place(t, text, c.at)
		var at *yamlfile.FileError
		if !errors.As(err, &at) || at.File != "s.yaml" || at.Line != 3 || at.Col != col || !strings.Contains(at.Err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got  %v\n want 3:%d ... %s", c.text, err, col, c.want)
		}
	}
}

func TestErrorsNumberTheArgumentsOfACommand(t *testing.T) {
	h := faultBench(t)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{nil, "fault: word 1: the target is missing: KEY=VALUE"},
		{[]string{"input=clutch1.pressure", "stick=3 bar"}, `fault: word 2: fault: unknown key "stick" (did you mean stuck?)`},
		{[]string{"=3"}, `fault: word 1: "=3" is not KEY=VALUE`},
		{[]string{"input=clutch1.pressure", "stuck=3 bar\nfor: 1 s"}, `fault: word 2: "stuck=3 bar\nfor: 1 s" is not KEY=VALUE`},
		{[]string{"input=clutch1.pressure", "hold", "hold"}, "fault: word 3: "},
		{[]string{"input=clutch1.pressure", "leak={share: 1"}, "fault: word "},
		{[]string{"input=clutch1.pressure", "hold", "at=yesterday"}, "fault: word 3: fault: at: "},
	} {
		s, err := parseFault(c.words)
		if err == nil {
			_, err = resolved(h, s)
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", c.words, err, c.want)
		}
	}
}

// Each kind of package fault has a key; TestGuideListsTheKeys finds each key in the guide.
func TestEveryKindOfFaultHasAKey(t *testing.T) {
	asked := map[fault.Kind]bool{fault.ChecksumFrozen: true, fault.ChecksumRandom: true, fault.ChecksumOffset: true}
	for _, k := range faultKinds {
		asked[k.kind] = true
	}
	for k := fault.None + 1; k <= fault.BusOff; k++ {
		if !asked[k] {
			t.Errorf("no key for kind %d of package fault", k)
		}
	}
}

// fuzzed prepares a bench once, because a fuzz target is called many times.
var fuzzed = sync.OnceValue(func() *bench.Handover {
	b, err := bench.Load("powershift-bench")
	if err != nil {
		panic(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		panic(err)
	}
	return h
})

// FuzzFaultArguments checks that any arguments give a fault or an error of one line, and that String of
// the fault parses to the same fault.
func FuzzFaultArguments(f *testing.F) {
	for _, s := range []string{
		"input=clutch1.pressure\nstuck=3 bar\nat=3 s\nfor=200 ms", "frame=Speeds\ndrop\nfor=5 frames", "name=a'b\nsignal=Speeds.w1\nnoise=1 rpm\nseed=7",
		"input=clutch1.pressure\nleak={share: 30 %, time: 200 ms}", "frame=Speeds\nchecksum={value: 0x00}", "element=clutch1\ndoes_not_open\nwhen=w1 > 3 and w2 < 4",
		"bus=drive\nbus_off", "a", "=", "input={", "stuck=\\\"", "leak={&a: *a}", "leak={? : }", "input=!!binary x\nopen",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h := fuzzed()
		s, err := parseFault(strings.Split(text, "\n"))
		var got fault.Fault
		if err == nil {
			got, err = resolved(h, s)
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 10*maxArgument {
				t.Fatalf("%q: an error of more than a line: %v", text, err)
			}
			return
		}
		words, err := SplitWords(s.String())
		if err != nil {
			t.Fatalf("%q is formatted as %s: %v", text, s.String(), err)
		}
		again, err := parseFault(words)
		if err != nil {
			t.Fatalf("%q is formatted as %s: %v", text, s.String(), err)
		}
		same, err := resolved(h, again)
		if err != nil || !reflect.DeepEqual(same, got) {
			t.Fatalf("%q is formatted as %s, which is %+v (%v), not %+v", text, s.String(), same, err, got)
		}
	})
}

// FuzzScenario checks that any text gives a scenario or an error of one line with a position.
func FuzzScenario(f *testing.F) {
	for _, s := range []string{
		"scenario: a\nfor: 1 s\nstimuli: {clutch1.pressure: 1}\n", "scenario: a\nfaults:\n  - {frame: Speeds, drop: true}\n",
		"scenario: a\nexpect:\n  - {value: w1, within: 2 %, of: 3 rpm, from: 1 s, to: 2 s}\n  - {answer: {frame: TCU_Pressure_1}, after: {when: w1 > 1}, within: 1 s}\n",
		"scenario: a\nexpect:\n  - {count: {message: Speeds, of: frames}, is: 5}\n  - {answer: w1 > 3, after: {fault: x}, within: 0 s}\n", "{", "scenario: [",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("s.yaml", []byte(text), fuzzed())
		if err != nil {
			var at *yamlfile.FileError
			if !errors.As(err, &at) || at.File != "s.yaml" || at.Line < 1 || at.Col < 1 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		_ = s.Describe(fuzzed())
	})
}

// Arguments of a fault are read as YAML, with the restrictions of a file.
func TestAnchorsAndRepeatedKeysInAFaultAreRefused(t *testing.T) {
	for word, want := range map[string]string{
		"about={a: &a one}":    `"&": anchors, `,
		"about={<<: {b: 1}}":   `"<<": anchors, `,
		"about={b: 1, b: 3}":   `key "b" appears twice, first at `,
		"about={x: !!str one}": `anchors, `,
	} {
		_, err := parseFault([]string{"frame=Speeds", word})
		var at *yamlfile.WordError
		if !errors.As(err, &at) || at.Word != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want word 2: %s", word, err, want)
		}
	}
}

// resolved resolves a fault for a bench.
func resolved(h *bench.Handover, s *faultSpec) (f fault.Fault, err error) {
	err = s.Try(func() { f = s.resolve(h) })
	return f, err
}
