package target

import (
	"encoding/gob"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/rt"
)

// written writes a file of gob values.
func written(t *testing.T, values ...any) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "handover"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	to := gob.NewEncoder(f)
	for _, v := range values {
		if err := to.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestTargetReadsItsPartOfTheHandover(t *testing.T) {
	type more struct{ Name string }
	f := written(t, &Handover{Mark: "m", Loop: rt.Config{Period: time.Millisecond}}, &more{"tables"}, &more{"for supervisors"})
	for n := range 3 { // a supervisor that attaches reads it again
		h, err := Open(f)
		if err != nil || h.Mark != "m" || h.Loop.Period != time.Millisecond {
			t.Fatalf("%+v, %v", h, err)
		}
		for i := range n {
			var v more
			if err := h.Next(&v); err != nil || v.Name != []string{"tables", "for supervisors"}[i] {
				t.Errorf("value %d: %+v, %v", i, v, err)
			}
		}
	}
}

func TestDamagedHandoverGivesAnErrorOfOneLine(t *testing.T) {
	f := written(t, &Handover{Mark: "m"})
	h, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Next(&struct{}{}); err == nil || !strings.HasPrefix(err.Error(), "target: hand-over: ") {
		t.Errorf("after the last value: %v", err)
	}
	if err := f.Truncate(20); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f); err == nil || !strings.HasPrefix(err.Error(), "target: hand-over: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("of a file that was cut: %v", err)
	}
}
