package specialise

import (
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// The instructions of laws are statements, where the tick computes the law as well: laws of one kind share a function.
func TestNoLawIsInterpreted(t *testing.T) {
	tables, err := kernel.Prepare(rig.Assemble(t, "rail17"), kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	files, report := withCalls(t, tables)
	text := string(files["tick.go"]) + string(files["tick_tables.go"])
	if !strings.Contains(strings.Join(report.Lines, "\n"), "loops of up to 60 statements") {
		t.Errorf("report %q: want a plant whose loops over laws are not unrolled in full", report.Lines)
	}
	if strings.Contains(text, "InstructionsCode") {
		t.Error("the tick reads the instructions of laws from a table")
	}
	if classes := strings.Count(text, "\nfunc (k *Kernel) executeClass"); classes == 0 || classes >= 24 {
		t.Errorf("%d functions for the classes of laws and event indicators, want some, but fewer than the 24 of them", classes)
	}
}
