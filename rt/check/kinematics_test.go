package check

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A body that pitches by 0.05 rad has levers that are off by 1e-3; by 1e-4 rad, 5e-9.
func TestCheckWarnsOfLinearBodiesThatTurn(t *testing.T) {
	const plant = `plant: t
elements:
  road: {type: fixed}
  car: {type: body, m: 1000, J: 1000, phi_start: ANGLE, nodes: {front: [1, 0], rear: [-1, 0]}}
  front: {type: spring_damper, a: road, b: car.front.y, c: 40 kN/m, d: 4 kN.s/m}
  rear: {type: spring_damper, a: road, b: car.rear.y, c: 40 kN/m, d: 4 kN.s/m}
outputs: {phi: {angle: car.phi}}
`
	for angle, want := range map[string]bool{"0.05": true, "1e-4": false, "0.05, x_start: 0, y_start: 0, kinematics: exact": false} {
		file := filepath.Join(t.TempDir(), "t.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(plant, "ANGLE", angle, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		warnings := ""
		c := Check{Step: 5 * time.Millisecond, Out: io.Discard, Warn: func(text string) { warnings += text }}
		err := c.File(file)
		if got := strings.Contains(warnings, `t.yaml:4: body "car" turns by up to 0.05 rad`); err != nil || got != want {
			t.Errorf("phi_start %s: %v, warned %q", angle, err, warnings)
		}
	}
}

// A train has two frames per car: one line says what 40 would.
func TestCheckWarnsOnceOfManyLinearBodies(t *testing.T) {
	const plant = `plant: t
elements:
  road: {type: fixed}
  less: {type: body, m: 1000, J: 1000, phi_start: 0.02, nodes: {front: [1, 0]}}
  most: {type: body, m: 1000, J: 1000, phi_start: -0.05, nodes: {front: [1, 0]}}
  still: {type: body, m: 1000, J: 1000, nodes: {front: [1, 0]}}
  least: {type: body, m: 1000, J: 1000, phi_start: 0.01, nodes: {front: [1, 0]}}
  a: {type: spring_damper, a: road, b: less.front.y, c: 4 N/m, d: 4 N.s/m}
  b: {type: spring_damper, a: road, b: most.front.y, c: 4 N/m, d: 4 N.s/m}
  c: {type: spring_damper, a: road, b: still.front.y, c: 4 N/m, d: 4 N.s/m}
  d: {type: spring_damper, a: road, b: least.front.y, c: 4 N/m, d: 4 N.s/m}
outputs: {phi: {angle: most.phi}}
`
	file := filepath.Join(t.TempDir(), "t.yaml")
	if err := os.WriteFile(file, []byte(plant), 0o644); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	c := Check{Step: 5 * time.Millisecond, Out: io.Discard, Warn: func(text string) {
		if strings.Contains(text, "turns by up to") {
			warnings = append(warnings, text)
		}
	}}
	if err := c.File(file); err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `t.yaml:5: body "most" turns by up to 0.05 rad`) ||
		!strings.HasSuffix(warnings[0], "; 2 more bodies turn by as much or less") {
		t.Errorf("warned %q", warnings)
	}
}
