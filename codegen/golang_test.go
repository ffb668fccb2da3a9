package codegen

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestGenerationIsReproducible(t *testing.T) {
	for _, plant := range []string{"coupled-clutches", "judder"} {
		j := job(t, plant)
		one, _ := generatedGo(t, j)
		if two, _, err := GenerateGo(j); err != nil || !maps.EqualFunc(one, two, bytes.Equal) {
			t.Errorf("%s: the files differ, %v", plant, err)
		}
	}
}

// generatedLine matches the line by which Go's tools recognise a generated file.
var generatedLine = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.\n`)

func TestGeneratedFilesHaveTheMarkerLine(t *testing.T) {
	j := job(t, "two-masses")
	files, report := generatedGo(t, j)
	for name, text := range files {
		if !generatedLine.Match(text) || !bytes.Contains(text[:200], []byte(j.Command)) {
			t.Errorf("%s begins with %q", name, text[:60])
		}
	}
	if text := string(files["kernel.go"]); !strings.Contains(text, `const PlantHash = "`+j.Hash+`"`) {
		t.Error("kernel.go does not have the hash of the plant")
	}
	if report.Code < 1000 || report.Tables < 100 || report.State < 100 || len(report.Lines) == 0 {
		t.Errorf("the report is %+v", report)
	}
}

// The tick subset is the Go that the C translator supports.
func TestTickUsesTheTickSubsetOfGo(t *testing.T) {
	t.Parallel()
	for _, plant := range []string{"coupled-clutches", "random:11", "random:6", "rail17:in parts"} {
		files, _ := generatedGo(t, job(t, plant))
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if name != "kernel.go" {
				checkSubset(t, plant+": "+name, files[name])
			}
		}
	}
}

func checkSubset(t *testing.T, name string, text []byte) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if i.Path.Value != `"math"` && i.Path.Value != `"math/bits"` {
			t.Errorf("%s imports %s", name, i.Path.Value)
		}
	}
	labels := map[string]token.Pos{} // of the present function
	moved := map[ast.Node]bool{}     // the arguments of clear and copy
	ast.Inspect(file, func(n ast.Node) bool {
		bad := false
		switch n := n.(type) {
		case *ast.FuncDecl:
			ast.Inspect(n, func(n ast.Node) bool {
				if l, ok := n.(*ast.LabeledStmt); ok {
					labels[l.Label.Name] = l.Pos()
				}
				return true
			})
			bad = n.Doc == nil || !strings.Contains(n.Doc.List[len(n.Doc.List)-1].Text, "//go:nosplit")
		case *ast.MapType, *ast.ChanType, *ast.InterfaceType, *ast.FuncLit, *ast.DeferStmt, *ast.GoStmt, *ast.TypeAssertExpr:
			bad = true
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "clear" || f.Name == "copy") {
				for _, a := range n.Args {
					moved[a] = true
				}
			}
		case *ast.SliceExpr:
			bad = !moved[n]
		case *ast.GenDecl: // a call would compute the table when the program starts
			ast.Inspect(n, func(n ast.Node) bool {
				_, call := n.(*ast.CallExpr)
				bad = bad || call
				return true
			})
		case *ast.ArrayType:
			bad = n.Len == nil
		case *ast.BranchStmt: // a jump back would be a loop without a bound
			bad = n.Label != nil && (n.Tok != token.GOTO || labels[n.Label.Name] < n.Pos())
		}
		if bad {
			t.Errorf("%s: %T is not part of the tick subset", fset.Position(n.Pos()), n)
		}
		return true
	})
}

func TestCommentsOfGeneratedCodeNameTheElements(t *testing.T) {
	files, _ := generatedGo(t, job(t, "powershift"))
	state, tick := string(files["tick_state.go"]), string(files["tick.go"])
	kernel := string(files["kernel.go"])
	_, elements, _ := strings.Cut(kernel, "var Elements = []string{\n")
	for _, name := range []string{"clutch1", "clutch8"} {
		if !strings.Contains(elements, "\t\""+name+"\",\n") {
			t.Errorf("the variable Elements has no %s", name)
		}
		if !strings.Contains(state, name) || !strings.Contains(tick, "Here i is") || !strings.Contains(tick, name+".") {
			t.Errorf("no comment names %s", name)
		}
	}
}

// Generated Go has the names of all inputs, outputs, states and elements, C those of outputs and
// states. The comment of a function for one signal names it.
func TestGeneratedCodeHasEveryNameOfThePlant(t *testing.T) {
	t.Parallel()
	for _, plant := range []string{"coupled-clutches", "powershift", "judder", "car-abs", "hybrid-spring", "truck"} {
		j := job(t, plant)
		files, _ := generatedGo(t, j)
		names := slices.Concat(j.Tables.Frictions, j.Tables.StateName)
		for _, p := range slices.Concat(j.Tables.Inputs, j.Tables.Outputs) {
			names = append(names, p.Name)
		}
		for i := range j.Tables.Switches {
			names = append(names, j.Tables.Switches[i].Name)
		}
		for _, name := range names {
			if !strings.Contains(string(files["kernel.go"]), `"`+name+`"`) {
				t.Errorf("%s: kernel.go has no %q", plant, name)
			}
		}
		c := string(generatedC(t, j)[j.Package+".c"])
		for _, name := range slices.Concat(j.Tables.StateName, names[len(names)-len(j.Tables.Switches)-len(j.Tables.Outputs):len(names)-len(j.Tables.Switches)]) {
			if !strings.Contains(c, `"`+name+`"`) {
				t.Errorf("%s: the C has no %q", plant, name)
			}
		}
		tick := string(files["tick.go"])
		about := regexp.MustCompile(`(?m)^((?://.*\n)*)func (breakpointAfter|sourceAt)Source\w*\(t `).FindAllStringSubmatch(tick, -1)
		named := regexp.MustCompile(`Here s is of signal \d+, \S+\.\n`)
		for _, m := range about {
			if !named.MatchString(m[1]) {
				t.Errorf("%s: the comment of a function for one signal does not name it: %q", plant, m[1])
			}
		}
		if !named.MatchString(tick) {
			t.Errorf("%s has no comment that names a signal", plant)
		}
	}
}

func TestBadJobsAreRefused(t *testing.T) {
	good := job(t, "two-masses")
	for _, c := range []struct{ name, command, want string }{
		{"", "x", `package name "" cannot be imported`},
		{"Plant", "x", `'P' at position 1 is not allowed`},
		{"2plant", "x", `'2' at position 1 is not allowed`},
		{"a-b", "x", `'-' at position 2 is not allowed`},
		{"func", "x", `package name "func" cannot be imported`},
		{"plant", "x\npackage main", `more than one line`},
	} {
		j := good
		j.Package, j.Command = c.name, c.command
		if _, _, err := GenerateGo(j); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("package %q: %v, want %q", c.name, err, c.want)
		}
	}
	inC := good
	inC.Package = "math"
	if _, _, err := inC.TranslateC(nil, Report{}); err == nil || !strings.Contains(err.Error(), `package name "math" is the name of a C header`) {
		t.Errorf("package math in C: %v", err)
	}
}

func TestHashDiffersBetweenPlantsAndGrids(t *testing.T) {
	hash := func(name string) string { return HashOf(load(t, name).tables) }
	one := hash("coupled-clutches")
	if one != hash("coupled-clutches") {
		t.Error("one plant has two hashes")
	}
	for _, other := range []string{"coupled-clutches:driven", "coupled-clutches:papers", "coupled-clutches:held", "powershift"} {
		if one == hash(other) {
			t.Errorf("%s has the hash of coupled-clutches", other)
		}
	}
}
