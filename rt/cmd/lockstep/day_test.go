package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"lockstep/io/record"
)

// The whole day in virtual time holds, and a second run gives the same record.
func TestDayHoldsInVirtualTimeAndIsRepeatable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files [2]string
	var runs [2]*session
	for i, name := range []string{"a", "b"} {
		files[i] = filepath.Join(dir, name)
		runs[i] = begin(t, nil, "sim", "automatic-bench", "-scenario", "automatic-day",
			"-record", files[i]+".rec", "-junit", files[i]+".xml", "-report", files[i]+".json")
	}
	var verdicts [2]any
	for i, s := range runs {
		code := s.end()
		r := readReport(t, files[i]+".json")
		if code != 0 || r.Scenario == nil || !r.Scenario.Pass || len(r.Scenario.Findings) != 20 || r.Ticks != 120_000 {
			t.Fatalf("code %d, %d ticks", code, r.Ticks)
		}
		verdicts[i] = r.Scenario.Findings
		var suites struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
		}
		if data, err := os.ReadFile(files[i] + ".xml"); err != nil || xml.Unmarshal(data, &suites) != nil || suites.Tests != 20 || suites.Failures != 0 {
			t.Errorf("JUnit has %+v, %v", suites, err)
		}
	}
	if !reflect.DeepEqual(verdicts[0], verdicts[1]) {
		t.Errorf("the verdicts differ:\n%v\n%v", verdicts[0], verdicts[1])
	}
	if n := sameEntries(t, files[0]+".rec", files[1]+".rec"); n < 120_000 {
		t.Errorf("the records have %d entries", n)
	}
}

// sameEntries compares two records and returns the number of their entries.
func sameEntries(t *testing.T, a, b string) (n int) {
	t.Helper()
	var readers [2]*record.Reader
	for i, file := range []string{a, b} {
		r, err := record.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		readers[i] = r
	}
	for ; ; n++ {
		first, err := readers[0].Next()
		second, other := readers[1].Next()
		switch {
		case errors.Is(err, io.EOF) && errors.Is(other, io.EOF):
			return n
		case err != nil || other != nil:
			t.Fatalf("entry %d: %v, %v", n, err, other)
		case !reflect.DeepEqual(first, second):
			t.Fatalf("entry %d differs:\n%+v\n%+v", n, first, second)
		}
	}
}

// The first two minutes of the day hold in real time on the pair, unless bench or unit stalled. What comes later is
// skipped.
func TestFirstMinutesOfTheDayHoldOnThePair(t *testing.T) {
	t.Parallel()
	text, _, _ := lockstep(t, "plants", "automatic-bench")
	bench := write(t, "bench.yaml", strings.Replace(text, "overrun: skip 200", "overrun: skip 1000", 1))
	file := filepath.Join(t.TempDir(), "r.json")
	s := begin(t, nil, "run", bench, "-besteffort", "-scenario", "automatic-day", "-for", "120s", "-report", file)
	code := s.end()
	r := readReport(t, file)
	missed := regexp.MustCompile(`, (\d+) missed`).FindStringSubmatch(r.Unit)
	if r.Scenario == nil || len(r.Scenario.Findings) < 20 || r.Ticks != 24_000 || missed == nil {
		t.Fatalf("code %d, %d ticks, control unit %q", code, r.Ticks, r.Unit)
	}
	stalled := r.Missed > 0 || missed[1] != "0" && missed[1] != "1"
	broken, skipped := 0, 0
	for _, f := range r.Scenario.Findings {
		if f.Skipped {
			skipped++
		}
		if !f.Broken() {
			continue
		}
		broken++
		t.Logf("stalled: %v: %s", stalled, f.String())
		if !stalled {
			t.Errorf("broken: %s", f.String())
		}
	}
	if (code == 0) != (broken == 0) || !stalled && skipped != 4 {
		t.Errorf("code %d, %d expectations broken, %d skipped", code, broken, skipped)
	}
}
