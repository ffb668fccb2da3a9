package check

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/network"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// checkedPlant is a plant under check.
type checkedPlant struct {
	file    string
	plant   *network.Plant
	layout  *assemble.Layout
	start   []assemble.StartValue
	sys     *model.System
	tables  *kernel.Tables
	tunable []string // tunable parameters, with range and value
	presets []string // start presets, with range or choices
	budget  int64    // budget of a tick, ns; 0: half of the period
}

func newCheckedPlant(file string, plant *network.Plant, opt kernel.Options) (*checkedPlant, error) {
	p := &checkedPlant{file: file}
	err := p.assemble(plant)
	if err != nil {
		return nil, err
	}
	if p.tables, err = kernel.Prepare(p.sys, opt); err != nil {
		return nil, bench.WithFile(file, err)
	}
	return p, nil
}

// newCheckedBench returns the plant of a bench with the tables of its hand-over.
func newCheckedBench(h *bench.Handover) (*checkedPlant, error) {
	draft, err := h.Bench.ParsePlant()
	if err != nil {
		return nil, err
	}
	plant, err := draft.Load()
	if err != nil {
		return nil, err
	}
	p := &checkedPlant{file: h.Bench.File, tables: h.Tables, budget: h.Bench.BudgetNs}
	return p, p.assemble(plant)
}

func (p *checkedPlant) assemble(plant *network.Plant) (err error) {
	for _, q := range plant.Parameters {
		if q.Tunable {
			p.tunable = append(p.tunable, portText(q.Port)+", now "+q.DeclaredUnit().Format(q.Value))
		}
	}
	for _, q := range plant.Presets {
		text := q.Name + " " + strings.Join(q.Choices, "|")
		if q.Choices == nil {
			text = portText(q.Port)
		}
		p.presets = append(p.presets, text)
	}
	p.plant = plant
	if p.sys, err = assemble.System(plant); err != nil {
		return err
	}
	if p.layout, err = assemble.LayoutOf(plant); err != nil {
		return err
	}
	p.start, err = assemble.StartOf(plant)
	return err
}

func (p *checkedPlant) period() time.Duration { return time.Duration(p.tables.PeriodNs) }

// plant writes the description of a plant on a grid.
func (c *Check) plant(p *checkedPlant) error {
	w := c.Out
	list(w, "states", len(p.sys.States), portTexts(p.sys.States))
	free := fmt.Sprintf("degrees of freedom of %d with inertia", len(p.layout.Bodies))
	list(w, "freedoms", p.layout.Free, []string{free})
	if held := p.layout.Held; len(held) > 0 {
		list(w, "held", len(held), withHead("by joints: ", held))
	}
	list(w, "massless", len(p.layout.Carried)+len(p.layout.Geared)+len(p.layout.Balanced), massless(p.layout))
	start := startTexts(p.start)
	if !c.Matrices && len(start) > mostStart {
		start = append(atMost(start, mostStart), "which -matrices prints")
	}
	list(w, "start", len(p.start), start)
	inputs := make([]string, len(p.sys.Inputs))
	for i, in := range p.sys.Inputs {
		inputs[i] = portText(in.Port)
		if in.Delay > 0 {
			inputs[i] += fmt.Sprintf(" after %g ms", in.Delay*1e3)
		}
	}

	list(w, "inputs", len(inputs), inputs)
	list(w, "outputs", len(p.sys.Outputs), portTexts(p.sys.Outputs))
	if len(p.tunable) > 0 {
		list(w, "tunable", len(p.tunable), p.tunable)
	}
	if len(p.presets) > 0 {
		list(w, "presets", len(p.presets), p.presets)
	}
	list(w, "friction", len(p.tables.Frictions), p.tables.Frictions)
	p.redundant(w)
	p.laws(w)
	p.modes(w)
	rates, err := eigenvalues(p.sys.OpenAt(p.sys.X0), len(p.sys.States))
	if err != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}
	p.frequencies(w, rates)
	c.substeps(p, rates)
	if b := p.tables.Bounds(); p.tables.Partition == nil { // a partitioned plant has neither substeps nor events
		list(w, "bounds", -1, []string{"of a tick: " + count(b.Substeps, "substep"),
			count(b.Events, "event") + " a period", count(b.Breakpoints, "breakpoint") + " of input waveforms",
			count(b.Iterations, "coupling iteration") + " per substep", count(b.Pivots, "pivot") + " per event"})
	}

	if c.Matrices {
		p.matrices(w)
	}
	if err := c.linearBodies(p); err != nil {
		return err
	}
	return c.worstTick(p)
}

// width returns the width of the output, at most 100 columns: that of the terminal behind w, if
// there is one.
func width(w io.Writer) int {
	const most = 100
	if t, ok := w.(interface{ Width() int }); ok && t.Width() > 0 {
		return min(t.Width(), most)
	}
	return most
}

// list writes a heading, the number n (no number if n is -1) and the wrapped items.
func list(w io.Writer, head string, n int, items []string) {
	if n == 0 && len(items) == 0 {
		items = []string{"none"}
	}
	number := ""
	if n >= 0 {
		number = fmt.Sprint(n)
	}
	line := fmt.Sprintf("  %-9s %4s  ", head, number)
	indent := len(line)
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		used := utf8.RuneCountInString(line)
		if used > indent && used+1+utf8.RuneCountInString(item) > width(w) {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", indent)
			used = indent
		}

		if used > indent {
			line += " "
		}
		line += item
	}

	fmt.Fprintln(w, line)
}

// count returns "1 substep" or "2 substeps".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func portText(p units.Port) string {
	unit := p.DeclaredUnit()
	s := fmt.Sprintf("%s[%s]", p.Name, unit.Spelled)
	if p.Min > -1e300 || p.Max < 1e300 {
		s += fmt.Sprintf(" %.9g..%.9g", unit.FromSI(p.Min), unit.FromSI(p.Max))
	}
	return s
}

func portTexts(ports []units.Port) []string {
	var text []string
	for _, p := range ports {
		text = append(text, portText(p))
	}
	return text
}

// mostStart is the largest number of start values that check prints without the matrices.
const mostStart = 200

// startTexts formats the values at the start, each with its origin.
func startTexts(start []assemble.StartValue) (text []string) {
	for _, s := range start {
		value := units.Format(units.DropRounding(s.Value), s.Unit)
		text = append(text, fmt.Sprintf("%s %s (%s)", s.Name, value, s.Origin))
	}
	return text
}

func massless(l *assemble.Layout) []string {
	return slices.Concat(withHead("points of bodies and lines: ", atMost(l.Carried, 20)),
		withHead("eliminated, follow from gears: ", l.Geared),
		withHead("eliminated, follow from springs and dampers: ", l.Balanced))
}

// withHead returns items with head before the first.
func withHead(head string, items []string) []string {
	if len(items) == 0 {
		return nil
	}
	return append([]string{head + items[0]}, items[1:]...)
}

// laws writes the laws that the kernel evaluates from the state within a step.
func (p *checkedPlant) laws(w io.Writer) {
	var names []string
	for _, s := range p.sys.Signals {
		if s.Law != nil {
			names = append(names, s.Name)
		}
	}

	list(w, "laws", len(names), atMost(names, 20))
	if n := len(p.sys.Guards); n > 0 {
		list(w, "guards", n, []string{"breakpoints of laws: a substep ends there"})
	}
	if t := p.tables; len(t.Switches) > 0 {
		var regions []string
		for i := range t.Switches {
			regions = append(regions, fmt.Sprintf("%s in %d", t.Switches[i].Name, len(t.Switches[i].Borders)+1))
		}
		list(w, "regions", t.Combinations, withHead("combinations of slopes: ", atMost(regions, 20)))
	}
}

// atMost returns at most n items, followed by the number of further items.
func atMost(items []string, n int) []string {
	if len(items) <= n {
		return items
	}
	return append(slices.Clone(items[:n]), fmt.Sprintf("and %d more", len(items)-n))
}

// modes describes how the matrices of a lock set are computed.
func (p *checkedPlant) modes(w io.Writer) {
	t := p.tables
	if net := t.Sparse; net != nil {
		most := 0
		for _, b := range net.Blocks {
			most = max(most, len(b.Elements))
		}
		list(w, "modes", -1, []string{fmt.Sprintf("stepped sparse: %d of %d entries are not 0", len(net.A.Val), t.N*t.N),
			"friction in " + count(len(net.Blocks), "block") + " of at most " + count(most, "element"),
			fmt.Sprintf("%.2f MB", float64(t.Workspace())/1e6), "events located per tick: " + fmt.Sprint(t.EventBudget)})
		return
	}

	if t.Modes == nil {
		sets := fmt.Sprintf("2^%d lock sets", t.Mc)
		if t.Combinations > 1 {
			sets = fmt.Sprintf("%d combinations of regions times %s", t.Combinations, sets)
		}
		list(w, "modes", -1, []string{fmt.Sprintf("%s do not fit in memory: each is factorised in place, in the tick, "+
			"in %.2f MB", sets, float64(t.Workspace())/1e6)})
		return
	}

	redundant, all := 0, t.Blocks()[0].Elements
	for i := range t.Modes {
		if kappa := uint64(i) & (1<<t.Mc - 1); t.Modes[i].Redundant && !p.hasBothStops(all, kappa) {
			redundant++
		}
	}

	list(w, "modes", len(t.Modes), []string{fmt.Sprintf("lock sets precomputed, %.2f MB", float64(t.Bytes())/1e6),
		fmt.Sprintf("statically indeterminate in %d of them", redundant)})
}

func eigenvalues(a []float64, n int) ([]complex128, error) {
	var eig mat.Eigen
	if !eig.Factorize(mat.NewDense(n, n, slices.Clone(a)), mat.EigenNone) {
		return nil, fmt.Errorf("bench: the eigenvalues cannot be computed")
	}
	list := eig.Values(nil)
	slices.SortFunc(list, func(a, b complex128) int { return cmp.Compare(cmplx.Abs(a), cmplx.Abs(b)) })
	return list, nil
}

// frequencies writes the eigenvalues of the open plant, with no element locked and without laws.
func (p *checkedPlant) frequencies(w io.Writer, rates []complex128) {
	var oscillating, decaying, growing []string
	free, fastest := 0, cmplx.Abs(rates[len(rates)-1])
	for _, r := range rates {
		magnitude := cmplx.Abs(r)
		switch {
		case magnitude <= 1e-9*max(fastest, 1):
			free++
		case imag(r) > 0:
			oscillating = append(oscillating,
				fmt.Sprintf("%.4g Hz (damping ratio %.3g)", magnitude/(2*math.Pi), -real(r)/magnitude+0))
		case imag(r) == 0 && real(r) > 0:
			growing = append(growing, fmt.Sprintf("%.4g s", 1/magnitude))
		case imag(r) == 0:
			decaying = append(decaying, fmt.Sprintf("%.4g s", 1/magnitude))
		}
	}

	list(w, "rates", len(rates), slices.Concat([]string{"no element locked and no law: " + count(free, "free motion")},
		withHead("decays with time constants ", atMost(decaying, 12)), withHead("oscillates with ", atMost(oscillating, 12)),
		withHead("grows with time constants ", atMost(growing, 12))))
}

// coarseSubsteps is the least number of substeps per step that check warns of.
const coarseSubsteps = 16

// substeps writes the substeps of a step, and warns of a coarse step.
func (c *Check) substeps(p *checkedPlant, rates []complex128) {
	t, fastest := p.tables, p.tables.Fastest()
	if t.Partition != nil {
		c.partition(p)
		return
	}

	if fastest == 0 {
		list(c.Out, "step", -1, []string{"any: the plant has no fast mode"})
		return
	}

	what := "mode of any lock set"
	switch {
	case t.LawRate() > t.Radius:
		what = "law"
	case t.Modes == nil:
		what = "mode of the open plant"
	}

	name := fmt.Sprintf("fastest %s %.4g Hz (%.4g rad/s)", what, fastest/(2*math.Pi), fastest)
	text := []string{name, fmt.Sprintf("%s per step of %v", count(t.Split, "substep"), p.period())}
	if t.Form == kernel.Projected {
		text = append(text, fmt.Sprintf("one substep up to %v", roundDown(min(10, 1/fastest))))
		if most := kernel.MaxSplit / fastest; most < 10 {
			text = append(text, fmt.Sprintf("refused above %v", roundDown(most)))
		}
	}

	list(c.Out, "step", -1, text)
	if t.Split >= coarseSubsteps {
		c.warn("%s: the step of %v is coarse for the %s: %d substeps per step; a step of %v takes %d", p.file, p.period(), name,
			t.Split, roundDown(coarseSubsteps/2/fastest), coarseSubsteps/2)
	}

	for _, r := range slices.Backward(rates) {
		if f := imag(r) / (2 * math.Pi); f > 0.5/p.period().Seconds() && -real(r) < 0.5*cmplx.Abs(r) {
			c.warn("%s: a step of %v cannot resolve the oscillation of %.4g Hz; a step of %v can",
				p.file, p.period(), f, roundDown(0.5/f))
			return
		}
	}
}

func (c *Check) warn(format string, args ...any) {
	if c.Warn != nil {
		c.Warn(fmt.Sprintf(format, args...))
	}
}

// roundDown returns s seconds as a duration, rounded down to two digits.
func roundDown(s float64) time.Duration {
	d := time.Duration(min(s, 1e9) * 1e9)
	unit := time.Duration(1)
	for d/unit >= 100 {
		unit *= 10
	}
	return d.Truncate(unit)
}
