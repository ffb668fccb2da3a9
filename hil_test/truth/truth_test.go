package truth

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadPreservesEventsAndNaN(t *testing.T) {
	table := Read(t, file(t, "# by hand\ntime[s],w[rad/s],mode\n0,1,free\n1,3,locked\n1,-2,2\n"))
	if !slices.Equal(table.Names, []string{"time", "w", "mode"}) || !slices.Equal(table.Time, []float64{0, 1, 1}) {
		t.Errorf("names %q, times %v", table.Names, table.Time)
	}
	if mode := table.Columns()["mode"]; len(mode) != 3 || !math.IsNaN(mode[0]) || !math.IsNaN(mode[1]) || mode[2] != 2 {
		t.Errorf("modes %v", mode)
	}
	after := table.AfterEvents()
	if w := after.Columns()["w"]; !slices.Equal(w, []float64{1, -2}) || !slices.Equal(after.Time, []float64{0, 1}) {
		t.Errorf("after events w is %v at %v", w, after.Time)
	}
	if spans := table.Spans(); spans[0] != 1 || spans[1] != 5 || !math.IsNaN(spans[2]) {
		t.Errorf("spans %v", spans)
	}
}

func TestReadEventsReturnsFieldsByColumn(t *testing.T) {
	events := ReadEvents(t, file(t, "t,event,speed\n0.5,impact,-1e-7\n2,lock_2,\n"))
	if len(events) != 2 || events[0].Time != 0.5 || events[0].Fields["speed"] != "-1e-7" || events[1].Name != "lock_2" || events[1].Fields["speed"] != "" {
		t.Errorf("%+v", events)
	}
	if events := ReadEvents(t, "nowhere.csv"); events != nil {
		t.Errorf("%+v from a missing file, want no events", events)
	}
}
