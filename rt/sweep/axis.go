package sweep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// axis holds the values of a parameter, in one unit.
type axis struct {
	unit   string
	values []float64
}

// text formats value i for a file.
func (a *axis) text(i int64) string {
	return strings.TrimSuffix(strconv.FormatFloat(a.values[i], 'g', -1, 64)+" "+a.unit, " ")
}

// largest formats the value of the largest size.
func (a *axis) largest() string {
	at := 0
	for i, v := range a.values {
		if math.Abs(v) > math.Abs(a.values[at]) {
			at = i
		}
	}
	return a.text(int64(at))
}

// random returns number i of a seed, more than 0 and less than 1: SplitMix64
// (Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014).
func random(seed, i uint64) float64 { return within01(mix(seed, i)) }

// within01 uses 52 bits; with 53, adding the half would round, and could give 1.
func within01(bits uint64) float64 { return (float64(bits>>12) + 0.5) / (1 << 52) }

func mix(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// seeded derives the seed of one parameter, so that parameters with equal seeds are independent.
func seeded(seed int64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(h.Sum64(), uint64(seed))
}

// A share, 0 to 1, is the cumulative probability of a value, or its place in a range.

// evenly returns n equally spaced shares from 0 to 1.
func evenly(n int64) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = float64(i) / float64(max(1, n-1))
	}
	return shares
}

// randomly returns n random shares.
func randomly(n int64, seed uint64) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = random(seed, uint64(i))
	}
	return shares
}

// inStrata returns the shares of a Latin hypercube: one random share in each of n equal strata.
func inStrata(n int64, seed uint64) []float64 {
	strata := make([]int32, n)
	for i := range strata {
		strata[i] = int32(i)
	}
	slices.SortFunc(strata, func(i, j int32) int {
		return cmp.Compare(mix(^seed, uint64(i)), mix(^seed, uint64(j)))
	})
	shares := randomly(n, seed)
	for i := range shares {
		shares[i] = (float64(strata[i]) + shares[i]) / float64(n)
	}
	return shares
}

// number splits "8.5 bar" into number and unit; unit "": none.
func number(text string) (v float64, unit string, err error) {
	first, unit, _ := strings.Cut(text, " ")
	if share, ok := strings.CutSuffix(first, "%"); ok {
		first, unit = share, "%"
	}
	if v, err = strconv.ParseFloat(first, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, "", fmt.Errorf("%q is not a finite number with or without a unit, like 0.1 or 8 bar", text)
	}
	if _, err = units.ParseWanted(unit); err != nil {
		return 0, "", fmt.Errorf("%q: %s", text, units.Reason(err))
	}
	return v, unit, nil
}

// numbers parses values and converts them to the first unit among them; "": none has a unit.
func (s *spec) numbers(list ...yamlfile.Scalar) (values []float64, unit string) {
	own := make([]string, len(list))
	values = make([]float64, len(list))
	for i, w := range list {
		var err error
		if values[i], own[i], err = number(w.Text); err != nil {
			s.FailAt(w.At(), "%w", err)
		}
		unit = cmp.Or(unit, own[i])
	}

	for i, w := range list {
		if own[i] == unit {
			continue
		}
		want := units.Want(unit)
		si, err := want.Typed(w.Text)
		if err != nil {
			s.FailAt(w.At(), "%s: %s", s.name.Text, bench.QuantityError(w.Text, err))
		}
		values[i] = want.FromSI(si)
	}

	return values, unit
}

const maxCases = 1_000_000

// axisKeys and axisLists are the keys of a parameter; the values of axisLists are lists.
var (
	axisLists = []string{"values", "of"}
	axisKeys  = []string{"from", "to", "steps", "random", "mean", "deviation", "seed", "n"}
)

// spreads are the distributions of values, by the key random; "": equal spacing. a and b are the
// ends of the range; for normal, mean and deviation.
var spreads = map[string]struct {
	keys  []string
	value func(a, b, share float64) float64
}{
	"":        {[]string{"from", "to", "steps"}, linear},
	"uniform": {[]string{"random", "from", "to", "seed", "n"}, linear},
	"log": {[]string{"random", "from", "to", "seed", "n"}, func(a, b, share float64) float64 {
		return a * math.Pow(b/a, share)
	}},
	"normal": {[]string{"random", "mean", "deviation", "seed", "n"}, func(a, b, share float64) float64 {
		return a + b*math.Sqrt2*math.Erfinv(2*share-1)
	}},
}

func linear(a, b, share float64) float64 {
	if share == 1 {
		return b
	}
	return a + (b-a)*share
}

// axis returns the values of a parameter. strata and seed are of a Latin hypercube; strata 0: none.
func (s *spec) axis(strata, seed int64) (a axis) {
	s.checkKeys(strata > 0)
	if s.has("values") {
		a.values, a.unit = s.numbers(s.given["values"]...)
		return a
	}

	from, to, random := s.get("from"), s.get("to"), s.get("random").Text
	if random == "normal" {
		from, to = s.get("mean"), s.get("deviation")
	}
	ends, unit := s.numbers(from)
	if random == "normal" && unit != "" {
		want := units.Want(unit).Difference()
		ends = append(ends, want.FromSI(s.quantity("deviation", want)))
	} else {
		ends, unit = s.numbers(from, to)
	}
	a.unit = unit

	switch {
	case random == "normal" && !(ends[1] > 0):
		s.fail("deviation", "deviation: %s is not positive", to.Text)
	case random == "log" && !(ends[0] > 0 && ends[1] > 0):
		s.fail("from", "from %s to %s: both must be positive for a logarithmic distribution", from.Text, to.Text)
	}

	switch {
	case strata > 0:
		a.values = inStrata(strata, seeded(seed, s.name.Text))
	case random == "":
		a.values = evenly(s.whole("steps", 1, maxCases))
		if len(a.values) == 1 && ends[0] != ends[1] {
			s.fail("steps", "steps: one value cannot be both %s and %s; use at least 2 steps", from.Text, to.Text)
		}
	default:
		seed = s.whole("seed", 0, math.MaxInt64)
		a.values = randomly(s.whole("n", 1, maxCases), seeded(seed, s.name.Text))
	}

	for i, share := range a.values {
		v := spreads[random].value(ends[0], ends[1], share)
		if a.values[i] = v; math.IsNaN(v) || math.IsInf(v, 0) {
			s.fail("from", "%s and %s are too large: a value between them is not finite", from.Text, to.Text)
		}
	}
	return a
}

// checkKeys refuses a parameter with missing or superfluous keys.
func (s *spec) checkKeys(strata bool) {
	random := s.get("random").Text
	spread, known := spreads[random]
	want := spread.keys
	switch {
	case s.has("values") && strata:
		s.fail("", "a latin hypercube takes ranges (from, to), not lists")
	case s.has("values"):
		want = []string{"values"}
	case !known:
		s.fail("random", "random: %q is unknown%s; known are uniform, normal, log", random,
			units.Meant(random, slices.Sorted(maps.Keys(spreads))))
	}

	if strata {
		want = slices.DeleteFunc(slices.Clone(want), func(k string) bool { return k == "seed" || k == "n" || k == "steps" })
	}
	for _, key := range append([]string{"values"}, axisKeys...) {
		switch wanted := slices.Contains(want, key); {
		case wanted && !s.has(key):
			s.fail("", "%s is missing; expected a list, {from, to, steps} or {random, from, to, seed, n}", key)
		case !wanted && s.has(key):
			s.fail("", "%s cannot be combined with %s", key, want[0])
		}
	}
}

// spec is a mapping of the sweep file: a parameter, a result, or the key cases.
type spec struct {
	*yamlfile.Reader
	name  yamlfile.Scalar
	given map[string][]yamlfile.Scalar // values by key; several for a list
}

// readSpec reads a mapping. The keys in lists may have a list. A list in place of the mapping is
// the value of the first of them.
func readSpec(r *yamlfile.Reader, f yamlfile.Field, lists []string, keys ...string) spec {
	s := spec{r, yamlfile.Scalar{Text: f.Key, Line: f.KeyAt.Line, Col: f.KeyAt.Col}, map[string][]yamlfile.Scalar{}}
	if len(lists) > 0 && yamlfile.IsList(f.Node) {
		s.given[lists[0]] = r.Scalars(f, f.Key)
		return s
	}

	fields := r.FieldsOf(f, f.Key)
	r.CheckKeys(fields, f.Key, append(lists, keys...)...)
	for _, g := range fields {
		what := f.Key + ": " + g.Key
		if slices.Contains(lists, g.Key) {
			s.given[g.Key] = r.Scalars(g, what)
		} else {
			s.given[g.Key] = []yamlfile.Scalar{r.Scalar(g, what)}
		}
	}

	return s
}

// get returns the value of a key; its text is "" if the key is missing.
func (s *spec) get(key string) yamlfile.Scalar {
	if list := s.given[key]; len(list) > 0 {
		return list[0]
	}
	return yamlfile.Scalar{}
}

func (s *spec) has(key string) bool { return len(s.given[key]) > 0 }

// fail ends reading with an error at a key, or at the name if the key is missing.
func (s *spec) fail(key, format string, args ...any) {
	at := s.name
	if s.has(key) {
		at = s.get(key)
	}
	s.FailAt(at.At(), s.name.Text+": %w", fmt.Errorf(format, args...))
}

// quantity reads a quantity to SI.
func (s *spec) quantity(key string, unit units.Wanted) float64 {
	text := s.get(key).Text
	v, err := unit.Typed(text)
	if err != nil {
		s.fail(key, "%s: %s", key, bench.QuantityError(text, err))
	}
	return v
}

// whole reads a whole number from lo to hi.
func (s *spec) whole(key string, lo, hi int64) int64 {
	n, err := strconv.ParseInt(s.get(key).Text, 10, 64)
	if err != nil || n < lo || n > hi {
		s.fail(key, "%s: %q is not a whole number from %d to %d", key, s.get(key).Text, lo, hi)
	}
	return n
}
