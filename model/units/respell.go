package units

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Respell returns the spelling that Parse reads for a unit spelled in another way: "kg.m2" for
// "kgm2", "kg*m^2" and "kg m2", "rpm" for "RPM" and "min-1", "N.m" for "Unit_NewtoMeter". It is ""
// for a unit that Parse reads already, and where the meaning is not clear.
func Respell(unit string) string {
	text := strings.TrimPrefix(strings.Trim(unit, "[]'\" \t"), "Unit_")
	_, err := parse(text)
	if err == nil && text == unit || text == "" || len(text) > 100 {
		return ""
	}
	if same, ok := wholeUnits[squeezed.Replace(strings.ToLower(text))]; ok {
		return same
	}

	text = joins.Replace(text)
	text = besideJoin.ReplaceAllString(text, "$1")
	text = negativePower.ReplaceAllString(text, "$1^$2")
	text = betweenFactors.ReplaceAllString(text, ".$1")
	text = letters.ReplaceAllStringFunc(text, respellFactors)
	text = power.ReplaceAllString(text, "$1")
	if _, err := parse(text); err != nil {
		return ""
	}
	if same, ok := wholeUnits[text]; ok {
		return same
	}
	return text
}

// Forms of a unit that Respell changes.
var (
	squeezed       = strings.NewReplacer(" ", "", "\t", "", "_", "", "^", "", "⁻¹", "-1")
	joins          = strings.NewReplacer("**", "^", "*", ".", "×", ".", "⋅", ".", "•", ".", "_", " ", " per ", "/", " squared", "2")
	besideJoin     = regexp.MustCompile(`\s*([./·^()])\s*`)
	negativePower  = regexp.MustCompile(`([A-Za-z])(-[0-9])`)
	betweenFactors = regexp.MustCompile(`\s+|-([A-Za-zµμ°])`)
	power          = regexp.MustCompile(`\^([0-9])`)
	letters        = regexp.MustCompile(`[A-Za-zµμ°%]+`)
)

// wholeUnits holds units by another spelling, in lower case without blanks, "_" and "^".
var wholeUnits = map[string]string{
	"rpm": "rpm", "min-1": "rpm", "/min": "rpm", "r/min": "rpm", "rev/min": "rpm", "u/min": "rpm", "upm": "rpm",
	"1/min": "rpm", "1/minute": "rpm", "minutinver": "rpm", "km/h": "km/h", "km/hr": "km/h", "kgs": "kg",
	"nm": "N.m", "kgm2": "kg.m2", "kg.m2": "kg.m2",
	"c": "degC", "degc": "degC", "°c": "degC", "celsius": "degC", "degrecelsi": "degC", "degreecelsius": "degC",
	"degreescelsius": "degC", "degreofarc": "deg", "degreofarcpersecon": "deg/s", "pct": "%", "percent": "%",
}

// symbols holds the units that Respell separates where they follow each other, as in "kNm". A second
// is the only time among them: "Nms" is N.m.s.
var symbols = map[string]string{
	"kg": "kg", "g": "g", "N": "N", "mN": "mN", "kN": "kN", "MN": "MN", "W": "W", "kW": "kW", "A": "A", "V": "V",
	"Pa": "Pa", "kPa": "kPa", "MPa": "MPa", "m": "m", "mm": "mm", "cm": "cm", "km": "km", "s": "s", "h": "h",
}

// words holds the parts of units that are written out, also cut off as in the databases of some
// makers. A prefix ends in "-".
var words = map[string]string{
	"per": "/", "squar": "2", "inver": "^-1",
	"kilo": "k-", "milli": "m-", "mega": "M-", "hecto": "h-",
	"newto": "N", "newton": "N", "newtons": "N", "meter": "m", "meters": "m", "metre": "m", "metres": "m",
	"gram": "g", "grams": "g", "pasca": "Pa", "pascal": "Pa", "bar": "bar", "bars": "bar", "watt": "W", "joule": "J",
	"volt": "V", "volts": "V", "amper": "A", "ampere": "A", "amp": "A", "amps": "A", "kelvi": "K", "kelvin": "K",
	"sec": "s", "secs": "s", "secon": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us",
	"mins": "min", "minut": "min", "minute": "min", "minutes": "min", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"degre": "deg", "degree": "deg", "degrees": "deg", "radian": "rad", "radians": "rad", "hertz": "Hz",
}

// respellFactors returns known units for the letters in a unit, or the letters as they are.
func respellFactors(word string) string {
	if _, ok := unitAtom(word); ok {
		return word
	}
	if parts := splitUnit(word, symbols); parts != nil {
		return joinParts(parts)
	}
	if name := inOtherCase(word); name != "" {
		return name
	}
	if parts := splitUnit(strings.ToLower(word), words); parts != nil {
		return joinParts(parts)
	}
	return word
}

// inOtherCase returns the only unit of that name with other capitals; "" if there is none or several.
func inOtherCase(word string) (found string) {
	try := func(name string) {
		if strings.EqualFold(name, word) && len(word) > 1 {
			if found += name; found != name {
				found = "several"
			}
		}
	}
	for name := range atoms {
		try(name)
	}
	for si := range derived {
		for prefix := range prefixes {
			try(prefix + si)
		}
	}

	if found == "several" {
		return ""
	}
	return found
}

// splitUnit splits text into words of a dictionary, longest first, and returns their meanings; nil if
// it cannot.
func splitUnit(text string, dictionary map[string]string) []string {
	for n := len(text); n > 0; n-- {
		part, ok := dictionary[text[:n]]
		if !ok {
			continue
		}
		if n == len(text) {
			return []string{part}
		}
		if rest := splitUnit(text[n:], dictionary); rest != nil {
			return append([]string{part}, rest...)
		}
	}

	return nil
}

// joinParts joins units with ".", and prefixes, powers and "/" without it.
func joinParts(parts []string) (text string) {
	glued := true
	for _, p := range parts {
		if !glued && strings.Trim(p, "/2^-1") != "" {
			text += "."
		}
		text += strings.TrimSuffix(p, "-")
		glued = p == "/" || strings.HasSuffix(p, "-")
	}
	return text
}

// Advice for a product of units, and for an unknown unit.
const (
	joinFactors = "the factors of a unit are joined with a dot, as in N.m"
	listUnits   = "`lockstep help numbers-and-units` lists the units"
)

// writeUnit returns the advice to write a unit as Respell proposes; "" without a proposal.
func writeUnit(unit string) string {
	if right := Respell(unit); right != "" {
		return "write " + right
	}
	return ""
}

// respellQuantity returns the error of a number with a unit that says how both are written; nil if this
// is not clear.
func respellQuantity(text string) error {
	m := quantityForm().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return nil
	}
	sign, number, unit := m[1], m[2], m[3]
	right := unit
	if _, err := evaluate("1 "+unit, nil); err != nil {
		if right = Respell(unit); right == "" {
			return nil
		}
	}

	list := plainNumbers(number)
	for i := range list {
		list[i] = WithUnit(sign+list[i], right)
		if _, err := evaluate(list[i], nil); err != nil {
			return nil
		}
	}
	write := strings.Join(list, " or ")
	if plainNumbers(number)[0] == number {
		return fmt.Errorf("%q is not a known unit; write %s", unit, write)
	}
	return fmt.Errorf("a number has a decimal point and no other separators; write %s", write)
}

// Forms of a quantity and of its number, with separators that numbers of lockstep do not have.
var (
	quantityForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([+-]?)\s*([0-9]+(?:[ _'.,][0-9]{3})*(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]+)?` +
			`(?:\s*[·*×]\s*10\^-?[0-9]+)?)\s*((?:1/|[/A-Za-zµμ°%\['"]).*)?$`)
	})
	powerOfTen = regexp.MustCompile(`\s*[·*×]\s*10\^`)
	separators = strings.NewReplacer(" ", "", "_", "", "'", "")
)

// plainNumbers returns what a number with separators can mean, without them: one number, or two for
// "1,500".
func plainNumbers(number string) []string {
	number = separators.Replace(powerOfTen.ReplaceAllString(number, "e"))
	comma, point := strings.LastIndexByte(number, ','), strings.LastIndexByte(number, '.')
	none := func(sep string) string { return strings.ReplaceAll(number, sep, "") }
	switch commas := strings.Count(number, ","); {
	case comma < 0 && strings.Count(number, ".") < 2:
		return []string{number}
	case comma < 0:
		return []string{none(".")}
	case point > comma || commas > 1:
		return []string{none(",")}
	case point >= 0:
		return []string{strings.Replace(none("."), ",", ".", 1)}
	case len(number)-comma == 4 && comma <= 3 && number[0] != '0':
		return []string{none(","), strings.Replace(number, ",", ".", 1)}
	}
	return []string{strings.Replace(number, ",", ".", 1)}
}
