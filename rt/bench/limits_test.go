package bench_test

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/io/inputfile"
)

func TestGuideGivesTheLimitsOfFiles(t *testing.T) {
	kinds := map[string]inputfile.Kind{
		"plant": inputfile.Text, "inputs": inputfile.Inputs, "record": inputfile.Record, "log": inputfile.Log,
		"certificate": inputfile.Certificate, "table": inputfile.Table, "target": inputfile.Executable,
	}
	rows := tableOf(t, "limits-of-files", 0)
	if len(rows) != len(kinds) || inputfile.State.Limit() != inputfile.Certificate.Limit() {
		t.Errorf("%d rows for %d kinds, limit of a state %d", len(rows), len(kinds), inputfile.State.Limit())
	}
	for _, row := range rows {
		first := strings.FieldsFunc(row["file"], func(r rune) bool { return r == ' ' || r == ',' })[0]
		kind, known := kinds[first]
		want := "none"
		if n := kind.Limit(); n >= 1<<30 {
			want = fmt.Sprintf("%d GiB", n>>30)
		} else if n > 0 {
			want = fmt.Sprintf("%d MiB", n>>20)
		}
		if limit := row["limit"]; !known || !strings.HasPrefix(limit+" ", want) {
			t.Errorf("%s: limit %s, want %s", row["file"], limit, want)
		}
	}
}
