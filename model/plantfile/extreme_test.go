package plantfile_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
	"lockstep/model/units"
)

// TestNumbersOfAnySizeEndInAnErrorOrAFinitePlant sets numbers of plants with every element type to
// values of any size. A plant ends in an error of one line, or ten ticks end with finite outputs or in
// the fault that names a state.
func TestNumbersOfAnySizeEndInAnErrorOrAFinitePlant(t *testing.T) {
	plants, types := independentParts(t), ""
	for i, text := range append(plants, modeltest.Train, lorry) {
		types += text
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for range 8 {
			tryExtremes(t, text, random)
		}
	}
	for _, k := range library.Elements() {
		if !strings.Contains(types, "type: "+k.Name+",") && !strings.Contains(types, "type: "+k.Name+"}") {
			t.Errorf("no plant has a %s", k.Name)
		}
	}
}

// FuzzNumbers does the same for any seed.
func FuzzNumbers(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	plants := append(independentParts(f), modeltest.Train, lorry)
	f.Fuzz(func(t *testing.T, plant, seed uint64) {
		tryExtremes(t, plants[plant%uint64(len(plants))], rand.New(rand.NewPCG(plant, seed)))
	})
}

// independentParts returns the groups of the guide's plant with every element that share no name,
// each as a plant of its own, without outputs.
func independentParts(t testing.TB) (plants []string) {
	_, text, _ := strings.Cut(string(model.Guide), "plant: every-element\n")
	text, _, _ = strings.Cut(text, "\noutputs:\n")
	head, elements, ok := strings.Cut(text, "\nelements:\n")
	_, inputs, has := strings.Cut(head, "\ninputs:\n")
	entry := regexp.MustCompile(`(?m)^  \w+: \{.*\n(?:    .*\n)*`)
	words := regexp.MustCompile(`\w+`)
	if !ok || !has {
		t.Fatal("PLANT.md has no plant with every element")
	}
	ignored := map[string]bool{"ground": true, "floor": true, "v_0": true, "R": true} // fixed nodes and parameters join no groups
	type group struct {
		entries []string
		names   map[string]bool
	}
	var groups []group
	var fixed string
	keys := map[string]bool{}
	for _, m := range regexp.MustCompile(`(\w+):`).FindAllStringSubmatch(elements, -1) {
		keys[m[1]] = true
	}
	var names []string // of elements and nodes: words that are no key, or that begin an entry
	list := entry.FindAllString(elements+"\n", -1)
	for _, e := range list {
		name, _, _ := strings.Cut(strings.TrimSpace(e), ":")
		names = append(names, name)
	}
	for _, m := range regexp.MustCompile(`\b(?:a|b|flange|support|sun|carrier|ring|sun_small|sun_large|drive|left|right|impeller|turbine): (\w+)`).FindAllStringSubmatch(elements, -1) {
		names = append(names, m[1])
	}
	for _, e := range list {
		name, body, _ := strings.Cut(e, ":")
		if name = strings.TrimSpace(name); ignored[name] {
			fixed += e
			continue
		}
		joined := group{[]string{e}, map[string]bool{name: true}}
		for _, w := range words.FindAllString(regexp.MustCompile(`\w+:`).ReplaceAllString(body, ""), -1) {
			if slices.Contains(names, w) && !ignored[w] {
				joined.names[w] = true
			}
		}
		rest := groups[:0:0]
		for _, g := range groups {
			shares := false
			for w := range g.names {
				shares = shares || joined.names[w]
			}
			if !shares {
				rest = append(rest, g)
				continue
			}
			joined.entries = append(g.entries, joined.entries...)
			for w := range g.names {
				joined.names[w] = true
			}
		}
		groups = append(rest, joined)
	}
	for i, g := range groups {
		body := strings.Join(g.entries, "")
		plant := fmt.Sprintf("plant: part%d\nparameters: {v_0: 20 m/s, R: 0.3 m}\ninputs:\n", i)
		for _, in := range entry.FindAllString(inputs+"\n", -1) {
			name, _, _ := strings.Cut(strings.TrimSpace(in), ":")
			if regexp.MustCompile(`: ` + name + `\b`).MatchString(body) {
				plant += in
			}
		}
		plants = append(plants, plant+"elements:\n  alone: {type: inertia, J: 1}\n"+fixed+body)
	}
	return plants
}

func draftOf(t testing.TB, text string) *plantfile.Draft {
	d, err := plantfile.Parse("p.yaml", []byte(text), library.Elements())
	if err == nil {
		_, err = d.Load()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}

// numbersOf returns the leaves of a plant file that are numbers.
func numbersOf(t testing.TB, d *plantfile.Draft) (list []yamlfile.Leaf) {
	for _, leaf := range yamlfile.Leaves(d.Top()) {
		if _, ok := d.Number(leaf.Node); ok {
			list = append(list, leaf)
		}
	}
	if len(list) == 0 {
		t.Fatal("no numbers")
	}
	return list
}

// anySize returns a number, log-uniform over all sizes of a float64 and denser at usual ones, or a
// special one.
func anySize(random *rand.Rand) float64 {
	special := []float64{0, math.Copysign(0, -1), 5e-324, 1e-310, 2.2e-308, math.MaxFloat64, 1e308, math.MaxInt64, math.MaxInt32,
		math.MaxUint32, 1 << 53, 1, -1, math.MinInt64}
	size := math.Exp2(-1074 + 2098*random.Float64())
	switch random.IntN(6) {
	case 0:
		return special[random.IntN(len(special))]
	case 1, 2, 3:
		size = math.Pow(10, -12+24*random.Float64())
	}
	if random.IntN(4) == 0 {
		size = -size
	}
	return size
}

// tryExtremes sets one to four numbers of a plant and runs it.
func tryExtremes(t *testing.T, text string, random *rand.Rand) {
	d := draftOf(t, text)
	list := numbersOf(t, d)
	var said []string
	for range 1 + random.IntN(4) {
		leaf, v := list[random.IntN(len(list))], anySize(random)
		leaf.Set(strconv.FormatFloat(v, 'g', -1, 64))
		said = append(said, fmt.Sprintf("%s: %g", leaf.Path, v))
	}
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%v\npanic: %v\n%s\n%s", said, r, debug.Stack(), text)
		}
	}()
	if err := runTicks(d); err != nil && strings.Contains(err.Error(), "\n") || errors.As(err, new(notFinite)) {
		t.Errorf("%v\n%v\n%s", said, err, text)
	}
}

// notFinite is the error for an output that is not finite although no state is.
type notFinite string

func (n notFinite) Error() string { return string(n) + " is not finite" }

// runTicks prepares a plant and steps it ten times, or until it ends with a fault.
func runTicks(d *plantfile.Draft) error {
	plant, err := d.Load()
	if err != nil {
		return err
	}
	sys, err := assemble.System(plant)
	if err != nil {
		return err
	}
	if _, err := assemble.StartOf(plant); err != nil {
		return err
	}
	tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond, Memory: 1}) // lock sets in the tick
	if err != nil {
		return err
	}
	k, y := kernel.New(tables), make([]float64, len(tables.Outputs))
	fault := slices.IndexFunc(tables.Outputs, func(p units.Port) bool { return p.Name == "fault" })
	for range 10 {
		k.Step(y, tables.Start)
		if y[fault] != 0 {
			return errors.New("a state is no longer finite")
		}
		for i, v := range y {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return notFinite(tables.Outputs[i].Name)
			}
		}
	}
	return nil
}
