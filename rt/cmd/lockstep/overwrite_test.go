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
)

// inputFlags are the flags whose value is a file that the command reads.
var inputFlags = []string{
	"run -kernel", "run -cycle", "run -scenario", "sim -cycle", "sim -in", "sim -scenario", "soak -kernel", "certify -kernel", "sweep -merge",
	"check -scenario", "doctor -root", "run -bus", "soak -scenarios",
}

// overwrites holds, for each flag that names a result, a command line with the name of a file as $FILE,
// and the kinds of files that the result may replace.
var overwrites = map[string]struct{ line, kinds string }{
	"run -report":     {"run -for 100ms -report $FILE", "report JSON"},
	"run -record":     {"run -for 100ms -record $FILE", "record"},
	"run -junit":      {"run -scenario powershift-clutch-sticks -junit $FILE", "XML"},
	"attach -report":  {"attach -report $FILE", "report JSON"},
	"sim -record":     {"sim powershift-bench -for 100ms -record $FILE", "record"},
	"sim -report":     {"sim powershift-bench -for 100ms -report $FILE", "report JSON"},
	"sim -junit":      {"sim powershift-bench -scenario powershift-clutch-sticks -junit $FILE", "XML"},
	"sim -out":        {"sim two-masses -for 100ms -out $FILE", "inputs"},
	"sim -events":     {"sim two-masses -for 100ms -events $FILE", "inputs"},
	"replay -out":     {"replay $RECORD -out $FILE", "inputs"},
	"export -o":       {"export $RECORD -format candump -o $FILE", "log"},
	"plot -o":         {"plot $RECORD -o $FILE.svg", "XML"},
	"diff -o":         {"diff $RECORD $RECORD -o $FILE.svg", "XML"},
	"diff -junit":     {"diff $RECORD $RECORD -junit $FILE", "XML"},
	"sweep -o":        {"sweep -merge $SHARDS -o $FILE.parquet", "table"},
	"gen -o":          {"gen two-masses -o $FILE", ""},
	"latency -report": {"latency -for 500ms -load=false -report $FILE", "JSON"},
	"latency -svg":    {"latency -for 500ms -load=false -svg $FILE", "XML"},
	"soak -report":    {"soak powershift-bench -for 10s -load=false -report $FILE", "report JSON"},
	"soak -record":    {"soak powershift-bench -for 10s -load=false -record $FILE", ""},
	"soak -state":     {"soak powershift-bench -for 10s -load=false -state $FILE", "state JSON text"},
	"certify -o":      {"certify -for 10s -load=false -o $FILE.html", "HTML"},
	"doctor -state":   {"", ""}, // -fix changes this host; see the tests of the undo file
}

func TestEveryFlagThatNamesAResultHasARow(t *testing.T) {
	for _, c := range commands() {
		a := c.args()
		for _, o := range a.options {
			flag := c.name + " -" + o.Name
			isFile := strings.Contains(o.Value, "FILE") || strings.Contains(o.Value, "DIR")
			_, known := overwrites[flag]
			if known == slices.Contains(inputFlags, flag) && (known || isFile) || slices.Contains(a.outputs, o.Name) && !known {
				t.Errorf("%s %s: it needs a row in overwrites, or in inputFlags", flag, o.Value)
			}
		}
	}
}

// shardsOf makes a folder with the shard of a small sweep and returns it and the name of the shard.
func shardsOf(t *testing.T) (dir, shard string) {
	t.Helper()
	dir = t.TempDir()
	const text = "sweep: s\nplant: two-masses\nfor: 100 ms\nparameters: {force.one: [1 N, 2 N]}\nresults: {r: {final: x1}}\n"
	if out, errors, code := lockstep(t, "sweep", write(t, "s.yaml", text), "-o", dir); code != 0 {
		t.Fatal(out, errors)
	}
	list, _ := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if len(list) != 1 {
		t.Fatal(list)
	}
	return dir, list[0]
}

func TestNoResultReplacesAFileOfAnotherKind(t *testing.T) {
	t.Parallel()
	files := filesOfEveryKind(t)
	shards, _ := shardsOf(t)
	for _, flag := range slices.Sorted(maps.Keys(overwrites)) {
		row := overwrites[flag]
		for _, kind := range []string{"plant", "bench", "scenario", "sweep", "database", "inputs", "log", "record", "report", "text"} {
			if row.line == "" || slices.Contains(strings.Fields(row.kinds), kind) {
				continue
			}
			before, err := os.ReadFile(files[kind])
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"", ".part"} {
				if part != "" && (kind != "plant" || slices.Contains([]string{"gen -o", "soak -record", "soak -state", "sweep -o"}, flag)) {
					continue // a folder, or a file with a lock or draft of its own
				}
				name := filepath.Join(t.TempDir(), "file")
				line := strings.NewReplacer("$FILE", name, "$RECORD", files["record"], "$SHARDS", shards).Replace(row.line)
				victim := strings.Fields(line[strings.Index(line, name):])[0] + part
				if err := os.WriteFile(victim, before, 0o644); err != nil {
					t.Fatal(err)
				}
				out, errs, code := lockstep(t, strings.Fields(line)...)
				after, _ := os.ReadFile(victim)
				if string(after) != string(before) || code != 2 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, name) {
					t.Errorf("%s over a file of kind %s: code %d, want 2, unchanged %t\n%s%s", line, kind, code, string(after) == string(before), out, errs)
				}
			}
		}
	}
}

// The name of the result is a link to the file, symbolic and hard.
func TestNoResultReplacesAFileThatTheCommandReads(t *testing.T) {
	t.Parallel()
	files := filesOfEveryKind(t)
	shards, shard := shardsOf(t)
	in := write(t, "in.csv", "time[s],force.one[N]\n0,18\n")
	for _, c := range []struct{ read, line string }{
		{files["record"], "run -for 100ms -bus file:$READ -record $FILE"},
		{files["record"], "export $READ -format csv -o $FILE"},
		{in, "sim two-masses -for 100ms -in $READ -out $FILE"},
		{in, "sim two-masses -for 100ms -in $READ -events $FILE"},
		{shard, "sweep -merge " + shards + " -o $FILE"},
	} {
		before, err := os.ReadFile(c.read)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range []func(old, new string) error{os.Symlink, os.Link} {
			name := filepath.Join(t.TempDir(), "link"+filepath.Ext(c.read))
			if err := link(c.read, name); err != nil {
				t.Fatal(err)
			}
			line := strings.NewReplacer("$READ", c.read, "$FILE", name).Replace(c.line)
			_, errs, code := lockstep(t, strings.Fields(line)...)
			after, _ := os.ReadFile(c.read)
			same, _ := os.ReadFile(name)
			if code != 2 || strings.Count(errs, "\n") != 1 || !has(errs, name, "this command reads") ||
				string(after) != string(before) || string(same) != string(before) {
				t.Errorf("%s: code %d, want 2; unchanged %t\n%s", line, code, string(after) == string(before), errs)
			}
		}
	}
}

// An empty file, and one of zeros as a loss of power leaves it, are no obstacle either.
func TestAResultReplacesAnOlderResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	lines := []string{
		"sim powershift-bench -scenario powershift-clutch-sticks -record " + at("r") + " -report " + at("b") + " -junit " + at("j"),
		"sim powershift -for 100ms -report " + at("p") + " -out " + at("o") + " -events " + at("e"),
		"run -for 100ms -record " + at("rr") + " -report " + at("rb"),
		"latency -for 500ms -load=false -report " + at("l") + " -svg " + at("s"),
		"replay " + at("r") + " -out " + at("ro"),
	}
	for _, format := range []string{"candump", "asc", "blf", "mdf4", "csv"} {
		lines = append(lines, "export "+at("r")+" -format "+format+" -o "+at(format))
	}
	for _, blank := range []string{"", strings.Repeat("\x00", 1<<17)} {
		for _, name := range []string{"r", "b", "o"} {
			if err := os.WriteFile(at(name), []byte(blank), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			for _, line := range lines {
				if out, errs, code := lockstep(t, strings.Fields(line)...); code == 2 || strings.Contains(errs, "a result replaces") {
					t.Errorf("%s: code %d\n%s%s", line, code, out, errs)
				}
			}
		}
	}
}

func TestResultErrorSaysWhatTheFileIs(t *testing.T) {
	err := failure("sim", "powershift", "-for", "100ms", "-report", write(t, "b.yaml", patientBenchText(t)))
	var refused *bench.ResultError
	if !errors.As(err, &refused) || refused.Kind != "bench" || refused.Read || !has(err.Error(), "b.yaml is a bench;", "name another file") {
		t.Error(err)
	}
}

func TestSameFileFollowsLinksAndPaths(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a"), filepath.Join(dir, "l")
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{file, link, true}, {file, dir + "/./a", true}, {dir + "/new", dir + "/./new", true}, {dir + "/new", dir + "/other", false},
		{"-", "-", true}, {"-", file, false}, {"/dev/null", "/dev/null", false},
	} {
		if got := isSameFile(c.a, c.b); got != c.want {
			t.Errorf("same(%q, %q) = %v", c.a, c.b, got)
		}
	}
}
