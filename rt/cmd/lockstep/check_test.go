package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckSaysWhatWasUnderstoodOfAPlant(t *testing.T) {
	t.Parallel()
	out, errors, code := lockstep(t, "check", "powershift")
	for _, want := range []string{
		"powershift.yaml: plant powershift, a step of 5ms, scheme complete, form projected\n",
		"states       4  shaft1.w[rad/s], shaft2.w[rad/s]",
		"freedoms     4  degrees of freedom of 4 with inertia",
		"massless     8  eliminated, follow from gears: wheel1, wheel2",
		"clutch1.pressure[Pa] 0..4e+06",
		"{clutch3, clutch4, clutch5}", "{clutch6, clutch7, clutch8}",
		"modes      256  lock sets precomputed",
		"time constants 5000 s,", "50 s, 50 s, 30 s", // J/d of shaft4, shaft1, shaft3, shaft2
		"1 piece per step of 5ms",
		"80 events", "pivots per event", "dearest tick", "% of 5ms",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != 0 || errors != "" {
		t.Errorf("code %d, %s", code, errors)
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestCheckPrintsMatricesWithNames(t *testing.T) {
	t.Parallel()
	out, _, code := lockstep(t, "check", "powershift", "-matrices", "-step", "1ms", "-scheme", "papers")
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"a step of 1ms, scheme papers",
		" M shaft1.w shaft2.w shaft3.w shaft4.w shaft1.w 1 . . . shaft2.w . 0.3 . . ",
		" W shaft1.w shaft2.w shaft3.w shaft4.w clutch1 0.3333 1 . . ",
		" Dc clutch1 clutch2 clutch3 clutch4 clutch5 clutch6 clutch7 clutch8 w1 . ",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if code != 0 {
		t.Errorf("code %d", code)
	}
}

func TestCheckListsTheInputsOfABenchThatNobodyDrives(t *testing.T) {
	t.Parallel()
	text, _, _ := lockstep(t, "plants", "powershift-bench")
	file := filepath.Join(t.TempDir(), "b.yaml")
	text = strings.Replace(text, "      - TCU_Pressure_2.pressure_C8 -> clutch8.pressure\n", "", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _, code := lockstep(t, "check", file)
	if want := "not driven: clutch8.pressure follows its own table\n"; code != 0 || !strings.Contains(out, want) || strings.Count(out, "not driven") != 1 {
		t.Errorf("code %d, %q is missing in\n%s", code, want, out)
	}
}

// A spring of 10 kHz: 256 pieces of 1 rad do not reach over 10 ms.
func TestCheckWarnsOfACoarseStepAndRefusesAnImpossibleOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stiff.yaml")
	text := "plant: stiff\nelements:\n  ground: {type: fixed}\n  body: {type: inertia, J: 1}\n" +
		"  shaft: {type: spring, a: ground, b: body, c: 3.948e9}\noutputs: {w: {speed: body}}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, errors, code := lockstep(t, "check", file, "-step", "1ms")
	for _, want := range []string{
		"lockstep: warning: " + file + ": the step of 1ms is coarse for the fastest mode of any lock set 1e+04 Hz (6.283e+04 rad/s): 64 pieces per step",
		"lockstep: warning: " + file + ": a step of 1ms cannot show the swing of 1e+04 Hz; one of 49µs can",
	} {
		if code != 0 || !strings.Contains(errors, want) {
			t.Errorf("code %d\ngot  %swant %s", code, errors, want)
		}
	}
	out, errors, code := lockstep(t, "check", file, "-step", "10ms")
	want := "lockstep: " + file + `:5:3: kernel: plant "stiff": its fastest mode, 6.283e+04 rad/s (1e+04 Hz) of "shaft", is too fast for a period of 10ms; 4.07ms would fit` + "\n"
	if code != 2 || errors != want || out != "" {
		t.Errorf("code %d, %s\ngot  %swant %s", code, out, errors, want)
	}
}
