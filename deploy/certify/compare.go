package certify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Comparison is what two certificates say of each other.
type Comparison struct {
	Boxes    string // how they are of different boxes; "" they are of one
	Settings []Change
	Figures  []Compared
}

// Change is a setting whose value differs: What is its key in the JSON file, Old and New are the
// values, "" where one of the certificates does not have the key.
type Change struct{ What, Old, New string }

// Compare compares an older certificate with a newer one.
//
// A figure is worse where three things hold: it is larger; its difference is beyond the
// noise of the samples, at a chance of 1 in 1000 with samples that do not depend on each
// other; and it is more than a tenth, a time also more than 1 µs. The noise:
//
//	a quantile   the values of the ranks around it, ±3.3·√(n·q·(1-q)), do not meet
//	a worst case k samples of the new one above the old worst would by chance be all in the
//	             new one: (new/(old+new))^k
//	a count      3.3 standard deviations of its share of both counts, by ticks; one that
//	             was 0 and is not any more is worse whatever its size
//
// The dearest tick of the plant, which has no samples, is worse from a quarter on. Ratios
// to cyclictest are shown and not judged: their parts are.
func Compare(old, now *Certificate) (*Comparison, error) {
	a, err := factsOf(old)
	if err != nil {
		return nil, err
	}
	b, err := factsOf(now)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Boxes: boxes(old, now)}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if x, y := a.setting(key), b.setting(key); x != y && settings.MatchString(key) {
			c.Settings = append(c.Settings, Change{key, x, y})
		}
	}

	for _, f := range figures {
		c.Figures = append(c.Figures, f.compare(side{old, a}, side{now, b}))
	}
	return c, nil
}

// facts is a certificate by the keys of its JSON, as in "run.late_ns.max": what is not there is
// not 0. An element of a list goes by its name, interface or role, otherwise by its place.
type facts map[string]any

func factsOf(c *Certificate) (facts, error) {
	text := c.text
	if text == nil {
		var err error
		if text, err = json.Marshal(c); err != nil {
			return nil, fmt.Errorf("certify: %w", err)
		}
	}

	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	f := facts{}
	f.add("", tree)
	return f, nil
}

func (f facts) add(key string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			f.add(key+"."+name, below)
		}
	case []any:
		for i, element := range v {
			f.add(fmt.Sprint(key, ".", nameOf(element, i)), element)
		}
	default:
		f[strings.TrimPrefix(key, ".")] = v
	}
}

// nameOf is what an element of a list goes by.
func nameOf(element any, place int) any {
	fields, _ := element.(map[string]any)
	for _, keys := range [][]string{{"role", "name"}, {"name"}, {"interface"}} {
		var words []string
		for _, key := range keys {
			if word, is := fields[key].(string); is {
				words = append(words, word)
			}
		}

		if len(words) == len(keys) {
			return strings.Join(words, " ")
		}
	}

	return place
}

// number is a fact that is one; nil where there is none.
func (f facts) number(key string) *float64 {
	if v, is := f[key].(float64); is {
		return &v
	}
	return nil
}

// settings matches the keys of the host's settings, of what was asked for and of what ran.
var settings = regexp.MustCompile(`^(box|asked|buses|versions|doctor\.host\.(cpu|priority|timer)|doctor\.checks\..*\.(verdict|found)` +
	`|cut_short|deadline|representative|run\.(besteffort|overrun|step_ns))\b`)

// setting is a fact as text; "" there is none. Times are shown with their unit.
func (f facts) setting(key string) string {
	switch v := f[key].(type) {
	case nil:
		return ""
	case float64:
		if strings.HasSuffix(key, "_ns") {
			return time.Duration(v).String()
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return passing.ReplaceAllString(fmt.Sprint(v), "")
	}
}

// boxes says how two certificates are of different boxes.
func boxes(old, now *Certificate) string {
	a, b := old.Box, now.Box
	if a.ID == b.ID && a.Board == b.Board && a.Processor == b.Processor && (a.ID != "" || a.Name == b.Name) {
		return ""
	}
	say := func(c *Certificate) string {
		known := slices.DeleteFunc([]string{c.Box.Board, c.Box.Processor, c.Box.ID}, func(s string) bool { return s == "" })
		return fmt.Sprintf("%s (%s)", c.Box.Name, strings.Join(known, ", "))
	}

	return fmt.Sprintf("the old one is of %s, the new one of %s", say(old), say(now))
}

// passing matches what a check of the doctor finds and is another every time.
var passing = regexp.MustCompile(` ?\(\d+ so far\)| \d+ (?:FIFO|RR)`)

// Worse lists the figures that are.
func (c *Comparison) Worse() []Compared {
	return slices.DeleteFunc(slices.Clone(c.Figures), func(f Compared) bool { return f.Verdict != Worse })
}

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) {
	if c.Boxes != "" {
		fmt.Fprintf(w, "DIFFERENT BOXES: %s\n\n", c.Boxes)
	}
	for _, s := range c.Settings {
		fmt.Fprintf(w, "  %s\n    was  %s\n    is   %s\n", s.What, cmp.Or(s.Old, "-"), cmp.Or(s.New, "-"))
	}
	if len(c.Settings) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  %-38s%12s%12s%8s\n", "", "old", "new", "ratio")
	for _, f := range c.Figures {
		fmt.Fprintf(w, "  %-38s%12s%12s%8s  %s\n", f.Name, f.number(f.Old), f.number(f.New), f.ratio(), f.verdict())
	}
	switch worse := len(c.Worse()); {
	case worse > 0:
		fmt.Fprintf(w, "\n%d figures are worse\n", worse)
	case len(c.Settings) == 0 && !slices.ContainsFunc(c.Figures, func(f Compared) bool { return f.Verdict != Same && f.Verdict != Unknown }):
		fmt.Fprint(w, "\nnothing changed\n")
	default:
		fmt.Fprint(w, "\nno figure is worse\n")
	}
}
