package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/model"
	"lockstep/rt/guide"
	"lockstep/rt/scenario"
)

// guideFile returns the YAML file of a guide that begins with the line head.
func guideFile(t *testing.T, source []byte, head string) string {
	t.Helper()
	for _, b := range (guide.Guide{Source: source}).Blocks() {
		if b.Language == "yaml" && strings.HasPrefix(b.Text, head+"\n") {
			return b.Text
		}
	}
	t.Fatalf("the guide has no file that begins with %s", head)
	return ""
}

func TestWrongPlantsEndWithOneLineThatNamesPositionAndRemedy(t *testing.T) {
	t.Parallel()
	soundPlant := guideFile(t, model.Guide, "plant: sound") // has every element that the cases below change
	file := filepath.Join(t.TempDir(), "bad.yaml")
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

func TestThePlantOfTheGuideWorks(t *testing.T) {
	dir := t.TempDir()
	file, report := filepath.Join(dir, "shaft.yaml"), filepath.Join(dir, "r.json")
	if err := os.WriteFile(file, []byte(guideFile(t, model.Guide, "plant: shaft")), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errors, code := lockstep(t, "sim", file, "-report", report)
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s%s", code, errors, out)
	}
	if r := readReport(t, report); r.Plant != "shaft" || !r.Clean || r.SimTime != 5 || r.Transitions != 2 || r.Events != 2 {
		t.Errorf("%s: clean %t, %g s, %d transitions at %d events\n%s", r.Plant, r.Clean, r.SimTime, r.Transitions, r.Events, out)
	}
}

func TestTheScenarioOfTheGuideWorks(t *testing.T) {
	dir := t.TempDir()
	file, report := filepath.Join(dir, "ice.yaml"), filepath.Join(dir, "r.json")
	if err := os.WriteFile(file, []byte(guideFile(t, scenario.Guide, "scenario: ice-uphill")), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errors, code := lockstep(t, "sim", "truck-bench", "-scenario", file, "-report", report)
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s%s", code, errors, out)
	}
	if r := readReport(t, report); r.Scenario == nil || r.Scenario.Scenario != "ice-uphill" || !r.Scenario.Pass || len(r.Scenario.Findings) != 4 {
		t.Errorf("%+v\n%s", r.Scenario, out)
	}
}
