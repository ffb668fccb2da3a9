package c99_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/model/kernel"
)

// handwritten lists the plants with a handwritten C kernel in testdata/hand.
var handwritten = []string{"coupled_clutches", "hybrid", "powershift"}

// byHand returns the handwritten C of a plant, with its prefix. The text of testdata/hand gets the
// sizes of the plant and, before it, the matrices of each lock set as constants.
func byHand(t testing.TB, s *subject) (name string, list files) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "hand", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	name = "hand_" + s.name
	tab, code := s.tables, read("hand.c")+read(s.name+".c")
	put := strings.NewReplacer("PLANT", name, "UPPER_INPUTS", strings.ToUpper(name)+"_INPUTS", "UPPER_OUTPUTS", strings.ToUpper(name)+"_OUTPUTS", "DEGREE", strconv.Itoa(tab.Degree),
		"PERIOD", fmt.Sprint(float64(tab.PeriodNs)*1e-9), "TORQUE_STATES", strconv.Itoa(s.torqueStates()),
		"STATES", strconv.Itoa(tab.N), "WIDTH", strconv.Itoa(len(s.acting())), "CLUTCHES", strconv.Itoa(tab.Mc),
		"INPUTS", strconv.Itoa(len(tab.Inputs)), "OUTPUTS", strconv.Itoa(len(tab.Outputs)))
	return name, files{
		name + ".h": []byte(put.Replace(read("hand.h"))),
		name + ".c": []byte(put.Replace("#include \"PLANT.h\"\n\n#include <math.h>\n#include <string.h>\n\n") +
			s.handTables(code) + put.Replace(code)),
	}
}

// acting returns the entries of w that follow an input and act on the state directly, then those of
// the friction torques.
func (s *subject) acting() (list []int) {
	tab := s.tables
	mw := tab.M + tab.Mc
	for j := range mw {
		acts := j >= tab.M
		for i := 0; i < tab.N && j < tab.M && tab.Signals[j].Input >= 0; i++ {
			acts = acts || tab.Open.B[i*mw+j] != 0
		}
		if acts {
			list = append(list, j)
		}
	}
	return list
}

// torqueStates returns the number of states on which a lock torque can depend: all or none.
func (s *subject) torqueStates() int {
	for _, m := range s.tables.Modes {
		if slices.ContainsFunc(m.T, func(v float64) bool { return v != 0 }) {
			return s.tables.N
		}
	}
	return 0
}

// handTables returns the constant tables that the code of a handwritten kernel reads: phi, g, a, b and p column by
// column, t and u row by row, and the constant signals folded into gc, bc and uc.
func (s *subject) handTables(code string) string {
	tab, columns := s.tables, s.acting()
	n, mc, mw, width := tab.N, tab.Mc, tab.M+tab.Mc, len(columns)
	var b strings.Builder
	table := func(name string, outer, inner int, at func(m *kernel.Mode, i, j int) float64) {
		if !strings.Contains(code, name+"[k->set]") && !strings.Contains(code, name+"[set]") {
			return
		}
		fmt.Fprintf(&b, "static const double %s[%d][%d][%d] = {\n", name, len(tab.Modes), outer, inner)
		for q := range tab.Modes {
			b.WriteByte('{')
			for i := range outer {
				b.WriteByte('{')
				for j := range inner {
					fmt.Fprintf(&b, "%.17g,", at(&tab.Modes[q], i, j))
				}
				b.WriteString("},")
			}
			b.WriteString("},\n")
		}
		b.WriteString("};\n")
	}
	folded := func(a []float64, i int) (sum float64) {
		for j, sig := range tab.Signals {
			if sig.Input < 0 {
				sum += a[i*mw+j] * kernel.SourceAt(&sig.Source, 0)
			}
		}
		return sum
	}
	table("phi", n, n, func(m *kernel.Mode, i, j int) float64 { return m.Phi[j*n+i] })
	table("g", width, n, func(m *kernel.Mode, i, j int) float64 { return m.G0[j*mw+columns[i]] })
	table("a", n, n, func(m *kernel.Mode, i, j int) float64 { return m.A[j*n+i] })
	table("b", width, n, func(m *kernel.Mode, i, j int) float64 { return m.B[j*mw+columns[i]] })
	table("p", n, n, func(m *kernel.Mode, i, j int) float64 { return m.P[j*n+i] })
	table("t", mc, n, func(m *kernel.Mode, i, j int) float64 { return m.T[i*n+j] })
	table("u", mc, width, func(m *kernel.Mode, i, j int) float64 { return m.U[i*mw+columns[j]] })
	table("gc", 1, n, func(m *kernel.Mode, _, j int) float64 { return folded(m.G0, j) })
	table("bc", 1, n, func(m *kernel.Mode, _, j int) float64 { return folded(m.B, j) })
	table("uc", 1, mc, func(m *kernel.Mode, _, j int) float64 { return folded(m.U, j) })

	list := func(kind, name string, count int, at func(i int) any) {
		fmt.Fprintf(&b, "static const %s %s[%d] = {", kind, name, count)
		for i := range count {
			fmt.Fprintf(&b, "%v, ", at(i))
		}
		b.WriteString("};\n")
	}
	list("double", "x0", n, func(i int) any { return tab.X0[i] })
	list("double", "in0", len(tab.Inputs), func(i int) any { return tab.Start[i] })
	list("double", "gain", mc, func(i int) any { return tab.Friction[i].Gain })
	list("double", "offset", mc, func(i int) any { return tab.Friction[i].Offset })
	list("double", "peak", mc, func(i int) any { return tab.Friction[i].Peak })
	list("int", "press_input", mc, func(i int) any { return tab.Signals[tab.Friction[i].Signal].Input })
	list("int", "act_input", width-mc+1, func(i int) any { return tab.Signals[min(columns[i], tab.M-1)].Input })
	return b.String()
}
