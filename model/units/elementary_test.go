package units

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// The values are by mpmath, with 3000 bits, rounded once. Package math differs at some of them, at
// others on amd64 than on arm64.
func TestFunctionsOfExpressionsAreRoundedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		x    float64
		want uint64
	}{
		{"sin", 0, 0},
		{"sin", 5e-324, 0x0000000000000001},
		{"sin", 1e-09, 0x3e112e0be826d695},
		{"sin", 0.75, 0x3fe5cffc16bf8f0d},
		{"sin", 0.77, 0x3fe646bd686fecc6},
		{"sin", 3.141592653589793, 0x3ca1a62633145c07},
		{"sin", 22.0, 0xbf8220a29f6eb9f4},
		{"sin", -355.0, 0x3eff9bd0307d1de3},
		{"sin", 1e+22, 0xbfeb453ab76bf397},
		{"sin", 5.319372648326541e+255, 0x3ff0000000000000},
		{"sin", 1.7976931348623157e+308, 0x3f7452fc98b34e97},
		{"cos", 5e-324, 0x3ff0000000000000},
		{"cos", 0.46, 0x3fecac76498be14b},
		{"cos", 0.8, 0x3fe64b6bde719865},
		{"cos", 1.5707963267948966, 0x3c91a62633145c07},
		{"cos", -11.0, 0x3f7220ae41ee2fdf},
		{"cos", 52174.0, 0x3ed719a47d413c35},
		{"cos", 1e+22, 0x3fe0be2cef01c8f4},
		{"cos", 5.319372648326541e+255, 0xbc214ae72e6ba22f},
		{"cos", 1.7976931348623157e+308, 0xbfefffe62ecfab75},
		{"exp", -745.2, 0x0000000000000000},
		{"exp", -745.13, 0x0000000000000001},
		{"exp", -708.4, 0x000ff15b469edf89},
		{"exp", -1.5, 0x3fcc8f87724b5c1d},
		{"exp", -5e-324, 0x3ff0000000000000},
		{"exp", 0.01, 0x3ff0292a5d2f2226},
		{"exp", 0.27, 0x3ff4f59d48ad2681},
		{"exp", 0.28, 0x3ff52b8a2a85a16b},
		{"exp", 0.31, 0x3ff5d096da3be264},
		{"exp", 1.5, 0x4011ed3fe64fc541},
		{"exp", 3.3, 0x403b1cd5e7807b7b},
		{"exp", 700.0, 0x7f0d945df4f8ec8e},
		{"exp", 709.782712893384, 0x7fefffffffffff2a},
	} {
		text := c.name + "(" + strconv.FormatFloat(c.x, 'g', -1, 64) + ")"
		v, err := Quantity(text, "1", nil)
		if err != nil || math.Float64bits(v) != c.want {
			t.Errorf("%s = %016x (%v), want %016x", text, math.Float64bits(v), err, c.want)
		}
	}
}

func TestFunctionsOfExpressionsAgreeWithPackageMath(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for name, f := range map[string]func(float64) float64{"sin": math.Sin, "cos": math.Cos, "exp": math.Exp} {
		for i := range 1000 {
			x := float64(r.NormFloat64() * math.Pow(10, float64(i%14-10)))
			got, want := functions[name](x), f(x)
			if !(math.Abs(got-want) <= 4e-16*math.Abs(want)+5e-324 || got == want) {
				t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
			}
		}
	}
}
