package scenario

import (
	"strings"
	"testing"

	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// An accepted fault is one that the loop takes, and its words name it again.
func FuzzFaultNames(f *testing.F) {
	b, err := bench.Load(faultBenchFile(f))
	if err != nil {
		f.Fatal(err)
	}
	base, err := bench.Prepare(b)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range EveryFault(base, 0) {
		target, kind, _ := strings.Cut(text, ", ")
		key, name, _ := strings.Cut(target, ": ")
		f.Add(key, strings.Trim(name, `"`), strings.Replace(kind, ": ", "=", 1), "at=tick 3")
	}
	for _, s := range [][3]string{
		{"frame", "TCU_Pressure_1", "checksum={offset: 0}"}, {"frame", "TCU_Pressure_1 on drive", "length=64"}, {"frame", "TCU_Pressure_2", "freeze_counter"},
		{"signal", "TCU_Pressure_1.counter_P1", "stuck=1"}, {"signal", "TCU_Pressure_1.pressure_C1 on", "open"}, {"signal", ".", "hold"}, {"frame", "on drive", "burst=65"},
	} {
		f.Add(s[0], s[1], s[2], "for=3 frames")
	}
	f.Fuzz(func(t *testing.T, key, name, kind, more string) {
		h := base.Clone()
		spec, err := parseFault([]string{key + "=" + name, kind, more})
		var got fault.Fault
		if err == nil {
			got, err = resolved(h, spec)
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
			return
		}
		if err := h.CheckFaults([]fault.Command{{Fault: got}}); err != nil {
			t.Errorf("the loop refuses %s: %v", spec, err)
		}
		words, err := SplitWords(spec.String())
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		again, err := parseFault(words)
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		if same, err := resolved(h, again); err != nil || same != got {
			t.Errorf("%s: %+v (%v), want %+v", spec, same, err, got)
		}
	})
}
