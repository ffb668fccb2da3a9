package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The matrices of a train are sparse: full matrices would cost cars² per tick.
func TestCostOfATickGrowsWithTheLengthOfTheTrain(t *testing.T) {
	r := doTrains(trainExtent{[]int{1, 3, 5, 10}, 2 * time.Second, 60, 3})
	t.Logf("%s", r.markdown())
	if !(r.quiet > 0.5 && r.quiet <= 1.25 && r.worst > 0.5 && r.worst <= 1.4) {
		t.Errorf("quiet ticks grow with cars^%.2f and the worst with cars^%.2f, want about 1", r.quiet, r.worst)
	}
	for _, c := range r.costs {
		if c.states < 30*c.cars || !(c.worst >= c.quiet) {
			t.Errorf("%+v", c)
		}
	}
	dir := t.TempDir()
	if err := r.files().write(dir); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, filepath.Join(dir, "trains.svg"))
	text, err := os.ReadFile(filepath.Join(dir, "trains.md"))
	if err != nil || !strings.Contains(string(text), "| 10 | 40 |") || strings.Contains(string(text), "NaN") {
		t.Errorf("trains.md, %v:\n%s", err, text)
	}
}
