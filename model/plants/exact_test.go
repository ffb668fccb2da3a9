package plants_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/truth"
	"lockstep/model/kernel"
)

// exactJudder is the text of judder with exact kinematics in place of its laws of second order, as its head comment
// describes it.
func exactJudder(t *testing.T) string {
	text := judderText(t, "judder",
		"y_start: h, phi_start: 0, v_x_start: v_0, nodes: {front: [a, -s_0], rear: [-a, -s_0]}",
		"y_start: h, v_x_start: v_0, kinematics: exact, nodes: {front: [a, 0], rear: [-a, 0]}",
		"      strut: {type: spring_damper, a: hub.y, b: mount.y, c: k, d: c, s_rel0: leg/k, s_rel_start: 0}\n",
		"      leg: {type: line, a: hub, b: mount}\n      strut: {type: spring_damper, a: road, b: leg, c: k, d: c, s_rel0: s_0 + leg/k}\n",
		"    signals: [lean, lean_rate, drive]\n", "")
	text = strings.ReplaceAll(text, ", lean: lean, lean_rate: lean_rate, drive: {sum: [front.contact.f, rear.contact.f]}", "")
	var kept []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !slices.Contains([]string{"brace", "lever", "rise", "legs", "lean", "lean_rate", "wind_up"}, name) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// The truth has bodies at any angle, integrated on its own with a tolerance of 1e-11.
func TestExactKinematicsMatchesTheNonlinearJudder(t *testing.T) {
	tr := truth.Read(t, "testdata/E1_case1.csv").AfterEvents()
	n := len(tr.Time) / 4 // 5 s: the pitch has swung out
	tr.Time, tr.Rows = tr.Time[:n], tr.Rows[:n]
	worst, events, _ := run(t, assembled(t, "judder", []byte(exactJudder(t))), kernel.Options{Period: 5 * time.Millisecond}, tr)
	if len(events) > 0 {
		t.Errorf("%d transitions, want none", len(events))
	}
	var seen []string
	for _, name := range tr.Names[1:] {
		e, ok := worst[name]
		if !ok {
			continue
		}
		seen = append(seen, fmt.Sprintf("%s %.1e", name, e))
		if !(e <= 1e-6) {
			t.Errorf("%s is off by %.2g of its range", name, e)
		}
	}
	if len(seen) != 17 {
		t.Errorf("%d columns are compared, want 17: %v", len(seen), seen)
	}
	t.Logf("error over range: %s", strings.Join(seen, ", "))
}
