package specialise

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// A quiet tick of a plant with few lock sets has a function for each of them. It multiplies by no matrix
// element that is 0 or 1, and holds the state at the end of the tick in variables.
func TestEachLockSetHasItsQuietTick(t *testing.T) {
	tables, err := kernel.Prepare(rig.Assemble(t, "coupled-clutches"), kernel.Options{Period: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	files, _ := withCalls(t, tables)
	product := regexp.MustCompile(`\w ?\* ?\w`)
	for set := range tables.Modes {
		_, text, found := strings.Cut(string(files["tick.go"]), fmt.Sprintf("func (k *Kernel) moveInLockSet%d(", set))
		text, _, _ = strings.Cut(text, "\n}\n")
		elements := 0
		for _, v := range tables.Modes[set].Phi {
			if v != 0 && v != 1 {
				elements++
			}
		}
		rows, _, _ := strings.Cut(text, "1.797")
		if products := len(product.FindAllString(rows, -1)); !found || products != elements {
			t.Errorf("lock set %d: %d products, want %d", set, products, elements)
		}
		for _, array := range []string{"k.x1[", "k.slip1[", "modes"} {
			if strings.Contains(text, array) {
				t.Errorf("lock set %d uses %s", set, array)
			}
		}
	}
}

// A plant whose quiet ticks would be longer than the rest of the tick has one for all lock sets, and its
// loops are unrolled as those of other plants.
func TestLargePlantHasOneQuietTick(t *testing.T) {
	text := "plant: chain\ninputs: {force: {unit: N, min: 0, max: 2000, default: 800}}\nelements:\n"
	const wheels = 30
	for i := range wheels {
		text += fmt.Sprintf("  wheel%d: {type: inertia, J: 2 kg.m2, w_start: %d rpm}\n", i, 100*i)
		if i > 0 {
			text += fmt.Sprintf("  damper%d: {type: damper, a: wheel%d, b: wheel%d, d: 3}\n", i, i-1, i)
		}
	}
	for i := range 4 {
		text += fmt.Sprintf("  brake%d: {type: brake, flange: wheel%d, mu: 0.4, cgeo: 0.2 m, fn: force}\n", i, 7*i)
	}
	text += "outputs: {w: {speed: wheel0}}\n"
	tables, err := kernel.Prepare(rig.Assemble(t, text), kernel.Options{Period: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if !tables.Quiet || len(tables.Modes) != 16 {
		t.Fatalf("quiet ticks %t, %d lock sets; want true, 16", tables.Quiet, len(tables.Modes))
	}
	files, report := withCalls(t, tables)
	if strings.Contains(string(files["tick.go"]), "moveInLockSet0(") {
		t.Error("each lock set has its quiet tick, want one for all")
	}
	if want := fmt.Sprintf("loops of up to %d statements", unrollLimit); !strings.Contains(strings.Join(report.Lines, "\n"), want) {
		t.Errorf("report %q, want %q", report.Lines, want)
	}
}
