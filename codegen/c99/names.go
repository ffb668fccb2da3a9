package c99

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// wordSet returns the words of a text as a set.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// cReserved are names that no identifier may have: keywords of C and C++, macros of the headers,
// and macros of compilers in their GNU or Microsoft modes.
var cReserved = wordSet(`
	auto break case char const continue default do double else enum extern float for goto if inline int long
	register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
	_Bool _Complex _Imaginary alignas alignof and and_eq asm atomic bitand bitor bool catch class compl concept
	const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false friend module
	mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast
	requires static_assert static_cast template this thread_local throw true try typeid typename typeof
	typeof_unqual using virtual wchar_t xor xor_eq
	NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL NULL FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL
	MATH_ERRNO MATH_ERREXCEPT math_errhandling DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS MAXFLOAT
	M_E M_PI M_PI_2 M_PI_4 M_LN2 M_SQRT2 linux unix i386 near far interface small errno assert I
	isnan isinf isfinite isnormal signbit fpclassify isless isgreater isunordered
	bool_ true_ false_ size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
	intptr_t uintptr_t intmax_t uintmax_t float_t double_t main`)

// cLibrary are functions of the headers: no identifier at file level may have their names.
var cLibrary = wordSet(`
	acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor
	fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf
	nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh
	tgamma trunc j0 j1 jn y0 y1 yn gamma drem finite significand scalb exp10 pow10 sincos isnanl
	memcpy memmove memset memcmp memchr strcpy strcat strcmp strlen strchr strstr strtok strerror index rindex
	bcmp bcopy bzero ffs abs labs div abort exit signgam basename stpcpy strdup strsep swab mempcpy`)

// cCalled are the library functions that the generated code calls: no local may hide them.
var cCalled = wordSet(`fabs sqrt floor ceil trunc copysign memcpy memmove memset`)

// cIdentifier returns a Go name as a C identifier.
func cIdentifier(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '_', '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "u%x", r)
		}
	}

	name = b.String()
	if name == "_" || strings.HasPrefix(name, "__") || len(name) > 1 && name[0] == '_' && 'A' <= name[1] && name[1] <= 'Z' {
		name = "x" + name
	}
	if cReserved[name] {
		name += "_"
	}
	return name
}

// unusedName returns name, or name with a number, such that no set contains it.
func unusedName(name string, taken ...map[string]bool) string {
	clash := func(s string) bool {
		return slices.ContainsFunc(taken, func(set map[string]bool) bool { return set[s] })
	}
	for i, candidate := 2, name; ; i++ {
		if !clash(candidate) {
			return candidate
		}
		candidate = fmt.Sprintf("%s_%d", name, i)
	}
}

// nameGlobals chooses the C names of the package's declarations. Types get the prefix; functions
// and tables are static and need none.
func (g *translator) nameGlobals() {
	objects := make([]types.Object, len(g.order))
	for o, i := range g.order {
		objects[i] = o
	}
	for _, o := range objects {
		name := cIdentifier(o.Name())
		switch o := o.(type) {
		case *types.TypeName:
			name = g.prefix + "_" + strings.ToLower(name)
		case *types.Func:
			if recv := o.Signature().Recv(); recv != nil && namedOf(recv.Type()) != g.kernel {
				name = strings.ToLower(namedOf(recv.Type()).Name()) + "_" + name
			}
		}

		g.names[o] = unusedName(name, g.taken, cLibrary, helperNames)
		g.taken[g.names[o]] = true
	}
}

// nameLocals chooses the names of a function's variables. A variable that hides another in Go gets
// a name of its own, since a C name is visible in its own initialiser.
func (g *translator) nameLocals(d *ast.FuncDecl) {
	g.locals = map[string]bool{}
	var scope func(s *types.Scope, outer map[string]bool)
	scope = func(s *types.Scope, outer map[string]bool) {
		inner := map[string]bool{}
		for name := range outer {
			inner[name] = true
		}
		var list []types.Object
		for _, name := range s.Names() {
			list = append(list, s.Lookup(name))
		}
		slices.SortFunc(list, func(a, b types.Object) int { return int(a.Pos() - b.Pos()) })
		for _, o := range list {
			name := unusedName(cIdentifier(o.Name()), inner, g.taken, cCalled, helperNames)
			g.names[o], inner[name], g.locals[name] = name, true, true
		}

		for child := range s.Children() {
			scope(child, inner)
		}
	}

	scope(g.info.Scopes[d.Type], nil)
}

// newLocal returns a name that no local of the function has.
func (g *translator) newLocal(stem string) string {
	name := unusedName(stem, g.locals, g.taken, cCalled, helperNames)
	g.locals[name] = true
	return name
}

// namedOf returns the named type of t or of its target, or nil.
func namedOf(t types.Type) *types.TypeName {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj()
	}
	return nil
}
