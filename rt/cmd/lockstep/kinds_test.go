package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// filesOfEveryKind writes a file of every kind, by kind, with an extension that does not tell it.
func filesOfEveryKind(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	made := func(name string) string { return filepath.Join(dir, name) }
	for _, line := range []string{
		"sim powershift-bench -for 100ms -record " + made("r") + " -report " + made("report.out"),
		"export " + made("r") + " -format candump -o " + made("candump.out"),
		"export " + made("r") + " -format asc -o " + made("asc.out"),
		"export " + made("r") + " -format blf -o " + made("blf.out"),
		"export " + made("r") + " -format mdf4 -o " + made("mdf.out"),
		"sim two-masses -for 1s -out " + made("inputs.out"),
	} {
		if out, errors, code := lockstep(t, strings.Fields(line)...); code != 0 {
			t.Fatalf("lockstep %s: code %d, %s%s", line, code, out, errors)
		}
	}
	files := map[string]string{
		"record": made("r"), "report": made("report.out"), "log": made("candump.out"), "log in ASC": made("asc.out"),
		"BLF": made("blf.out"), "MDF": made("mdf.out"), "inputs": made("inputs.out"), "executable": program,
	}
	for kind, name := range map[string]string{
		"plant": "powershift", "bench": "powershift-bench", "scenario": "powershift-clutch-sticks",
		"database": "powershift.dbc", "inputs of a spreadsheet": "automatic4-reverse",
	} {
		text, _, code := lockstep(t, "plants", name)
		if code != 0 {
			t.Fatalf("plants %s: code %d", name, code)
		}
		files[kind] = write(t, kind+".out", text)
	}
	for kind, text := range map[string]string{
		"sweep":              "# with keys of others\nplant: powershift\nscenario: x\nsweep: s\nparameters: {}\nresults: {}\n",
		"sweep of a bench":   "bench: powershift-bench\nsweep: s\n",
		"bench without name": "plant: powershift\nperiod: 5 ms\nbuses: {}\n",
		"certificate":        `{"lockstep_certificate": 1}`,
		"state":              `{"lockstep_soak": 3, "sha256": "", "state": {}}`,
		"JSON":               "[\n {\"a\": 1}]",
		"ARXML":              `<?xml version="1.0"?><AUTOSAR xmlns="http://autosar.org/schema/r4.0"/>`,
		"XML":                "\ufeff<?xml version='1.0'?>\n<fmiModelDescription/>",
		"HTML":               "<!DOCTYPE html>\n<html></html>",
		"table":              "PAR1\x15\x04",
		"archive":            "PK\x03\x04\x14",
		"gzip":               "\x1f\x8b\x08\x00",
		"UTF-16":             "\xff\xfeb\x00e\x00n\x00c\x00h\x00",
		"binary":             "a\x00b",
		"empty":              " \n",
		"text":               "This is a letter.\nIt has two lines.\n",
		"large binary":       strings.Repeat("\x00", 17<<20),
	} {
		files[kind] = write(t, kind, text)
	}
	return files
}

// Every command and every flag that takes a file says what a file of a wrong kind is, in one line and
// with code 2.
func TestAFileOfTheWrongKindIsNamedByEveryCommand(t *testing.T) {
	t.Parallel()
	files, dir := filesOfEveryKind(t), t.TempDir()
	benchWith := func(old, new string) string { // a bench that names the file at FILE
		return strings.Replace(patientBenchText(t), old, new, 1)
	}
	plantOf, databaseOf := benchWith("plant: powershift", "plant: FILE"), benchWith("database: powershift.dbc", "database: FILE")
	const sweep = "sweep: s\nparameters: {tau: {from: 1, to: 2, steps: 2}}\nresults: {r: {final: w1}}\n"
	for _, c := range []struct {
		line string // command line; $FILE is the file of the wrong kind, $TEXT a file with text
		text string // text with the name of the file of the wrong kind as FILE
		want string // kinds that are accepted
	}{
		{"run $FILE", "", "bench"},
		{"soak $FILE -for 10s", "", "bench"},
		{"certify $FILE -o $DIR/c.html", "", "bench"},
		{"sim $FILE", "", "plant bench"},
		{"gen $FILE -o $DIR/gen", "", "plant"},
		{"gen -bench $FILE -o $DIR/gen", "", "bench"},
		{"gen $FILE -bench powershift-bench -o $DIR/gen", "", "plant"},
		{"check $FILE", "", "plant bench database diagnosis"},
		{"sweep $FILE", "", "sweep"},
		{"replay $FILE", "", "record"},
		{"export $FILE -o $DIR/x.csv", "", "record"},
		{"sim automatic4 -in $FILE", "", "inputs"},
		{"sim powershift -scenario $FILE", "", "scenario"},
		{"sim powershift-bench -scenario $FILE", "", "scenario"},
		{"run powershift-bench -scenario $FILE", "", "scenario"},
		{"check powershift -scenario $FILE", "", "scenario"},
		{"soak powershift-bench -for 10s -scenarios $FILE", "", "scenario"},
		// A damaged state is reported as such.
		{"soak powershift-bench -for 10s -state $FILE", "", "state empty text JSON binary large"},
		{"soak powershift-bench -for 10s -fresh -state $FILE", "", "state empty text JSON binary large"},
		{"certify -compare $FILE -o $DIR/c.html", "", "certificate"},
		{"run powershift-bench -kernel $FILE", "", "executable"},
		{"run powershift-bench -bus file:$FILE", "", "log BLF MDF record text"}, // of a text the reader says what it misses
		{"ctl $FILE status", "", "bench"},
		{"stop $FILE", "", "bench"},
		{"attach $FILE", "", "bench"},
		{"run $TEXT", plantOf, "plant"},
		{"check $TEXT", plantOf, "plant"},
		{"check $TEXT", databaseOf, "database"},
		{"sim $TEXT", databaseOf, "database"},
		{"gen -bench $TEXT -o $DIR/gen", databaseOf, "database"},
		{"sweep $TEXT", "plant: FILE\n" + sweep, "plant bench"},
		{"sweep $TEXT", "bench: FILE\n" + sweep, "plant bench"},
		{"sweep $TEXT", "plant: powershift\nscenario: FILE\n" + sweep, "scenario"},
	} {
		for _, kind := range slices.Sorted(maps.Keys(files)) {
			if slices.Contains(strings.Fields(c.want), strings.Fields(kind)[0]) {
				continue
			}
			words := strings.Fields(c.line)
			for i, w := range words {
				if w == "$TEXT" {
					words[i] = write(t, "text.yaml", strings.Replace(c.text, "FILE", files[kind], 1))
				}
				words[i] = strings.NewReplacer("$FILE", files[kind], "$DIR", dir).Replace(words[i])
			}
			err := failure(words...)
			var wrong *bench.KindError
			var exit *host.Exit
			switch {
			case !errors.As(err, &wrong):
				t.Errorf("%s with %s: %v", c.line, kind, err)
			case strings.Contains(err.Error(), "\n") || errors.As(err, &exit) && exit.Code != 2:
				t.Errorf("%s with %s: more than a line, or not code 2: %v", c.line, kind, err)
			case strings.HasPrefix(wrong.Kind, strings.Fields(kind)[0]) || kind == "text" && wrong.Kind == "" || kind == "large binary":
			default:
				t.Errorf("%s with %s: the kind is %q: %v", c.line, kind, wrong.Kind, err)
			}
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func patientBenchText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(patientBench(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A name without its extension, and a file of the wrong kind, get a line that says what to do.
func TestAWrongFileGetsTheCommandThatTakesIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": patientBenchText(t), "b.dbc": "BU_: A\n", "p.yaml": "plant: p\nelements: {}\n", "s.yaml": "sweep: s\nbench: b.yaml\n",
		"r.rec": "lockrec1", "l.log.gz": "\x1f\x8b\x08\x00", "d.arxml": "<?xml version='1.0'?><AUTOSAR/>", "in.csv": "time[s],a[bar]\n",
		"uses.yaml": strings.Replace(patientBenchText(t), "plant: powershift ", "plant: p ", 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for line, want := range map[string]string{
		"run b":                 "bench: no file b (did you mean b.yaml?)",
		"check b":               "bench: no file b (did you mean b.yaml?)",
		"replay r":              "replay: no file r (did you mean r.rec?)",
		"sim automatic4 -in in": "sim -in: no file in (did you mean in.csv?)",
		"run p.yaml":            "bench: p.yaml is a plant (lockstep sim p.yaml); expected a bench (bench: NAME)",
		"run b.dbc":             "bench: b.dbc is a database (lockstep check b.dbc; database: b.dbc in a bench); expected a bench (bench: NAME)",
		"run r.rec":             "bench: r.rec is a record (lockstep replay r.rec, lockstep export r.rec -o FILE); expected a bench (bench: NAME)",
		"sim s.yaml":            "sim: s.yaml is a sweep (lockstep sweep s.yaml); expected a plant (plant: NAME) or a bench (bench: NAME)",
		"check d.arxml": "check: d.arxml is an AUTOSAR description (ARXML), which no command reads: convert it to a database (DBC); " +
			"expected a plant (plant: NAME), a bench (bench: NAME), a database (DBC) or a diagnosis file (uds: {request: 0x7E1, response: 0x7E9})",
		"run b.yaml -bus drive=file:l.log.gz": "bus drive: interface file:l.log.gz: l.log.gz is packed by gzip: unpack it with gunzip l.log.gz; " +
			"expected a log of CAN frames (candump, ASC, TRC, CSV of python-can), BLF, MDF4 or a record (run -record)",
		"sweep b.yaml":                   "sweep: b.yaml is a bench (lockstep run b.yaml, lockstep gen -bench b.yaml); expected a sweep (sweep: NAME)",
		"sweep -merge b.yaml -o out.csv": "sweep: -merge b.yaml is a file; name the folder of the shards",
		"check uses.yaml":                "uses.yaml:10:8: bench: no file p (did you mean p.yaml?)",
	} {
		if err := failure(strings.Fields(line)...); err == nil || err.Error() != want {
			t.Errorf("lockstep %s: %v\nwant %s", line, err, want)
		}
	}
}
