package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
)

// TestMistakesInAScenarioAreNamedWithTheirPosition adds lines to a scenario of 4 s. The error must
// start with the position of at and contain want.
func TestMistakesInAScenarioAreNamedWithTheirPosition(t *testing.T) {
	h := faultBench(t)
	for _, c := range []struct{ lines, at, want string }{
		{"expct: []", "expct", `scenario file: unknown key "expct" (did you mean expect?)`},
		{"stimuli: {clutch9.pressure: 3 bar}", "clutch9", `stimuli: there is no input "clutch9.pressure" (did you mean clutch1.pressure?)`},
		{"stimuli: {Motor.mode: run}", "run}", `stimuli: Motor.mode: "run"`},
		{"stimuli: {speed: 9000 rpm}", "9000 rpm", "stimuli: Motor.speed: 9000 rpm is outside the range of the signal, 0 to 8000 rpm"},
		{"stimuli: {speed: 1000 rpm, Motor.speed: 900 rpm}", "Motor.speed", "stimuli: Motor.speed has a stimulus already"},
		{"stimuli: {Speeds.w1: 3 rpm}", "Speeds.w1", "stimuli: Speeds.w1: output w1 drives the signal: use a fault (faults: [{signal: Speeds.w1, stuck: ...}])"},
		{"stimuli: {TCU_Pressure_1.pressure_C1: 3 bar}", "TCU_Pressure_1", "stimuli: TCU_Pressure_1.pressure_C1: the signal is received: use a fault (faults: [{signal: TCU"},
		{"stimuli: {clutch1.pressure: 3 bar}", "clutch1", "stimuli: input clutch1.pressure is driven by TCU_Pressure_1.pressure_C1: use a fault (faults: [{input: clutch1.pressure, stuck: ...}])"},
		{"stimuli: {clutch8.pressure: 50 bar}", "50 bar", "stimuli: clutch8.pressure: 50 bar is outside the range of the input, 0 to 40 bar"},
		{"stimuli: {clutch8.pressure: 3 rpm}", "3 rpm", "unit rpm"},
		{"stimuli: {clutch8.pressure: {table: [[0 s, 0], [1 s, 60 bar]]}}", "{table", "60 bar is outside the range"},
		{"stimuli: {clutch8.pressure: {table: [[1 s, 0], [0 s, 6 bar]]}}", "{table", "point 2 of the waveform, at 0 s, is earlier than the point before it, at 1 s"},
		{"stimuli: {clutch8.pressure: {sine: {mean: 5 bar, amplitude: 6 bar, frequency: 1 Hz}}}", "{sine", "-1 bar is outside the range"},
		{"faults: [{name: a, bus: drive, bus_off: true}, {name: a, bus: drive, bus_off: true}]", "a, bus: drive, bus_off: true}]", "fault: two faults are named a:"},
		{"faults: [{bus: drive, bus_off: true}, {bus: drive, bus_off: true}]", "drive, bus_off: true}]", "fault: two faults are named drive bus_off:"},
		{"faults: [{bus: drive, bus_off: true, at: 5 s}]", "5 s", "fault: at: 5 s is after the end of the run, at 4 s: the fault would never start"},
		{"faults: [{bus: drive, bus_off: true, at: tick 801}]", "tick 801", "the fault would never start"},
		{"faults: {bus: drive, bus_off: true}", "{bus", "faults: expected a list, got a mapping"},
		{"expect: [{value: w1, below: 5 rad/s, from: 5 s}]", "5 s", "expect: 5 s is after the end of the run, at 4 s: the expectation could not be judged"},
		{"expect: [{value: w1, below: 5 rad/s, from: 1 s, to: 4.01 s}]", "4.01", "after the end of the run"},
		{"expect: [{value: w1, below: 5 rad/s, from: 2 s, to: 1 s}]", "1 s}", "no tick lies in the window from 2 s to 1 s"},
		{"expect: [{value: w1, below: 5 rad/s, from: 1 ms, to: 4 ms}]", "4 ms", "no tick lies in the window"},
		{"expect: [{value: w9, below: 5 rad/s}]", "w9", `there is no input, output or bound signal "w9" (did you mean w1?)`},
		{"expect: [{value: clutch8.pressure, below: 5 bar}]", "clutch8", "expect: input clutch8.pressure follows its own table, a value that the loop does not have: give the input a waveform (stimuli: {clutch8.pressure: ...})"},
		{"faults: [{bus: drive, bus_off: true, when: clutch8.pressure > 5 bar}]", "clutch8", "when: input clutch8.pressure follows its own table, a value that the loop does not have"},
		{"expect: [{value: w1, below: 5 bar}]", "5 bar", "expect: below: \"5 bar\": unit bar"},
		{"expect: [{value: w1}]", "w1", "expect: w1: expected within: 2 % and of: X, or above: X, or below: X"},
		{"expect: [{value: w1, within: 2 %}]", "w1", "expected within: 2 % and of: X"},
		{"expect: [{value: w1, within: 2 %, of: 0}]", "2 %", "2 % of 0 is not a positive tolerance; around 0 use a tolerance with a unit, like 0.1 rpm"},
		{"expect: [{value: clutch1.mode, within: 2 %, of: 0}]", "2 %", "around 0 use a tolerance with a unit, like 0.1\x00"},
		{"expect: [{value: w1, within: -1 rpm, of: 0}]", "-1 rpm", "is not a positive tolerance"},
		{"expect: [{value: w1, within: nan %, of: 1 rad/s}]", "nan %", `"nan" is not a number`},
		{"expect: [{value: w1, above: 3 rad/s, below: 2 rad/s}]", "2 rad/s}", "expect: above 3 rad/s and below 2 rad/s: no value is"},
		{"expect: [{value: w1, below: 3 rad/s, after: 1 s}]", "1 s", `"1 s" does not belong to an expectation of a value`},
		{"expect: [{below: 3}]", "{below", "expected one of value: PORT, answer: CONDITION, count: {message: M, of: WHAT}, silent: NODE, dtc: CODE, no_dtc: CODE|any and did: NAME"},
		{"expect: [{value: w1, answer: w1 > 3 rad/s}]", "{value", "one of value:"},
		{"expect: [{answer: w1 > 3 rad/s, within: 50 ms}]", "{answer", "expected after: 3 s, ignition STATE, {fault: NAME} or {when: CONDITION}"},
		{"expect: [{answer: w1 > 3 rad/s, after: 1 s}]", "{answer", "the time is missing (within: 50 ms)"},
		{"expect: [{answer: w1 > 3 rad/s, after: 1 s, within: 0 s}]", "0 s", "0 s is not more than 0 s and less than 1e6 s"},
		{"expect: [{answer: w1 > 3 rad/s, after: 3.98 s, within: 50 ms}]", "50 ms", "after the end of the run"},
		{"expect: [{answer: w1 > 3 rad/s, after: {fault: f}, within: 50 ms}]", "f}", `there is no fault "f"`},
		{"expect: [{answer: {frame: Speeds}, after: 1 s, within: 50 ms}]", "Speeds", "the bench sends message Speeds: an answer must be a received message"},
		{"expect: [{answer: {frame: TCU_Presure_1}, after: 1 s, within: 50 ms}]", "TCU_Presure_1", "(did you mean TCU_Pressure_1?)"},
		{"expect: [{count: {message: TCU_Pressure_1, of: error}, is: 5}]", "error", `there is no count "error" (did you mean errors?)`},
		{"expect: [{count: {message: Speeds}, is: 5}]", "{count", "count: expected {message: M, of: WHAT}, with of one of frames, errors"},
		{"expect: [{count: {of: frames}, is: 5}]", "{count", "count: expected {message: M, of: WHAT}"},
		{"expect: [{count: {message: Speeds, of: errors}, is: 5}]", "errors", "the bench sends Speeds: only frames and conflicts of a sent message are counted"},
		{"expect: [{count: {message: TCU_Pressure_1, of: conflicts}, is: 0}]", "conflicts", "the bench receives TCU_Pressure_1: conflicts are counted of a sent message"},
		{"expect: [{count: {message: Speeds, of: frames}}]", "Speeds", "count: expected is: 5, or at_least: 5, or at_most: 5"},
		{"expect: [{count: {message: Speeds, of: frames}, is: -5}]", "-5", `"-5" is not a whole number`},
		{"expect: [{count: {message: Speeds, of: frames}, at_least: 5, at_most: 4}]", "5", "no number is at least 5 and at most 4"},
		{"expect: [{name: a, value: w1, below: 5 rad/s}, {name: a, value: w2, below: 5 rad/s}]", "a, value: w2", `expect: two expectations are named "a"`},
		{"for: 0 s", "0 s", "for: 0 s is not a positive duration"},
	} {
		head := "scenario: test\nfor: 4 s\n"
		if strings.HasPrefix(c.lines, "for:") {
			head = "scenario: test\n"
		}
		text := head + c.lines + "\n"
		_, col := benchtest.Place(t, c.lines, c.at)
		line := 1 + strings.Count(head, "\n")
		_, err := Parse("s.yaml", []byte(text), h)
		var at *yamlfile.FileError
		if !errors.As(err, &at) || at.File != "s.yaml" || at.Line != line || at.Col != col || !strings.Contains(err.Error()+"\x00", c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\n got  %v\n want %d:%d ... %s", c.lines, err, line, col, c.want)
		}
	}
	if _, err := Parse("s.yaml", []byte("about: nothing\n"), h); err == nil || err.Error() != "s.yaml:1:1: bench: the name is missing (scenario: NAME)" {
		t.Errorf("a scenario without a name: %v", err)
	}
}

func TestInputWithAStimulusCanBeJudged(t *testing.T) {
	h := faultBench(t)
	const text = "scenario: test\nstimuli: {clutch8.pressure: 3 bar}\nexpect: [{value: clutch8.pressure, below: 5 bar}, {answer: clutch1.pressure > 1 bar, after: {when: clutch8.pressure > 1 bar}, within: 1 s}]\n"
	if s, err := Parse("s.yaml", []byte(text), h); err != nil || len(s.Expect) != 2 {
		t.Errorf("%+v (%v)", s, err)
	}
}

func TestMoreFaultsThanSlotsAreRefused(t *testing.T) {
	h := faultBench(t)
	text := "scenario: test\nfaults:\n"
	for i := range 65 {
		text += "  - {name: f" + strconv.Itoa(i) + ", bus: drive, bus_off: true}\n"
	}
	if _, err := Parse("s.yaml", []byte(text), h); err == nil || !strings.Contains(err.Error(), "more than 64 faults") {
		t.Errorf("65 faults: %v", err)
	}
	if s, err := Parse("s.yaml", []byte(strings.TrimSuffix(text, "  - {name: f64, bus: drive, bus_off: true}\n")), h); err != nil || len(s.Plan.Faults) != 64 {
		t.Errorf("64 faults: %v", err)
	}
}

func TestRequestedLengthTakesPrecedenceOverTheScenario(t *testing.T) {
	h := faultBench(t)
	const text = "scenario: test\nfor: 4 s\nexpect: [{value: w1, below: 5 rad/s, to: 3 s}]\n"
	if s, err := Parse("s.yaml", []byte(text), h); err != nil || s.Ticks != 800 {
		t.Errorf("%+v (%v), want 800 ticks", s, err)
	}
	h.Loop.Ticks = 1000 // -for 5s
	if s, err := Parse("s.yaml", []byte(text), h); err != nil || s.Ticks != 1000 {
		t.Errorf("%+v (%v), want 1000 ticks", s, err)
	}
	h.Loop.Ticks = 400
	if s, err := Parse("s.yaml", []byte(text), h); err != nil || s.Ticks != 400 || !s.Shortened {
		t.Errorf("%+v (%v), want the first 400 ticks", s, err)
	}
	const late = "scenario: test\nfor: 2 s\nexpect: [{value: w1, below: 5 rad/s, to: 3 s}]\n"
	if _, err := Parse("s.yaml", []byte(late), h); err == nil || !strings.Contains(err.Error(), "3 s is after the end of the run, at 2 s") {
		t.Errorf("a window after the scenario's own length: %v", err)
	}
	const open = "scenario: test\nexpect: [{value: w1, below: 5 rad/s%s}]\n"
	if s, err := Parse("s.yaml", fmt.Appendf(nil, open, ""), h); err != nil || s.Ticks != 400 || s.Shortened {
		t.Errorf("%+v (%v), want a scenario without a length not shortened: its expectations would be skipped", s, err)
	}
	if _, err := Parse("s.yaml", fmt.Appendf(nil, open, ", to: 3 s"), h); err == nil || !strings.Contains(err.Error(), "3 s is after the end of the run, at 2 s") {
		t.Errorf("a window after the requested length of a scenario without one: %v", err)
	}
}

func TestStimuliAreWaveformsInSI(t *testing.T) {
	h := faultBench(t)
	c8 := bench.PortIndex(h.Tables.Inputs, "clutch8.pressure")
	for text, want := range map[string]sigmap.Waveform{
		"3 bar": {At: []int64{0}, Value: []float64{3e5}},
		"{table: [[0 s, 0 bar], [2 s, 20 bar]], period: 4 s}": {At: []int64{0, 2e9}, Value: []float64{0, 20e5}, Period: 4e9},
	} {
		s, err := Parse("s.yaml", []byte("scenario: test\nstimuli: {clutch8.pressure: "+text+"}\n"), h)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := s.Plan.Stimuli[0]
		ok := got.Input == c8 && len(got.Waveform.At) == len(want.At) && got.Waveform.Period == want.Period
		for i := range want.At {
			ok = ok && got.Waveform.At[i] == want.At[i] && scalar.EqualWithinRel(got.Waveform.Value[i]+1, want.Value[i]+1, 1e-12)
		}
		if !ok {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestDescribeShowsTheResolvedScenario(t *testing.T) {
	h := faultBench(t)
	s, err := Parse("s.yaml", []byte(`scenario: all
for: 4 s
stimuli: {clutch8.pressure: {table: [[0 s, 0 bar], [2 s, 20 bar]], period: 4 s}}
faults:
  - {name: sticks, element: clutch1, does_not_open: 18 bar, at: 1 s, for: 500 ms}
  - {frame: Speeds, drop: true, when: w1 > 1500 rpm, for: 5 frames}
expect:
  - {name: slow, value: w1, within: 2 %, of: 1500 rpm, from: 3 s, to: 4 s}
  - {answer: clutch1.pressure < 1 bar, after: {fault: sticks}, within: 50 ms}
  - {count: {message: TCU_Pressure_1, of: errors}, at_most: 5}
`), h)
	if err != nil {
		t.Fatal(err)
	}
	const want = `s.yaml: scenario all, for 4 s, 800 ticks
  stimulus  clutch8.pressure: 2 points from 0 to 20 bar, every 4 s
  fault     sticks: element=clutch1 'does_not_open=18 bar' 'at=1 s' 'for=500 ms'; from tick 200 on, for 100 ticks
  fault     Speeds drop: frame=Speeds drop 'when=w1 > 1500 rpm' 'for=5 frames'; when w1 > 1500 rpm, for 5 frames
  expected  slow: w1 within 2 % of 1500 rpm from 3 s to 4 s
  expected  clutch1.pressure < 1 bar within 50 ms after fault sticks
  expected  errors of TCU_Pressure_1: at most 5
`
	if got := s.Describe(h); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	Apply(h, s)
	if h.Loop.Ticks != 800 || len(h.Loop.Faults.Faults) != 2 || len(h.Loop.Faults.Stimuli) != 1 || h.Named[0].String() != "sticks: element=clutch1 'does_not_open=18 bar' 'at=1 s' 'for=500 ms'" {
		t.Errorf("the target is handed %+v, %v", h.Loop, h.Named)
	}
}
