package scenario

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// typedNumber is a number that a person types in a scenario file or in a live command. Its place in
// the text is #.
type typedNumber struct {
	text string                    // rest of a scenario file
	unit string                    // unit of the number; "": a plain number
	same string                    // 3 in that unit, in another unit
	si   float64                   // value that 3 in that unit applies
	get  func(s *Scenario) float64 // value that was applied
}

func firstFault(s *Scenario) *fault.Fault { return &s.Plan.Faults[0] }

func faultA(s *Scenario) float64     { return firstFault(s).A }
func faultB(s *Scenario) float64     { return firstFault(s).B }
func faultN(s *Scenario) float64     { return float64(firstFault(s).N) }
func faultLimit(s *Scenario) float64 { return firstFault(s).Start.When[0].Limit }
func faultStart(s *Scenario) float64 { return float64(firstFault(s).Start.Tick) }
func faultTicks(s *Scenario) float64 { return float64(firstFault(s).Duration) }

func window(s *Scenario) *windowEvaluator { return s.Expect[0].newEvaluator().(*windowEvaluator) }
func answer(s *Scenario) *answerEvaluator { return s.Expect[0].newEvaluator().(*answerEvaluator) }
func count(s *Scenario) *countEvaluator   { return s.Expect[0].newEvaluator().(*countEvaluator) }

func period(s *Scenario) float64 { return float64(s.Plan.Stimuli[0].Waveform.Period) }

// value returns the last value of a stimulus.
func value(s *Scenario) float64 {
	return s.Plan.Stimuli[0].Waveform.Value[len(s.Plan.Stimuli[0].Waveform.Value)-1]
}

// Numbers by the key that has them. Ticks are of 5 ms.
var (
	fileNumbers = map[string][]typedNumber{
		"for": {{"for: #", "s", "3000 ms", 600, func(s *Scenario) float64 { return float64(s.Ticks) }}},
		"stimuli": {
			{"stimuli: {clutch8.pressure: #}", "bar", "300 kPa", 3e5, value},
			{"stimuli: {clutch8.pressure: {sine: {mean: #, frequency: 1 Hz}}}", "bar", "300 kPa", 3e5, value},
			{"stimuli: {clutch8.pressure: {sine: {mean: 5 bar, amplitude: #, frequency: 1 Hz}}}", "bar", "300 kPa", 8e5,
				func(s *Scenario) float64 { return slices.Max(s.Plan.Stimuli[0].Waveform.Value) }},
			{"stimuli: {clutch8.pressure: {sine: {mean: 5 bar, frequency: #}}}", "Hz", "6 Hz/2", 333_333_333, period},
			{"stimuli: {clutch8.pressure: {table: [[0, 0], [1, 5]], period: #}}", "s", "3000 ms", 3e9, period},
		},
	}
	faultNumbers = map[string][]typedNumber{
		"stuck": {
			{"input: clutch8.pressure, stuck: #", "bar", "300 kPa", 3e5, faultA},
			{"signal: TCU_Pressure_1.pressure_C1, stuck: #", "bar", "300 kPa", 3e5, faultA},
			{"signal: Motor.speed, stuck: #", "rpm", "3 1/min", 3, faultA}, // no port: in the signal's own unit
			{"input: clutch8.pressure, stuck: 3 bar, when: w1 > #", "rpm", "0.1 rad/s*pi", math.Pi / 10, faultLimit},
		},
		"offset":         {{"signal: Speeds.w1, offset: #", "rad/s", "90 rpm/pi", 3, faultA}},
		"gain":           {{"input: clutch8.pressure, gain: #", "", "300 %", 3, faultA}},
		"noise":          {{"input: clutch8.pressure, noise: #", "bar", "300 kPa", 3e5, faultA}},
		"ramp":           {{"input: clutch8.pressure, ramp: #", "bar/s", "180 bar/min", 3e5, faultA}},
		"drift":          {{"signal: Motor.speed, drift: #", "rpm/s", "180 rpm/min", 3, faultA}},
		"floor":          {{"input: clutch8.pressure, floor: #", "bar", "300 kPa", 3e5, faultA}},
		"ceiling":        {{"input: clutch8.pressure, ceiling: #", "bar", "300 kPa", 3e5, faultA}},
		"does_not_open":  {{"element: clutch1, does_not_open: #", "bar", "300 kPa", 3e5, faultA}},
		"leak":           {{"input: clutch8.pressure, leak: {share: 30 %, time: #}", "s", "3000 ms", 3, faultB}},
		"delay":          {{"input: clutch8.pressure, delay: #", "s", "600 ticks", 600, faultN}},
		"at":             {{"bus: drive, bus_off: true, at: #", "s", "tick 600", 600, faultStart}},
		"for":            {{"bus: drive, bus_off: true, for: #", "s", "600 ticks", 600, faultTicks}},
		"when":           {{"bus: drive, bus_off: true, when: TCU_Pressure_1.pressure_C1 < #", "bar", "300 kPa", 3e5, faultLimit}},
		"burst":          {{"frame: Speeds, burst: #", "", "0x3", 3, faultN}},
		"length":         {{"frame: Speeds, length: #", "", "0x3", 3, faultN}},
		"checksum":       {{"frame: Torque, checksum: {offset: #}", "", "0x3", 3, faultN}},
		"seed":           {{"bus: drive, bus_off: true, seed: #", "", "0x3", 3, func(s *Scenario) float64 { return float64(firstFault(s).Seed) }}},
		"does_not_close": nil, "hold": nil, "open": nil, "short": nil, "drop": nil, "freeze_counter": nil, "duplicate": nil,
		"bus_off": nil, "name": nil, "input": nil, "signal": nil, "frame": nil, "bus": nil, "element": nil,
	}
	expectNumbers = map[string][]typedNumber{
		"above": {{"value: w1, above: #", "rpm", "0.1 rad/s*pi", math.Pi / 10, func(s *Scenario) float64 { return window(s).lo }}},
		"below": {{"value: TCU_Pressure_1.pressure_C1, below: #", "bar", "300 kPa", 3e5, func(s *Scenario) float64 { return window(s).hi }}},
		"of":    {{"value: w1, within: 1 rad/s, of: #", "rpm", "0.1 rad/s*pi", math.Pi / 10, func(s *Scenario) float64 { return window(s).lo + 1 }}},
		"within": {
			{"value: w1, within: #, of: 0", "rpm", "0.1 rad/s*pi", math.Pi / 10, func(s *Scenario) float64 { return window(s).hi }},
			{"answer: w1 > 0, after: 1 s, within: #", "s", "3000 ms", 3e9, func(s *Scenario) float64 { return float64(answer(s).ns) }},
		},
		"from": {{"value: w1, above: 0, from: #", "s", "tick 600", 600, func(s *Scenario) float64 { return float64(window(s).from) }}},
		"to":   {{"value: w1, above: 0, to: #", "s", "tick 600", 600, func(s *Scenario) float64 { return float64(window(s).to) }}},
		"answer": {{"answer: w1 > #, after: 1 s, within: 1 s", "rpm", "0.1 rad/s*pi", math.Pi / 10,
			func(s *Scenario) float64 { return answer(s).holds[0].Limit }}},
		"after": {
			{"answer: w1 > 0, after: #, within: 1 s", "s", "tick 600", 600, func(s *Scenario) float64 { return float64(answer(s).begun) }},
			{"answer: w1 > 0, after: {when: w1 > #}, within: 1 s", "rpm", "0.1 rad/s*pi", math.Pi / 10,
				func(s *Scenario) float64 { return answer(s).cause[0].Limit }},
		},
		"is":       {{"count: {message: Speeds, of: frames}, is: #", "", "0x3", 3, func(s *Scenario) float64 { return float64(count(s).lo) }}},
		"at_least": {{"count: {message: Speeds, of: frames}, at_least: #", "", "0x3", 3, func(s *Scenario) float64 { return float64(count(s).lo) }}},
		"at_most":  {{"count: {message: Speeds, of: frames}, at_most: #", "", "0x3", 3, func(s *Scenario) float64 { return float64(count(s).hi) }}},
		"name":     nil, "value": nil, "count": nil, "silent": nil, "dtc": nil, "no_dtc": nil, "status": nil, "did": nil, "bus": nil,
	}
)

// Every number of a scenario and of a live command is refused without its unit, and applied in SI.
func TestEveryTypedNumberHasItsUnit(t *testing.T) {
	h := faultBench(t)
	checkListed(t, "faults", faultKeys(), faultNumbers)
	checkListed(t, "expect", expectKeys, expectNumbers)
	var list []typedNumber
	for _, l := range fileNumbers {
		list = append(list, l...)
	}
	for prefix, numbers := range map[string]map[string][]typedNumber{"faults: [{": faultNumbers, "expect: [{": expectNumbers} {
		for _, l := range numbers {
			for _, n := range l {
				n.text = prefix + n.text + "}]"
				list = append(list, n)
			}
		}
	}

	for _, n := range list {
		with := func(number string) (float64, error) {
			s, err := Parse("s.yaml", []byte("scenario: s\nfor: 100 s\n"+strings.ReplaceAll(n.text, "#", number)+"\n"), h.Clone())
			if strings.HasPrefix(n.text, "for:") {
				s, err = Parse("s.yaml", []byte("scenario: s\n"+strings.ReplaceAll(n.text, "#", number)+"\n"), h.Clone())
			}
			if err != nil {
				return 0, err
			}
			if len(s.Faults) > 0 { // the same fault as a live command
				list, err := NewCommands(h).Translate("fault " + s.Faults[0].String())
				if err != nil {
					return 0, errors.New("as a command: " + err.Error())
				}
				s.Plan.Faults[0] = list[0].Fault
			}
			return n.get(s), nil
		}
		spelled := strings.TrimSpace("3 " + n.unit)
		for _, text := range []string{spelled, n.same} {
			if got, err := with(text); err != nil || !near(got, n.si) {
				t.Errorf("%s with %s: %v (%v), want %v", n.text, text, got, err, n.si)
			}
		}
		if _, err := with("3 kg"); err == nil {
			t.Errorf("%s: 3 kg is accepted", n.text)
		}
		if n.unit == "" {
			continue
		}
		_, err := with("3")
		var at *yamlfile.FileError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), "3 needs a unit: 3 ") || !strings.Contains(err.Error(), spelled) {
			t.Errorf("%s with a bare number: %v, want a hint to %s", n.text, err, spelled)
		}
	}
}

// checkListed checks that the numbers of every key that the code reads are listed.
func checkListed(t *testing.T, what string, keys []string, numbers map[string][]typedNumber) {
	t.Helper()
	listed := slices.Sorted(maps.Keys(numbers))
	if keys = slices.Compact(slices.Sorted(slices.Values(keys))); !slices.Equal(keys, listed) {
		t.Errorf("%s: the code reads %q; numbers are listed of %q", what, keys, listed)
	}
}

// The rows of a table are in s and in the unit of the input, or in the units that the table states.
func TestTableStatesItsUnitsOnce(t *testing.T) {
	h := faultBench(t)
	for table, want := range map[string]float64{ // the last value, Pa, at 2 s
		"{table: [[0, 0], [2, 5]]}": 5e5, "{table: [[0 s, 0 bar], [2000 ms, 500 kPa]]}": 5e5,
		"{table: [[0, 0], [2000, 500]], units: [ms, kPa]}": 5e5, "{table: [[0, 0], [2 s, 5 bar]], units: [ms, kPa]}": 5e5,
	} {
		s, err := Parse("s.yaml", []byte("scenario: s\nstimuli: {clutch8.pressure: "+table+"}\n"), h.Clone())
		if err != nil || !near(value(s), want) || s.Plan.Stimuli[0].Waveform.At[1] != 2e9 {
			t.Errorf("%s: %v, want %v at 2 s", table, err, want)
		}
	}
	for table, want := range map[string]string{
		"{formula: 3+t, period: 1 s}":                "3+t needs a unit, such as bar",
		"{table: [[0, 0], [2, 5 rpm]]}":              "unit rpm does not fit, bar is wanted",
		"{table: [[0, 0], [2 bar, 5]]}":              "unit bar does not fit, s is wanted",
		"{table: [[0, 0], [2, 5]], units: [s, rpm]}": `unit "rpm"`,
	} {
		if _, err := Parse("s.yaml", []byte("scenario: s\nstimuli: {clutch8.pressure: "+table+"}\n"), h.Clone()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", table, err, want)
		}
	}
}

// A tolerance in % is a share, of a value in % a difference. A share of a temperature is refused.
func TestAToleranceInPercentIsAShareOrADifference(t *testing.T) {
	for _, c := range []struct {
		declared units.Port
		expect   string
		lo, hi   float64 // SI
		refused  string
	}{
		{units.Port{Unit: "1", Declared: "%"}, "within: 5 %, of: 30 %", 0.25, 0.35, ""},
		{units.Port{Unit: "1", Declared: "%"}, "within: 5 %, of: 0", -0.05, 0.05, ""},
		{units.Port{Unit: "1"}, "within: 5 %, of: 30 %", 0.25, 0.35, ""},
		{units.Port{Unit: "1"}, "within: 5 %, of: 0.3", 0.285, 0.315, ""},
		{units.Port{Unit: "Pa", Declared: "bar"}, "within: 5 %, of: 20 bar", 19e5, 21e5, ""},
		{units.Port{Unit: "Pa", Declared: "bar"}, "within: 2*2.5 %, of: 20 bar", 19e5, 21e5, ""},
		{units.Port{Unit: "Pa", Declared: "bar"}, "within: 20 bar*5 %, of: 20 bar", 19e5, 21e5, ""},
		{units.Port{Unit: "K", Declared: "degC"}, "within: 5 K, of: 20 degC", 288.15, 298.15, ""},
		{units.Port{Unit: "K", Declared: "degC"}, "within: 5 %, of: 20 degC", 0, 0, "5 % of 20 degC is no tolerance of a temperature; write it in K"},
	} {
		h := faultBench(t)
		p := &h.Tables.Outputs[bench.PortIndex(h.Tables.Outputs, "w1")]
		p.Unit, p.Declared = c.declared.Unit, c.declared.Declared
		s, err := Parse("s.yaml", []byte("scenario: s\nexpect: [{value: w1, "+c.expect+"}]\n"), h)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", c.expect, err, c.refused)
			}
		case err != nil || !near(window(s).lo, c.lo) || !near(window(s).hi, c.hi):
			t.Errorf("%+v: %s: %v, want %v to %v", c.declared, c.expect, err, c.lo, c.hi)
		}
	}
}

func TestSetNeedsTheUnitOfItsInputOrSignal(t *testing.T) {
	h := faultBench(t)
	for line, want := range map[string]float64{
		"set 'clutch8.pressure=3 bar'": 3e5, "set 'clutch8.pressure=300 kPa'": 3e5, "set clutch8.pressure=0": 0,
		"set 'Motor.speed=3 rpm'": 3, "set 'Motor.speed=0.1 rad/s*pi'": 3,
	} {
		list, err := NewCommands(h).Translate(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := list[0].Value + list[0].Fault.A; !near(got, want) {
			t.Errorf("%s sets %v, want %v", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"set clutch8.pressure=3":       "set: clutch8.pressure: 3 needs a unit: 3 bar?",
		"set Motor.speed=3":            "3 needs a unit: 3 rpm?",
		"set 'clutch8.pressure=3 rpm'": "unit rpm does not fit, bar is wanted",
		"set 'clutch8.pressure=50 bar'": "set: clutch8.pressure: 50 bar is outside the range of the input, " +
			"0 to 40 bar",
		"fault bus=drive bus_off for=200": "for: 200 needs a unit: 200 ms or 200 s?",
	} {
		if _, err := NewCommands(h).Translate(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
