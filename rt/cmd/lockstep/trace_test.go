package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlotShowsAPartFromTheStartOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "line.csv")
	if err := os.WriteFile(file, []byte("time[s],v[m/s]\n0,0\n1,1\n2,2\n3,3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	said, errors, code := lockstep(t, "plot", file, "v", "-from", "0s", "-to", "2s")
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); code != 0 || !strings.HasPrefix(last, "0 s") || !strings.HasSuffix(last, " 2 s") {
		t.Errorf("code %d, %s%s; want the axis from 0 s to 2 s", code, said, errors)
	}
	if _, errors, code := lockstep(t, "plot", file, "v", "-from", "-1s"); code != 2 || !strings.Contains(errors, "must not be negative") {
		t.Errorf("-from -1s: code %d, %s", code, errors)
	}
}
