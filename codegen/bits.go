package codegen

import "strings"

// writeHelpers adds what the tick uses of package math/bits, since the generated package
// imports nothing but math, and of the builtin functions what compiles badly.
func (s *spec) writeHelpers(b *strings.Builder) {
	for _, h := range []string{"trailingZeros", "leadingZeros", "onesCount", "mul64", "add64", "sub64", "lesser", "greater", "atMost", "atLeast"} {
		if s.helper[h] {
			b.WriteString(helperTexts[h])
		}
	}
}

var helperTexts = map[string]string{
	"trailingZeros": `// trailingZeros is the number of zeros below the lowest bit of x.
//
//go:nosplit
func trailingZeros(x uint64) int {
	return onesCount(x&-x - 1)
}

`,
	"onesCount": `// onesCount is the number of bits of x that are 1.
//
//go:nosplit
func onesCount(x uint64) int {
	x -= x >> 1 & 0x5555555555555555
	x = x&0x3333333333333333 + x>>2&0x3333333333333333
	x = (x + x>>4) & 0x0f0f0f0f0f0f0f0f
	return int(x * 0x0101010101010101 >> 56)
}

`,
	"leadingZeros": `// leadingZeros is the number of zeros above the highest bit of x.
//
//go:nosplit
func leadingZeros(x uint64) int {
	x |= x >> 1
	x |= x >> 2
	x |= x >> 4
	x |= x >> 8
	x |= x >> 16
	x |= x >> 32
	return onesCount(^x)
}

`,
	"mul64": `// mul64 is the product of x and y in 128 bits.
//
//go:nosplit
func mul64(x, y uint64) (uint64, uint64) {
	x0, x1 := x&0xffffffff, x>>32
	y0, y1 := y&0xffffffff, y>>32
	t := x1*y0 + x0*y0>>32
	w := t&0xffffffff + x0*y1
	return x1*y1 + t>>32 + w>>32, x * y
}

`,
	"add64": `// add64 is x + y + carry and what it carries.
//
//go:nosplit
func add64(x, y, carry uint64) (uint64, uint64) {
	sum := x + y + carry
	return sum, (x&y | (x|y)&^sum) >> 63
}

`,
	"sub64": `// sub64 is x - y - borrow and what it borrows.
//
//go:nosplit
func sub64(x, y, borrow uint64) (uint64, uint64) {
	diff := x - y - borrow
	return diff, (^x&y | ^(x^y)&diff) >> 63
}

`,
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
