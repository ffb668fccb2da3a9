package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// soundPlant has a place for every wrong line below.
const soundPlant = `plant: sound
parameters: {J: 1}
inputs:
  p: {unit: bar, min: 0, max: 40}
assemblies:
  end:
    flanges: [axle]
    elements:
      drag: {type: damper, a: axle, b: rim, d: 1}
      rim: {type: inertia, J: 1}
elements:
  body: {type: inertia, J: 1 kg.m2}
  other: {type: inertia, J: 2}
  gear: {type: ideal_gear, a: body, b: wheel, ratio: 2}
  grip: {type: clutch, a: wheel, b: other, mu: 0.1, cgeo: 1, area: 10 cm2, pressure: p}
  push: {type: torque, flange: body, tau: {table: [[0, 1], [1, 2]]}}
  left: {type: end, axle: other}
outputs:
  w: {speed: body}
`

func TestWrongPlantsEndWithOneLineThatNamesThePlaceAndWhatWouldBeRight(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bad.yaml")
	for _, c := range []struct{ name, old, bad, want string }{
		{"sound", "", "", ""},
		{"no number", "J: 1 kg.m2", "J: .nan", `12:28: "body": J: .nan`},
		{"infinite", "J: 1 kg.m2", "J: 1e999", `12:28: "body": J: "1e999":`},
		{"zero inertia", "J: 1 kg.m2", "J: 0", `12:28: "body": J 0 kg.m2`},
		{"negative inertia", "J: 1 kg.m2", "J: -2 kg.m2", `12:28: "body": J -2 kg.m2`},
		{"ratio of zero", "ratio: 2", "ratio: 0", `14:54: "gear": ratio 0`},
		{"unit that does not fit", "1 kg.m2", "3 bar", `12:28: "body": J: "3 bar": bar kg.m2`},
		{"table going back", "[1, 2]]", "[-1, 2]]", `16:60: "push": tau`},
		{"assembly in itself", "      rim:", "      again: {type: end, axle: axle}\n      rim:", `10:21: "left.again" "end":`},
		{"input nobody reads", "pressure: p", "pressure: 3 bar", `4:3: input "p":`},
		{"output twice", "  w: {speed: body}", "  w: {speed: body}\n  w: {speed: other}", `20:3: w`},
		{"input twice", "  p: {unit", "  p: {unit: bar}\n  p: {unit", `5:3: p`},
		{"unknown element type", "type: ideal_gear", "type: ideal_geer", `14:16: "gear": ideal_geer ideal_gear`},
		{"unknown node", "flange: body", "flange: bodi", `16:32: bodi`},
		{"unknown parameter", "d: 1}", "d: dd}", `9:48: "left.drag" "end": d: "dd":`},
		{"nothing holds the node", "a: body, b: wheel", "a: wheel2, b: wheel", `14:31: "gear": node "wheel2"`},
		{"not YAML", "elements:\n  body", "elements: [\n  body", `18:1: YAML:`},
		{"loop in the YAML", "  w: {speed: body}", "  w: &a [*a]", `19:6: "&":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(soundPlant, c.old) {
				t.Fatalf("the sound plant has no %q", c.old)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(soundPlant, c.old, c.bad, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"sim", "check"} {
				out, errors, code := lockstep(t, command, file)
				if c.want == "" {
					if code != 0 || errors != "" {
						t.Errorf("%s: code %d, %s", command, code, errors)
					}
					continue
				}
				line, ok := strings.CutPrefix(errors, "lockstep: "+file+":")
				if code != 2 || out != "" || !ok || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(line, strings.Fields(c.want)[0]) || !has(line, strings.Fields(c.want)...) {
					t.Errorf("%s: code %d, out %q\ngot  %swant %s", command, code, out, errors, c.want)
				}
			}
		})
	}
}

// readme writes a file of the README, which begins with the line head, into a folder.
func readme(t *testing.T, head string) (file string) {
	t.Helper()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n    "+head+"\n")
	block, _, ok := strings.Cut(rest, "\n\n")
	if !ok {
		t.Fatalf("the README has no %s", head)
	}
	file = filepath.Join(t.TempDir(), "readme.yaml")
	if err := os.WriteFile(file, []byte(head+strings.ReplaceAll("\n"+block, "\n    ", "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestThePlantOfTheReadmeWorks(t *testing.T) {
	report := filepath.Join(t.TempDir(), "r.json")
	out, errors, code := lockstep(t, "sim", readme(t, "plant: shaft"), "-report", report)
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s%s", code, errors, out)
	}
	if r := readReport(t, report); r.Plant != "shaft" || !r.Clean || r.SimTime != 5 || r.Transitions != 2 || r.Events != 2 {
		t.Errorf("%s: clean %t, %g s, %d transitions at %d events\n%s", r.Plant, r.Clean, r.SimTime, r.Transitions, r.Events, out)
	}
}

func TestTheScenarioOfTheReadmeWorks(t *testing.T) {
	report := filepath.Join(t.TempDir(), "r.json")
	out, errors, code := lockstep(t, "sim", "truck-bench", "-scenario", readme(t, "scenario: ice-uphill"), "-report", report)
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s%s", code, errors, out)
	}
	if r := readReport(t, report); r.Trial == nil || r.Trial.Scenario != "ice-uphill" || !r.Trial.Pass || len(r.Trial.Findings) != 4 {
		t.Errorf("%+v\n%s", r.Trial, out)
	}
}
