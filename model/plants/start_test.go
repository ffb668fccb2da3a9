package plants_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// In each gear the clutches of the gear are locked from the start on, and nothing changes its mode. The
// freewheel of a clutch that the gear overruns is open.
func TestPlantsStartInEveryGearWithoutATransition(t *testing.T) {
	for _, name := range []string{"powershift", "automatic4"} {
		text, err := plants.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		draft, err := plantfile.Parse(name, text, library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		plant, err := draft.Load()
		if err != nil {
			t.Fatal(err)
		}
		gear := plant.Presets[2]
		if gear.Name != "gear" || len(gear.Choices) < 5 {
			t.Fatalf("%s: presets %+v", name, plant.Presets)
		}
		for _, g := range gear.Choices {
			draft.Start([]plantfile.Assignment{{Name: "v", Value: "20 km/h"}, {Name: "gear", Value: g}})
			if plant, err = draft.Load(); err != nil {
				t.Fatal(err)
			}
			sys, err := assemble.System(plant)
			if err != nil {
				t.Fatal(err)
			}
			tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			k, y := kernel.New(tables), make([]float64, len(tables.Outputs))
			output := func(name string) float64 {
				for i, p := range tables.Outputs {
					if p.Name == name {
						return y[i]
					}
				}
				t.Fatalf("no output %s", name)
				return 0
			}
			for range 5 {
				k.Step(y, tables.Start)
			}
			var locked []string
			for _, s := range plant.Starts {
				if s.Preset == "gear="+g && s.Speed {
					locked = append(locked, fmt.Sprintf("%s=%g", s.Element, output(s.Element+".mode")))
				}
			}
			if len(locked) != 3 || slices.ContainsFunc(locked, func(s string) bool { return !strings.HasSuffix(s, "=0") }) || output("transitions") != 0 {
				t.Errorf("%s in gear %s: modes %v, %g transitions", name, g, locked, output("transitions"))
			}
		}
	}
}
