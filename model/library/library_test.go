package library

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/model/element"
)

// Components of the Modelica library, with the element types that the advice must name.
var without = map[string]string{
	"Shaft": "disc rod spring_damper", "InitializeFlange": "", "RelativeStates": "",
	"RollingResistance":    "vehicle",
	"TorqueToAngleAdaptor": "torque position", "Move": "position", "ConstantSpeed": "speed",
	"ConstantTorque": "torque force", "TorqueStep": "torque", "ForceStep": "force", "Torque2": "torque", "Force2": "force",
	"SawTooth": "", "AccSensor": "", "RelSpeedSensor": "", "MultiSensor": "speed_sensor",
	"World": "body", "BodyShape": "body", "FixedTranslation": "body", "Prismatic": "translational_joint", "Step": "", "Add": "sum", "Feedback": "sum",
	"FixedTemperature": "thermal_conductor", "FixedHeatFlow": "prescribed_heat_flow", "PID": "lim_pid",
}

// Advice names only element types that exist, and no element type has advice.
func TestAdviceForMissingComponentsNamesElementTypes(t *testing.T) {
	var names []string
	for _, k := range Elements() {
		names = append(names, k.Name)
		if advice := element.Instead(k.Name); advice != "" {
			t.Errorf("the type %s exists; the advice is: %s", k.Name, advice)
		}
	}
	for name, wanted := range without {
		advice := element.Instead(name)
		if advice == "" {
			t.Errorf("%s: no advice", name)
		}
		var named []string
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(advice, -1) {
			if named = append(named, m[1]); !slices.Contains(names, m[1]) {
				t.Errorf("%s: %s is not an element type: %s", name, m[1], advice)
			}
		}
		for _, want := range strings.Fields(wanted) {
			if !slices.Contains(named, want) {
				t.Errorf("%s: the advice does not name %s: %s", name, want, advice)
			}
		}
	}
}
