package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"lockstep/rt/bench"
)

func TestPreviousEndIsThatOfTheReportOfTheSameBench(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	b := &bench.Bench{Name: "a", Metrics: "127.0.0.1:9464"}
	for _, c := range []struct {
		text, want string
	}{
		{`{"plant": "p", "bench": "a", "ended": "a tick was missed (stop)", "clean": false}`, "a tick was missed (stop)"},
		{`{"plant": "p", "bench": "b", "ended": "done", "clean": true}`, ""},
		{`{"bench": "a", "ended"`, ""}, {"", ""},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := previousEnd(file, b)
		if (got == nil) != (c.want == "") || got != nil && (got.Why != c.want || got.Clean) {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
	if got := previousEnd(filepath.Join(t.TempDir(), "none"), b); got != nil {
		t.Errorf("without a report: %+v", got)
	}
}
