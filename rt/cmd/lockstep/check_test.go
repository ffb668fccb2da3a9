package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckDescribesAPlant(t *testing.T) {
	t.Parallel()
	out, errors, code := lockstep(t, "check", "powershift")
	for _, want := range []string{ // their text is a test of rt/bench
		"powershift.yaml: plant powershift, ", "5ms", "complete", "projected",
		" 4  shaft1.w[rad/s], shaft2.w[rad/s]", "wheel1, wheel2",
		"clutch1.pressure[bar] 0..40",
		"{clutch3, clutch4, clutch5}", "{clutch6, clutch7, clutch8}",
		" 256  ",
		" 5000 s,", "50 s, 50 s, 30 s", // J/d of shaft4, shaft1, shaft3, shaft2
		"80 events",
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
		" 1ms, scheme papers",
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

func TestCheckListsTheInputsOfABenchThatNoBusDrives(t *testing.T) {
	t.Parallel()
	text, _, _ := lockstep(t, "plants", "powershift-bench")
	file := filepath.Join(t.TempDir(), "b.yaml")
	text = strings.Replace(text, "      - TCU_Pressure_2.pressure_C8 -> clutch8.pressure\n", "", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	whole, _, _ := lockstep(t, "check", "powershift-bench")
	out, _, code := lockstep(t, "check", file)
	for _, input := range []string{"clutch7.pressure", "clutch8.pressure"} {
		more := 0 // further lines, compared with the check of the unchanged bench
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, ": "+input+" ") && !strings.Contains(whole, line) {
				more++
			}
		}
		if want := map[string]int{"clutch8.pressure": 1}[input]; code != 0 || more != want {
			t.Errorf("code %d, %d lines more about %s, want %d\n%s", code, more, input, want, out)
		}
	}
}

// A spring of 10 kHz: 256 substeps of 1 rad are shorter than 10 ms.
func TestCheckWarnsOfACoarseStepAndRefusesAnImpossibleOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stiff.yaml")
	text := "plant: stiff\nelements:\n  ground: {type: fixed}\n  body: {type: inertia, J: 1}\n" +
		"  shaft: {type: spring, a: ground, b: body, c: 3.948e9}\noutputs: {w: {speed: body}}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, errors, code := lockstep(t, "check", file, "-step", "1ms")
	if lines := strings.Split(errors, "\n"); code != 0 || len(lines) != 3 ||
		!has(lines[0], "lockstep: warning: "+file+": ", "1ms", "1e+04 Hz", "6.283e+04 rad/s", "64") ||
		!has(lines[1], "lockstep: warning: "+file+": ", "1ms", "1e+04 Hz", "49µs") {
		t.Errorf("code %d, %s", code, errors)
	}
	out, errors, code := lockstep(t, "check", file, "-step", "10ms")
	if code != 2 || out != "" || strings.Count(errors, "\n") != 1 ||
		!has(errors, "lockstep: "+file+":5:3: ", `"stiff"`, "6.283e+04 rad/s", "1e+04 Hz", `"shaft"`, "10ms", "4.07ms") {
		t.Errorf("code %d, %s\n%s", code, out, errors)
	}
}
