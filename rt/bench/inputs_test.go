package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/model/plants"
	"lockstep/rt"
	"lockstep/rt/bench/benchtest"
)

// prepared parses and prepares the demo bench with replacements, and a database without cycles.
func prepared(t *testing.T, replace ...string) (*Handover, error) {
	t.Helper()
	data, err := plants.Read("powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, "GenMsgCycleTime") {
			lines = append(lines, line)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.dbc"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Parse("b.yaml", dir, []byte(benchtest.DemoText(t, append([]string{"database: powershift.dbc", "database: own.dbc"}, replace...)...)))
	if err != nil {
		return nil, err
	}
	return Prepare(b)
}

// ramped is the section messages with a ramp of the first message.
func ramped(ramp string) []string {
	return []string{"    receive:", "    messages: {TCU_Pressure_1: {cycle: 12.5 ms, " + ramp + "}}\n    receive:"}
}

func TestInputsActOnTheGridUnlessTheBenchSaysOtherwise(t *testing.T) {
	atArrival := []string{"scheduler: fifo ", "inputs_at: arrival\nscheduler: fifo "}
	for _, c := range []struct {
		replace []string
		arrival bool
		ramps   int // inputs
		places  int
	}{
		{nil, false, 0, 0},
		{[]string{"scheduler: fifo ", "inputs_at: grid\nscheduler: fifo "}, false, 0, 0},
		{atArrival, true, 0, rt.MaxPlaces},
		{ramped("ramp: all"), false, 4, rt.MaxPlaces},
		{append(atArrival, ramped("ramp: [clutch2.pressure]")...), true, 1, rt.MaxPlaces},
	} {
		h, err := prepared(t, c.replace...)
		if err != nil {
			t.Fatal(err)
		}
		ramps := 0
		for i, ns := range h.Loop.Inputs.RampNs {
			if ns != 0 && ns != 12.5e6 || (ns != 0) != h.Tables.Ramped[i] {
				t.Errorf("%q: input %s has a ramp of %d ns", c.replace, h.Tables.Inputs[i].Name, ns)
			}
			if ns != 0 {
				ramps++
			}
		}
		if h.Loop.Inputs.AtArrival != c.arrival || ramps != c.ramps || h.Tables.Places != c.places {
			t.Errorf("%q: %+v, %d places; want %t, %d ramps, %d places", c.replace, h.Loop.Inputs, h.Tables.Places, c.arrival, c.ramps, c.places)
		}
	}
}

func TestGuideStatesHowManyInstantsAStepTakes(t *testing.T) {
	if want := fmt.Sprintf("at most %d such instants", rt.MaxPlaces); !strings.Contains(string(Guide), want) {
		t.Errorf("the guide lacks %q", want)
	}
}

func TestAWrongRampIsRefusedWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		replace []string
		want    string
	}{
		{ramped("ramp: [clutch5.pressure]"), `bench: message TCU_Pressure_1: ramp: the message does not drive "clutch5.pressure"`},
		{ramped("ramp: [clutch11.pressure]"), `(did you mean clutch1.pressure?)`},
		{[]string{"    receive:", "    messages: {TCU_Pressure_1: {ramp: all}}\n    receive:"}, "message TCU_Pressure_1: ramp: the cycle is missing, here and in the database (cycle: 10 ms)"},
		{[]string{"scheduler: fifo ", "inputs_at: tick\nscheduler: fifo "}, `inputs_at: "tick"`},
	} {
		_, err := prepared(t, c.replace...)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "b.yaml:") {
			t.Errorf("%q:\ngot  %v\nwant %s", c.replace[1], err, c.want)
		}
	}
}
