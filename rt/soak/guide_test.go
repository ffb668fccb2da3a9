package soak

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/deploy/load"
	"lockstep/rt/guide"
	"lockstep/rt/guide/guidetest"
	"lockstep/rt/report"
)

var soakGuide = guide.Guide{Name: "soak", Source: Guide}

// same compares two lists in any order.
func same(t *testing.T, what string, told, is []string) {
	t.Helper()
	told, is = slices.Sorted(slices.Values(told)), slices.Sorted(slices.Values(is))
	if is = slices.Compact(is); !slices.Equal(told, is) {
		t.Errorf("%s: the guide has %q, there are %q", what, told, is)
	}
}

// criteria returns the names of all criteria in the source of this package.
func criteria(t *testing.T) (list []string) {
	t.Helper()
	add := func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.BasicLit:
			name, err := strconv.Unquote(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, name)
		case *ast.BinaryExpr: // of both processes
			name, err := strconv.Unquote(e.Y.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, "supervisor"+name, "target"+name)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "AddCriterion" {
					add(n.Args[1])
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "What" {
					add(n.Value)
				}
			}
			return true
		})
	}
	return list
}

// keys returns the JSON keys of a struct.
func keys(v any) (list []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			list = append(list, name)
		}
	}
	return list
}

func TestGuideListsCriteriaLoadsKeysAndLimits(t *testing.T) {
	same(t, "criteria", guidetest.FirstColumn(t, soakGuide, "verdict-of-a-soak", 0), criteria(t))
	same(t, "load", guidetest.FirstColumn(t, soakGuide, "load-of-a-soak", 0), load.Kinds())
	same(t, "keys of the verdict", guidetest.FirstColumn(t, soakGuide, "report-of-a-soak", 0), keys(report.Verdict{}))
	s, _ := soakGuide.Section("report-of-a-soak")
	for _, list := range [][]string{keys(report.SegmentKind{}), keys(report.Criterion{}), keys(report.Binary{})} {
		for _, key := range list {
			if !strings.Contains(string(s.Source), "`"+key+"`") {
				t.Errorf("the guide has no key %s", key)
			}
		}
	}

	text := strings.Join(strings.Fields(string(Guide)), " ")
	for _, want := range []string{"at least 10s", "at most 4096 kB", "at most 4 more", "at most 64 kB", "every 10 s", "for 5 minutes", "the 32 worst ticks"} {
		if !strings.Contains(text, want) {
			t.Errorf("the guide does not say %q", want)
		}
	}
	if MinDuration.Seconds() != 10 || saveInterval.Seconds() != 10 || maxOutage.Minutes() != 5 || maxWorstTicks != 32 ||
		supervisorGrowth != (footprint{KB: 4096, Threads: 4}) || targetGrowth != (footprint{KB: 64}) {
		t.Error("the limits are not those of the guide")
	}
}

// The guide lists the flags of the command. Its first soak runs as one segment without the load; a
// shared machine may miss ticks and break the segment, but not the keys of the report.
func TestGuideSoakRuns(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "lockstep")
	run := func(name string, words ...string) string {
		t.Helper()
		out, err := exec.Command(name, words...).CombinedOutput()
		if exit := (&exec.ExitError{}); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1 && slices.Contains(words, "-for")) {
			t.Fatalf("%s %q: %v\n%s", name, words, err, out)
		}
		return string(out)
	}
	run("go", "build", "-o", program, "lockstep/rt/cmd/lockstep")

	var is, told []string
	for _, m := range regexp.MustCompile(`(?m)^  (-\w+)`).FindAllStringSubmatch(run(program, "soak", "-h"), -1) {
		is = append(is, m[1])
	}
	for _, name := range guidetest.FirstColumn(t, soakGuide, "flags-of-soak", 0) {
		name, _, _ = strings.Cut(name, " ")
		told = append(told, name)
	}
	same(t, "flags", told, is)

	t.Chdir(dir)
	blocks := soakGuide.Blocks()
	words := strings.Fields(blocks[slices.IndexFunc(blocks, func(b guide.Block) bool { return b.Language == "sh" })].Text)
	out := run(program, append(words[1:], "-for", "10s", "-leg", "10s", "-load=false")...)
	data, err := os.ReadFile("soak.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ Soak map[string]any }
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	same(t, "keys of the report", guidetest.FirstColumn(t, soakGuide, "report-of-a-soak", 0), slices.Collect(maps.Keys(v.Soak)))
	told = guidetest.FirstColumn(t, soakGuide, "verdict-of-a-soak", 0)
	for _, d := range v.Soak["demands"].([]any) {
		if what := d.(map[string]any)["what"].(string); !slices.Contains(told, what) {
			t.Errorf("the guide does not have the criterion %q", what)
		}
	}
	if n := v.Soak["legs"]; n != 1. || !strings.Contains(out, "\nleg 1, plain: ") {
		t.Errorf("%v legs\n%s", n, out)
	}
}
