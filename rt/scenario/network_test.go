package scenario_test

import (
	"strings"
	"testing"

	"lockstep/rt/fault"
	"lockstep/rt/network"
	"lockstep/rt/scenario"
)

func TestStepsAreRepeatedAndSortedByTime(t *testing.T) {
	h := prepared(t, "automatic-bench")
	s, err := scenario.Parse("s.yaml", []byte(`scenario: s
for: 100 s
states: [{at: 20 s, snapshot: warm}]
steps:
  - {at: 10 s, ignition: off, every: 10 s, times: 3}
  - {at: 15 s, ignition: on, every: 10 s, times: 2}
  - {at: tick 4000, power: 9 V}
`), h)
	if err != nil {
		t.Fatal(err)
	}
	volts, _ := network.ParseSupply("9 V")
	want := []fault.PlannedState{
		{Tick: 2000, Op: fault.SwitchIgnition, Slot: int(network.Off)},
		{Tick: 3000, Op: fault.SwitchIgnition, Slot: int(network.Run)},
		{Tick: 4000, Op: fault.TakeSnapshot},
		{Tick: 4000, Op: fault.SwitchIgnition, Slot: int(network.Off)},
		{Tick: 4000, Op: fault.SwitchPower, Slot: int(volts)},
		{Tick: 5000, Op: fault.SwitchIgnition, Slot: int(network.Run)},
		{Tick: 6000, Op: fault.SwitchIgnition, Slot: int(network.Off)},
	}
	if len(s.Plan.States) != len(want) {
		t.Fatalf("%v, want %v", s.Plan.States, want)
	}
	for i := range want {
		if s.Plan.States[i] != want[i] {
			t.Errorf("step %d: %v, want %v", i, s.Plan.States[i], want[i])
		}
	}
}

func TestMistakesInStepsAreNamedWithTheirPosition(t *testing.T) {
	with, without := prepared(t, "automatic-bench"), prepared(t, "powershift-bench")
	for _, c := range []struct{ text, want string }{
		{"steps: [{uds: clear, at: 1 s}]", "steps: a request to the unit stands in the list diagnosis: [{uds: clear, at: 1 s}]"},
		{"steps: [{at: 1 s}]", "3:9: bench: steps: an entry is {at: TIME, ignition: STATE}"},
		{"steps: [{at: 1 s, ignition: off, power: off}]", "steps: an entry is"},
		{"steps: [{at: 1 s, ignition: off, every: 2 s}]", "with every: TIME and times: N if it repeats"},
		{"steps: [{at: 1 s, ignition: of}]", `steps: ignition: "of" is no ignition state`},
		{"steps: [{at: 1 s, power: 900 V}]", `steps: power: "900 V" is neither off, on, nor a voltage up to 600 V`},
		{"steps: [{at: 1, ignition: off}]", "steps: at:"},
		{"steps: [{at: 11 s, ignition: off}]", "steps: ignition off at 11 s is not before the end of the run, at 10 s"},
		{"steps: [{at: 1 s, ignition: off, every: 5 s, times: 3}]", "steps: ignition off at 11 s is not before the end"},
		{"steps: [{at: 1 s, ignition: off, every: 0 s, times: 3}]", "steps: every: expected a time of at least one tick"},
		{"steps: [{at: 1 s, ignition: off, every: 5 ms, times: 1000}, {at: 1 s, ignition: run, every: 5 ms, times: 25}]", "steps: more than 1024 entries"},
		{"expect: [{silent: TCV, within: 1 s, after: ignition off}]", "silent: the bench receives no message called TCV"},
		{"expect: [{silent: TCU, after: ignition off}]", "within: the time is missing"},
		{"expect: [{silent: TCU, within: 1 s, after: 2 s}]", "silent: expected after: ignition STATE"},
		{"expect: [{silent: TCU, within: 1 s, after: ignition of}]", "silent: expected after: ignition STATE"},
		{"expect: [{answer: {frame: ClutchPressures}, within: 1 s, after: ignition of}]", `"of" is no ignition state`},
	} {
		_, err := scenario.Parse("s.yaml", []byte("scenario: s\nfor: 10 s\n"+c.text+"\n"), with.Clone())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "s.yaml:3:") {
			t.Errorf("%s\n got  %v\n want %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{"steps: [{at: 1 s, ignition: off}]", "expect: [{silent: TCU, within: 1 s, after: ignition off}]"} {
		if _, err := scenario.Parse("s.yaml", []byte("scenario: s\n"+text+"\n"), without.Clone()); err == nil || !strings.Contains(err.Error(), "the bench has no ignition: give its file the section network") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
