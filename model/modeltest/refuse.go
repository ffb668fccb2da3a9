package modeltest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// Train is a small valid plant; tests change it in one place.
const Train = `plant: train
about: two wheels and a clutch
parameters:
  J_wheel: 0.5 kg.m2
  i1: 75/50
inputs:
  press: {unit: bar, min: 0, max: 20, default: {table: [[0, 0], [1 s, 5]]}}
  pedal: {unit: N.m, min: -10, max: 10}
elements:
  motor: {type: inertia, J: 2*J_wheel, w_start: 120 rpm}
  wheel: {type: inertia, J: J_wheel}
  frame: {type: fixed}
  pair: {type: ideal_gear, a: motor, b: loose, ratio: -i1}
  grip: {type: clutch, a: loose, b: wheel, mu: 0.1, cgeo: 0.5 m, area: 20 cm2, pressure: press}
  drag: {type: damper, a: frame, b: wheel, d: 0.01}
  shaft: {type: spring_damper, a: frame, b: wheel, c: 100, d: 1}
  drive: {type: torque, flange: motor, tau: pedal}
outputs:
  w: {speed: wheel}
  tau: {torque: [grip, shaft], onto: wheel}
`

// CutMarks removes the marks «» from text; at is the position of the first, as line:col.
func CutMarks(text string) (plain, at string) {
	before, rest, found := strings.Cut(text, "«")
	if !found {
		return text, ""
	}
	line := 1 + strings.Count(before, "\n")
	col := 1 + utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])
	return before + strings.Replace(rest, "»", "", 1), fmt.Sprintf("%d:%d", line, col)
}

// assembled returns the system of a plant; its file is called t.yaml.
func assembled(text string) (*model.System, error) {
	p, err := plantfile.Load("t.yaml", []byte(text), library.Elements())
	if err != nil {
		return nil, err
	}
	return assemble.System(p)
}

// Check loads and assembles a plant and returns the error.
func Check(text string) error {
	_, err := assembled(text)
	return err
}

// Refuse checks the error of a plant in which old is replaced by new, and the position in the error.
// Marks in new give the position; without marks, want begins with it.
func Refuse(t *testing.T, plant, old, new, want string) {
	t.Helper()
	if !strings.Contains(plant, old) {
		t.Fatalf("the plant has no %q", old)
	}
	text, at := CutMarks(strings.Replace(plant, old, new, 1))
	if at != "" {
		want = at + ": model: " + want
	}
	want = "t.yaml:" + want
	err := Check(text)
	if err == nil || err.Error() != want {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
	var e *yamlfile.FileError
	if !errors.As(err, &e) {
		t.Fatalf("%v is no error at a place", err)
	}
	if place := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Col); !strings.HasPrefix(want, place) {
		t.Errorf("its place is %s, want that of %s", place, want)
	}
}

// System returns the system of a valid plant.
func System(t *testing.T, text string) *model.System {
	t.Helper()
	sys, err := assembled(text)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}
