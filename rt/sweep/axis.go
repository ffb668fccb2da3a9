package sweep

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"lockstep/model/units"
)

// axisSpec is what the file says of the values of a parameter.
type axisSpec struct {
	Of        words `yaml:"of"`
	Values    words `yaml:"values"`
	From      word  `yaml:"from"`
	To        word  `yaml:"to"`
	Steps     word  `yaml:"steps"`
	Random    word  `yaml:"random"`
	Mean      word  `yaml:"mean"`
	Deviation word  `yaml:"deviation"`
	Seed      word  `yaml:"seed"`
	N         word  `yaml:"n"`
}

// axis are the values of a parameter, in one unit.
type axis struct {
	unit string
	n    int64
	list []float64                      // n of them; nil: at says them
	at   func(fraction float64) float64 // the value below which that share lies, 0 to 1
	seed uint64                         // of random ones
	lin  bool                           // the fraction grows evenly, both ends included
	perm []int32                        // of a latin hypercube: the stratum of each case
}

// value is the i-th value.
func (a *axis) value(i int64) float64 {
	switch {
	case a.list != nil:
		return a.list[i]
	case a.lin && a.n > 1:
		return a.at(float64(i) / float64(a.n-1))
	case a.lin:
		return a.at(0)
	case a.perm != nil:
		return a.at((float64(a.perm[i]) + random(a.seed, uint64(i))) / float64(a.n))
	}
	return a.at(random(a.seed, uint64(i)))
}

// text is the i-th value as it stands in a file.
func (a *axis) text(i int64) string {
	text := strconv.FormatFloat(a.value(i), 'g', -1, 64)
	if a.unit != "" {
		text += " " + a.unit
	}
	return text
}

// random is the i-th number of a seed, between 0 and 1 and neither of them: splitmix64
// (Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014).
func random(seed, i uint64) float64 { return within01(mix(seed, i)) }

// within01 takes 52 bits: with one more the half would be rounded, at the end to 1.
func within01(bits uint64) float64 { return (float64(bits>>12) + 0.5) / (1 << 52) }

func mix(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// seeded is a seed of the file for one parameter: two with the same seed are independent.
func seeded(seed int64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(h.Sum64(), uint64(seed))
}

// strata puts the cases of a latin hypercube into their strata: one case in each.
func (a *axis) strata(n int64, seed uint64) {
	a.n, a.seed = n, seed
	a.perm = make([]int32, n)
	for i := range a.perm {
		a.perm[i] = int32(i)
	}
	slices.SortFunc(a.perm, func(i, j int32) int {
		return cmp.Compare(mix(^seed, uint64(i)), mix(^seed, uint64(j)))
	})
}

// same converts numbers to the unit of the first.
func same(list ...word) (values []float64, unit string, err error) {
	for i, w := range list {
		v, u, err := w.number()
		if err != nil {
			return nil, "", err
		}
		if i == 0 {
			unit = u
		} else if u != unit {
			factor := 0.0
			if factor, err = units.Convert(u, unit); u == "" || unit == "" || err != nil {
				return nil, "", w.errorf("%q and %q have not the same unit", list[0].text, w.text)
			}
			v *= factor
		}
		values = append(values, v)
	}
	return values, unit, nil
}

const maxCases = 1_000_000

// axis makes the values of the parameter called key; strata: they are those of a latin
// hypercube.
func (s *axisSpec) axis(key word, strata bool) (a axis, err error) {
	if err := s.complete(key, strata); err != nil {
		return a, err
	}
	var v []float64
	switch {
	case len(s.Values) > 0:
		a.list, a.unit, err = same(s.Values...)
		a.n = int64(len(a.list))
		return a, err
	case s.Random.text == "normal":
		if v, a.unit, err = same(s.Mean, s.Deviation); err == nil && !(v[1] > 0) {
			err = s.Deviation.errorf("%s: deviation: %s is not more than 0", key.text, s.Deviation.text)
		}
		a.at = func(p float64) float64 { return v[0] + v[1]*math.Sqrt2*math.Erfinv(2*p-1) }
	default:
		v, a.unit, err = same(s.From, s.To)
		a.at = func(p float64) float64 {
			if p == 1 {
				return v[1]
			}
			return v[0] + (v[1]-v[0])*p
		}
	}
	if s.Random.text == "log" && err == nil {
		if !(v[0] > 0 && v[1] > 0) {
			return a, s.From.errorf("%s: from %s to %s: both must be more than 0 to be spread by their logarithm", key.text, s.From.text, s.To.text)
		}
		a.at = func(p float64) float64 { return v[0] * math.Pow(v[1]/v[0], p) }
	}
	if err != nil || strata {
		return a, err
	}
	if a.lin = s.Steps.text != ""; a.lin {
		a.n, err = s.Steps.whole(key.text+": steps", 1, maxCases)
		if err == nil && a.n == 1 && v[0] != v[1] {
			err = s.Steps.errorf("%s: steps: %s and %s are two values, 1 step is one", key.text, s.From.text, s.To.text)
		}
		return a, err
	}
	seed, err := s.Seed.whole(key.text+": seed", 0, math.MaxInt64)
	if err == nil {
		a.n, err = s.N.whole(key.text+": n", 1, maxCases)
	}
	a.seed = seeded(seed, key.text)
	return a, err
}

// complete says which keys are missing, or too many.
func (s *axisSpec) complete(key word, strata bool) error {
	given := map[string]bool{"values": len(s.Values) > 0}
	for name, w := range map[string]word{"from": s.From, "to": s.To, "steps": s.Steps, "random": s.Random, "mean": s.Mean,
		"deviation": s.Deviation, "seed": s.Seed, "n": s.N} {
		given[name] = w.text != ""
	}
	var want []string
	switch {
	case given["values"]:
		want = []string{"values"}
	case !given["random"]:
		want = []string{"from", "to", "steps"}
	case s.Random.text == "normal":
		want = []string{"random", "mean", "deviation", "seed", "n"}
	case s.Random.text == "uniform" || s.Random.text == "log":
		want = []string{"random", "from", "to", "seed", "n"}
	default:
		return s.Random.errorf("%s: random: %q is unknown%s; known are uniform, normal, log", key.text, s.Random.text,
			units.Meant(s.Random.text, []string{"uniform", "normal", "log"}))
	}
	if strata {
		want = slices.DeleteFunc(want, func(k string) bool { return k == "seed" || k == "n" || k == "steps" })
		if given["values"] {
			return key.errorf("%s: a latin hypercube takes ranges (from, to), no lists", key.text)
		}
	}
	for _, name := range []string{"values", "from", "to", "steps", "random", "mean", "deviation", "seed", "n"} {
		switch wanted := slices.Contains(want, name); {
		case wanted && !given[name]:
			return key.errorf("%s: %s is missing; a list, {from, to, steps} or {random, from, to, seed, n} is wanted", key.text, name)
		case !wanted && given[name]:
			return key.errorf("%s: %s does not go with %s", key.text, name, want[0])
		}
	}
	return nil
}
