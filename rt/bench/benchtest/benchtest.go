// Package benchtest owns the bench files that tests of several packages run: the embedded demo
// bench with changes. It knows text alone, not what a bench file means. It is a separate
// package that imports nothing of rt, so that tests of rt/bench can import it, too.
package benchtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/model/plants"
)

// DemoText returns the embedded demo bench; replace holds pairs of an old and a new text.
func DemoText(t testing.TB, replace ...string) string {
	t.Helper()
	data, err := plants.Read("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("the demo bench has no %q to replace", replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}

	return text
}

// DemoFile writes the demo bench, changed as by DemoText, and returns its name.
func DemoFile(t testing.TB, replace ...string) string {
	t.Helper()
	return filepath.Join(folder(t, "bench.yaml", DemoText(t, replace...)), "bench.yaml")
}

// folder makes a folder with files, each a name and a text, and returns its name.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Place returns line and column of a part of a text, both from 1.
func Place(t testing.TB, text, piece string) (line, col int) {
	t.Helper()
	i := strings.Index(text, piece)
	if i < 0 {
		t.Fatalf("%q is not in the file", piece)
	}
	return 1 + strings.Count(text[:i], "\n"), i - strings.LastIndex(text[:i], "\n")
}

// GuardedText returns the demo bench with protected frames in both directions and a restbus.
func GuardedText(t testing.TB) string {
	t.Helper()
	text := DemoText(t, "Torque: {cycle: 10 ms, counter: counter_T}",
		"Torque: {cycle: 10 ms, protect: {profile: e2e-2, data_ids: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], counter: counter_T, checksum: 56|8}}")
	text = strings.Replace(text, "database: powershift.dbc", "database: guarded.dbc\n    bitrate: 250 kbit/s", 1)
	return text + `    messages:
      TCU_Pressure_1:
        cycle: 10 ms
        timeout: 40 ms
        dlc: 8
        protect: [{profile: crc8, poly: 0x1D, init: 0xFF, xor_out: 0xFF, counter: counter_P1, checksum: "56|8"}]
        on_timeout: {substitute: {clutch1.pressure: 3 bar}}
        on_error: safe
        invalid: {pressure_C4: [0xFFF, 4000-4094]}
    restbus:
      Motor: {values: {speed: {table: [[0 s, 100], [0.1 s, 200]], period: 0.1 s}, torque: {sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}, mode: running}}
      Klemmen: {send: on_change, min_gap: 10 ms, values: {key: {table: [[0, 0], [0.05, 0], [0.05, 1]]}}}
      Slow: {cycle: 20 ms}
`
}

// GuardedDatabase returns the database of GuardedText.
func GuardedDatabase(t testing.TB) string {
	t.Helper()
	data, err := plants.Read("powershift.dbc")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(data), "CM_ \"The", `BO_ 1024 Motor: 8 Motor
 SG_ speed : 0|16@1+ (1,0) [0|8000] "rpm" TCU
 SG_ torque : 16|16@1- (0.1,0) [0|0] "N.m" TCU
 SG_ mode : 32|4@1+ (1,0) [0|15] "" TCU

BO_ 1025 Klemmen: 1 Motor
 SG_ key : 0|1@1+ (1,0) [0|1] "" TCU
 SG_ level : 1|7@1+ (1,-40) [0|0] "" TCU

BO_ 1026 Slow: 2 Motor

CM_ "The`, 1) + "VAL_ 1024 mode 0 \"off\" 3 \"running\" ;\nBA_ \"GenMsgCycleTime\" BO_ 1024 10;\n"
}

// OpenFile writes a demo bench called "open bench" and returns its name. No bus drives two of its
// pressures, and no port drives its signal lag.
func OpenFile(t testing.TB) string {
	return DemoFile(t, "bench: powershift-bench", "bench: open bench",
		"      - TCU_Pressure_2.pressure_C7 -> clutch7.pressure\n", "",
		"      - TCU_Pressure_2.pressure_C8 -> clutch8.pressure\n", "",
		"      - lag -> Status.lag\n", "",
		"phase: 5 ms, counter: counter_A}", "phase: 5 ms, counter: counter_A, values: {lag: 0}}")
}

// GuardedFolder makes a folder with the database of GuardedText and returns its name.
func GuardedFolder(t testing.TB) string {
	t.Helper()
	return folder(t, "guarded.dbc", GuardedDatabase(t))
}

// FaultFolder makes a folder with the bench b.yaml and its database, and returns its name. The bench
// is that of GuardedText without the link that drives clutch 8.
func FaultFolder(t testing.TB) string {
	t.Helper()
	text := strings.Replace(GuardedText(t), "      - TCU_Pressure_2.pressure_C8 -> clutch8.pressure\n", "", 1)
	return folder(t, "guarded.dbc", GuardedDatabase(t), "b.yaml", text)
}
