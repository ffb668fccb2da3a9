package specialise

import "strings"

// writeHelpers adds what stands for the builtin functions that compile badly.
func (s *spec) writeHelpers(b *strings.Builder) {
	for _, h := range []string{"lesser", "greater", "atMost", "atLeast"} {
		if s.helper[h] {
			b.WriteString(helperTexts[h])
		}
	}
}

var helperTexts = map[string]string{
	"lesser": `// lesser is the builtin min: -0 is less than 0, and what is no number wins.
//
//go:nosplit
func lesser(a, b float64) float64 {
	if a < b {
		return a
	}
	if b < a || a == b && a != 0 {
		return b
	}
	return -(-a - b)
}

`,
	"greater": `// greater is the builtin max: 0 is greater than -0, and what is no number wins.
//
//go:nosplit
func greater(a, b float64) float64 {
	if a > b {
		return a
	}
	if b > a || a == b && a != 0 {
		return b
	}
	return a + b
}

`,
	"atMost": `// atMost is the builtin min with a bound that is neither -0 nor no number.
//
//go:nosplit
func atMost(x, bound float64) float64 {
	if x > bound {
		return bound
	}
	return x
}

`,
	"atLeast": `// atLeast is the builtin max with a bound that is neither -0 nor no number.
//
//go:nosplit
func atLeast(x, bound float64) float64 {
	if x <= bound {
		return bound
	}
	return x
}

`,
}
