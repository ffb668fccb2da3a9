package c99

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// helper is a function that does what Go does where C's own operator does not.
type helper struct {
	name  string
	needs []string
	text  string
}

// helpers are written in this order, those that are used.
var helpers = []helper{
	{"wrap64", nil, `
// The signed number with these bits; a conversion would be the compiler's choice.
static inline int64_t wrap64(uint64_t bits) {
	int64_t n;
	memcpy(&n, &bits, sizeof n);
	return n;
}`},
	{"wrap32", nil, `
static inline int32_t wrap32(uint64_t bits) {
	const uint32_t low = (uint32_t)bits;
	int32_t n;
	memcpy(&n, &low, sizeof n);
	return n;
}`},
	{"wrap16", nil, `
static inline int16_t wrap16(uint64_t bits) {
	const uint16_t low = (uint16_t)bits;
	int16_t n;
	memcpy(&n, &low, sizeof n);
	return n;
}`},
	{"wrap8", nil, `
static inline int8_t wrap8(uint64_t bits) {
	const uint8_t low = (uint8_t)bits;
	int8_t n;
	memcpy(&n, &low, sizeof n);
	return n;
}`},
	{"add64", []string{"wrap64"}, `
// Sums, differences and products that wrap around instead of overflowing.
static inline int64_t add64(int64_t a, int64_t b) { return wrap64((uint64_t)a + (uint64_t)b); }`},
	{"sub64", []string{"wrap64"}, `
static inline int64_t sub64(int64_t a, int64_t b) { return wrap64((uint64_t)a - (uint64_t)b); }`},
	{"mul64", []string{"wrap64"}, `
static inline int64_t mul64(int64_t a, int64_t b) { return wrap64((uint64_t)a * (uint64_t)b); }`},
	{"div64", []string{"sub64"}, `
// The quotient, truncated; 0 for a divisor of 0.
static inline int64_t div64(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? sub64(0, a) : a / b; }`},
	{"mod64", nil, `
static inline int64_t mod64(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }`},
	{"udiv64", nil, `
static inline uint64_t udiv64(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }`},
	{"umod64", nil, `
static inline uint64_t umod64(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }`},
	{"shl64", nil, `
// Shifts by any count.
static inline uint64_t shl64(uint64_t a, uint64_t count) { return count < 64 ? a << count : 0; }`},
	{"shr64", nil, `
static inline uint64_t shr64(uint64_t a, uint64_t count) { return count < 64 ? a >> count : 0; }`},
	{"sar64", nil, `
static inline int64_t sar64(int64_t a, uint64_t count) {
	const unsigned n = count < 63 ? (unsigned)count : 63;
	return a < 0 ? ~(~a >> n) : a >> n;
}`},
	{"to_int64", nil, `
// The whole part; the least number where it does not fit or x is no number.
static inline int64_t to_int64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }`},
	{"to_uint64", []string{"to_int64"}, `
static inline uint64_t to_uint64(double x) {
	return x < 0x1p63 ? (uint64_t)to_int64(x) : (uint64_t)to_int64(x - 0x1p63) | UINT64_C(1) << 63;
}`},
	{"to_int32", nil, `
static inline int32_t to_int32(double x) { return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN; }`},
	{"bits_of", nil, `
// The bits of a double, and back.
static inline uint64_t bits_of(double x) {
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}`},
	{"double_of", nil, `
static inline double double_of(uint64_t bits) {
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}`},
	{"least", []string{"bits_of", "double_of"}, `
// The lesser of two: -0 is less than 0, and what is no number wins.
static inline double least(double a, double b) {
	return a < b ? a : b < a ? b : a == b ? double_of(bits_of(a) | bits_of(b)) : a + b;
}`},
	{"most", []string{"bits_of", "double_of"}, `
// The greater of two: 0 is greater than -0, and what is no number wins.
static inline double most(double a, double b) {
	return a > b ? a : b > a ? b : a == b ? double_of(bits_of(a) & bits_of(b)) : a + b;
}`},
	{"at_most", nil, `
// The same against a constant, which is neither -0 nor no number.
static inline double at_most(double x, double bound) { return x > bound ? bound : x; }`},
	{"at_least", nil, `
// The same against a constant, which is neither -0 nor no number.
static inline double at_least(double x, double bound) { return x <= bound ? bound : x; }`},
	{"min_int64", nil, `
static inline int64_t min_int64(int64_t a, int64_t b) { return a < b ? a : b; }`},
	{"max_int64", nil, `
static inline int64_t max_int64(int64_t a, int64_t b) { return a > b ? a : b; }`},
	{"min_uint64", nil, `
static inline uint64_t min_uint64(uint64_t a, uint64_t b) { return a < b ? a : b; }`},
	{"max_uint64", nil, `
static inline uint64_t max_uint64(uint64_t a, uint64_t b) { return a > b ? a : b; }`},
	{"is_nan", nil, `
static inline bool is_nan(double x) { return x != x; }`},
	{"sign_bit", []string{"bits_of"}, `
static inline bool sign_bit(double x) { return bits_of(x) >> 63 != 0; }`},
	{"infinite", nil, `
static inline double infinite(int64_t sign) { return sign >= 0 ? (double)INFINITY : -(double)INFINITY; }`},
	{"is_inf", []string{"infinite"}, `
static inline bool is_inf(double x, int64_t sign) {
	return (sign >= 0 && x == infinite(1)) || (sign <= 0 && x == infinite(-1));
}`},
	{"not_a_number", []string{"double_of"}, `
static inline double not_a_number(void) { return double_of(UINT64_C(0x7ff8000000000001)); }`},
	{"ones_count", nil, `
static inline int64_t ones_count(uint64_t a) {
	a -= (a >> 1) & UINT64_C(0x5555555555555555);
	a = (a & UINT64_C(0x3333333333333333)) + ((a >> 2) & UINT64_C(0x3333333333333333));
	a = (a + (a >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (int64_t)(a * UINT64_C(0x0101010101010101) >> 56);
}`},
	{"bit_length", nil, `
static inline int64_t bit_length(uint64_t a) {
#ifdef __GNUC__
	return a == 0 ? 0 : 64 - __builtin_clzll(a);
#else
	int64_t n = 0;
	for (int step = 32; step > 0; step /= 2) {
		if (a >> step != 0) {
			n += step;
			a >>= step;
		}
	}
	return n + (int64_t)a;
#endif
}`},
	{"leading_zeros", []string{"bit_length"}, `
static inline int64_t leading_zeros(uint64_t a) { return 64 - bit_length(a); }`},
	{"trailing_zeros", nil, `
static inline int64_t trailing_zeros(uint64_t a) {
#ifdef __GNUC__
	return a == 0 ? 64 : __builtin_ctzll(a);
#else
	int64_t n = 0;
	for (a = ~a & (a - 1); a != 0; a >>= 1) {
		n++;
	}
	return n;
#endif
}`},
	{"multiply_wide", nil, `
// The 128 bits of a product, the high ones first.
static inline results_uint64_uint64 multiply_wide(uint64_t a, uint64_t b) {
	const uint64_t low = UINT64_C(0xffffffff);
	const uint64_t t = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
	const uint64_t u = (t & low) + (a & low) * (b >> 32);
	return (results_uint64_uint64){(a >> 32) * (b >> 32) + (t >> 32) + (u >> 32), a * b};
}`},
	{"add_carry", nil, `
static inline results_uint64_uint64 add_carry(uint64_t a, uint64_t b, uint64_t carry) {
	const uint64_t sum = a + b + carry;
	return (results_uint64_uint64){sum, ((a & b) | ((a | b) & ~sum)) >> 63};
}`},
	{"sub_borrow", nil, `
static inline results_uint64_uint64 sub_borrow(uint64_t a, uint64_t b, uint64_t borrow) {
	const uint64_t rest = a - b - borrow;
	return (results_uint64_uint64){rest, ((~a & b) | (~(a ^ b) & rest)) >> 63};
}`},
}

// helperNames are not free for what the text names.
var helperNames = func() map[string]bool {
	set := map[string]bool{}
	for _, h := range helpers {
		set[h.name] = true
	}
	return set
}()

// help notes that a helper is used, and those that it uses.
func (g *translator) help(name string) string {
	i := slices.IndexFunc(helpers, func(h helper) bool { return h.name == name })
	g.helped[name] = true
	for _, n := range helpers[i].needs {
		g.help(n)
	}
	return name
}

// helperText is the text of those that are used.
func (g *translator) helperText() (text []string) {
	for _, h := range helpers {
		if g.helped[h.name] {
			text = append(text, strings.Split(h.text, "\n")...)
		}
	}
	return text
}

// useEqual is the function that compares two structs or arrays.
func (g *translator) useEqual(t types.Type, at ast.Node) string {
	name := "equal_" + g.mangle(t, at)
	if g.helped[name] {
		return name
	}
	g.helped[name] = true
	w := lines{}
	pointer := types.Type(types.NewPointer(t))
	w.put("")
	w.put("static bool %s(const %s, const %s) {", name, g.declare(pointer, "a", at), g.declare(pointer, "b", at))
	w.indent++
	switch u := t.Underlying().(type) {
	case *types.Array:
		w.put("for (int64_t i = 0; i < %d; i++) {", u.Len())
		w.indent++
		w.put("if (%s) {", g.unequal(u.Elem(), "a[i]", "b[i]", at))
		w.put("\treturn false;")
		w.put("}")
		w.indent--
		w.put("}")
		w.put("return true;")
	case *types.Struct:
		if u.NumFields() == 0 {
			w.put("(void)a, (void)b;")
		}
		for i := range u.NumFields() {
			f := g.fieldName(u.Field(i))
			if u.Field(i).Name() == "_" {
				continue
			}
			w.put("if (%s) {", g.unequal(u.Field(i).Type(), "a->"+f, "b->"+f, at))
			w.put("\treturn false;")
			w.put("}")
		}
		w.put("return true;")
	}
	w.indent--
	w.put("}")
	g.equals = append(g.equals, w.text...)
	return name
}

func (g *translator) unequal(t types.Type, a, b string, at ast.Node) string {
	switch {
	case isArray(t):
		return fmt.Sprintf("!%s(%s, %s)", g.useEqual(t, at), a, b)
	case isStruct(t):
		return fmt.Sprintf("!%s(&%s, &%s)", g.useEqual(t, at), a, b)
	}
	return a + " != " + b
}
