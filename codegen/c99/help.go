package c99

import (
	"slices"
	"strings"
)

// helper is a C function for an operation of Go that C's operators do not have.
type helper struct {
	name  string
	needs []string // helpers that it calls
	text  string
}

// helpers are the helpers in the order in which they are written.
var helpers = []helper{
	{"wrap64", nil, `
// wrap64 returns the signed number with these bits. The result of a cast would depend on the
// compiler.
static inline int64_t wrap64(uint64_t bits) {
	int64_t n;
	memcpy(&n, &bits, sizeof n);
	return n;
}`},
	{"wrap8", nil, `
// wrap8 returns the signed number with the low 8 bits.
static inline int8_t wrap8(uint64_t bits) {
	const uint8_t low = (uint8_t)bits;
	int8_t n;
	memcpy(&n, &low, sizeof n);
	return n;
}`},
	{"add64", []string{"wrap64"}, `
// add64, sub64 and mul64 wrap around at an overflow.
static inline int64_t add64(int64_t a, int64_t b) { return wrap64((uint64_t)a + (uint64_t)b); }`},
	{"sub64", []string{"wrap64"}, `
static inline int64_t sub64(int64_t a, int64_t b) { return wrap64((uint64_t)a - (uint64_t)b); }`},
	{"mul64", []string{"wrap64"}, `
static inline int64_t mul64(int64_t a, int64_t b) { return wrap64((uint64_t)a * (uint64_t)b); }`},
	{"div64", []string{"sub64"}, `
// div64 returns the truncated quotient; 0 for the divisor 0.
static inline int64_t div64(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? sub64(0, a) : a / b; }`},
	{"mod64", nil, `
static inline int64_t mod64(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }`},
	{"shl64", nil, `
// shl64, shr64 and sar64 shift by any count.
static inline uint64_t shl64(uint64_t a, uint64_t count) { return count < 64 ? a << count : 0; }`},
	{"shr64", nil, `
static inline uint64_t shr64(uint64_t a, uint64_t count) { return count < 64 ? a >> count : 0; }`},
	{"sar64", nil, `
static inline int64_t sar64(int64_t a, uint64_t count) {
	const unsigned n = count < 63 ? (unsigned)count : 63;
	return a < 0 ? ~(~a >> n) : a >> n;
}`},
	{"to_int64", nil, `
// to_int64 returns the integer part; INT64_MIN if it does not fit or x is NaN.
static inline int64_t to_int64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }`},
	{"bits_of", nil, `
// bits_of returns the bits of a double, double_of the double with these bits.
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
	{"min_int64", nil, `
static inline int64_t min_int64(int64_t a, int64_t b) { return a < b ? a : b; }`},
	{"max_int64", nil, `
static inline int64_t max_int64(int64_t a, int64_t b) { return a > b ? a : b; }`},
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
// multiply_wide returns the 128 bits of a product, the high half first.
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

// helperNames are the names of present and former helpers, which no variable may have. The former
// ones are kept so that the variables in the C of a plant keep their names.
var helperNames = func() map[string]bool {
	set := wordSet("least most")
	for _, h := range helpers {
		set[h.name] = true
	}
	return set
}()

// useHelper adds a helper and those that it calls to the file. It returns the name.
func (g *translator) useHelper(name string) string {
	i := slices.IndexFunc(helpers, func(h helper) bool { return h.name == name })
	g.usedHelpers[name] = true
	for _, n := range helpers[i].needs {
		g.useHelper(n)
	}
	return name
}

// helperText returns the lines of the helpers in use.
func (g *translator) helperText() (text []string) {
	for _, h := range helpers {
		if g.usedHelpers[h.name] {
			text = append(text, strings.Split(h.text, "\n")...)
		}
	}

	return text
}
