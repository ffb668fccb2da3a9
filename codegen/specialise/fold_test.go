package specialise

import (
	"go/token"
	"go/types"
	"testing"
)

// The sum of a loop's counter and constants stays one sum, whose range is known.
func TestSumsOfACounterAndConstantsAreFolded(t *testing.T) {
	i := dynamic("i", operand, types.Typ[types.Int])
	i.ranged, i.hi, i.counter = true, 9, i
	n := func(n int) *value { return wholeNumber(n) }
	for _, c := range []struct {
		v      *value
		text   string
		lo, hi int64
	}{
		{arith(token.ADD, i, n(15)), "15 + i", 15, 24},
		{arith(token.SUB, arith(token.ADD, i, n(15)), n(15)), "i", 0, 9},
		{arith(token.SUB, i, n(3)), "i - 3", -3, 6},
		{arith(token.ADD, arith(token.SUB, i, n(3)), n(4)), "1 + i", 1, 10},
		{arith(token.MUL, arith(token.ADD, i, n(2)), n(3)), "(2 + i) * 3", 6, 33},
		{arith(token.ADD, arith(token.MUL, i, n(2)), n(1)), "i * 2 + 1", 1, 19},
	} {
		if c.v.text != c.text || !c.v.ranged || c.v.lo != c.lo || c.v.hi != c.hi {
			t.Errorf("%s in [%d, %d], known %v, want %s in [%d, %d]", c.v.text, c.v.lo, c.v.hi, c.v.ranged, c.text, c.lo, c.hi)
		}
	}
}

// The kernel compares its options, which are strings, in the tick.
func TestComparisonsOfKnownOptionsAreFolded(t *testing.T) {
	option := func(name string) *value { return constantValue(name, types.Typ[types.String]) }
	for name, want := range map[string]bool{"papers": true, "complete": false} {
		if got := arith(token.EQL, option(name), option("papers")); got.con != want {
			t.Errorf("%q == \"papers\" is %s, want %v", name, got.text, want)
		}
	}
}
