package specialise

import (
	"go/ast"
	"maps"
	"strings"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

func TestErrorsOfTheSpecialiserNameTheirPlace(t *testing.T) {
	data, err := plants.Read("oscillator")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load("oscillator.yaml", data, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSpec(&Plant{Tables: tables})
	if err != nil {
		t.Fatal(err)
	}
	changed := *s.program
	s.program, changed.funcs = &changed, maps.Clone(changed.funcs)

	for _, name := range []string{"Step", "Output", "writePlantOutputs"} { // entries, and a function that one of them calls
		obj, d := s.kernelMethods[name], *s.kernelMethods[name]
		at := d.Body.List[len(d.Body.List)-1]
		body := append([]ast.Stmt{&ast.GoStmt{Go: at.Pos()}}, d.Body.List...)
		d.Body = &ast.BlockStmt{List: body}
		was := changed.kernelMethods
		changed.kernelMethods = maps.Clone(was)
		changed.kernelMethods[name] = &d
		def := s.info.Defs[obj.Name]
		changed.funcs[def] = &d
		err := s.runPasses(nil)
		want := s.fset.Position(at.Pos()).String() + ": *ast.GoStmt is not part of a tick"
		if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), "codegen: kernel/") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		changed.kernelMethods, changed.funcs[def] = was, obj
	}
}
