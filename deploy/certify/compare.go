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
	"sync"
	"time"
)

// Comparison lists the differences between two certificates.
type Comparison struct {
	Boxes    string // description of both hosts; "" if the certificates are of the same host
	Settings []Change
	Figures  []Compared
}

// Change is a setting whose value differs: What is its key in the JSON file, Old and New are the
// values, "" if a certificate does not have the key.
type Change struct{ What, Old, New string }

// Compare compares an older certificate with a newer one.
//
// A figure is worse if three conditions hold. It is larger. The difference exceeds the noise
// of the samples, at a probability of 1 in 1000 for independent samples. The new value exceeds
// 1.1 times the old one; a time also grows by more than 1 µs. The difference exceeds the noise:
//
//	a quantile   if the ranges of ranks q·n ± 3.3·√(n·q·(1-q)) do not overlap
//	a worst case if k samples exceed the worst case of the other certificate, and the
//	             probability that all k are in one certificate, (new/(old+new))^k, is small
//	a count      if its rates per tick differ by more than 3.3 standard deviations; a count
//	             that was 0 and is not any more is always worse
//
// The worst tick of the plant has no samples; it is worse above 1.25 times the old value.
// Ratios to cyclictest are printed without a verdict: the times of both programs have one.
func Compare(old, now *Certificate) (*Comparison, error) {
	a, err := factsOf(old)
	if err != nil {
		return nil, err
	}
	b, err := factsOf(now)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Boxes: describeDifferentHosts(old, now)}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if x, y := a.setting(key), b.setting(key); x != y && settings().MatchString(key) {
			c.Settings = append(c.Settings, Change{key, x, y})
		}
	}

	for _, f := range figures {
		c.Figures = append(c.Figures, f.compare(source{old, a}, source{now, b}))
	}
	return c, nil
}

// facts maps the keys of a certificate's JSON, like "run.late_ns.max", to their values. A key
// that the JSON does not have is absent. An element of a list has its role and name, its name or
// its interface as key, otherwise its index.
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
			f.add(fmt.Sprint(key, ".", elementKey(element, i)), element)
		}
	default:
		f[strings.TrimPrefix(key, ".")] = v
	}
}

// elementKey returns the key of an element of a list: its name, or its index if it has none.
func elementKey(element any, index int) any {
	fields, _ := element.(map[string]any)
	for _, keys := range [][]string{{"role", "name"}, {"name"}, {"interface"}} {
		var values []string
		for _, key := range keys {
			if value, ok := fields[key].(string); ok {
				values = append(values, value)
			}
		}

		if len(values) == len(keys) {
			return strings.Join(values, " ")
		}
	}

	return index
}

// number returns the number of a key; nil if the key is absent or not a number.
func (f facts) number(key string) *float64 {
	if v, ok := f[key].(float64); ok {
		return &v
	}
	return nil
}

// settings matches the keys of the host, of the requested flags and of the versions. A target, which locks its
// memory, does not call it.
var settings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(box|asked|buses|versions|doctor\.host\.(cpu|priority|timer)|doctor\.checks\..*\.(verdict|found)` +
		`|cut_short|deadline|representative|run\.(besteffort|overrun|step_ns))\b`)
})

// setting formats the value of a key; "" if the key is absent. Times have their unit.
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
		return volatileText.ReplaceAllString(fmt.Sprint(v), "")
	}
}

// describeDifferentHosts describes both hosts if the certificates are of different ones; otherwise "".
func describeDifferentHosts(old, now *Certificate) string {
	a, b := old.Box, now.Box
	if a.ID == b.ID && a.Board == b.Board && a.Processor == b.Processor && (a.ID != "" || a.Name == b.Name) {
		return ""
	}
	describe := func(c *Certificate) string {
		known := slices.DeleteFunc([]string{c.Box.Board, c.Box.Processor, c.Box.ID}, func(s string) bool { return s == "" })
		return fmt.Sprintf("%s (%s)", c.Box.Name, strings.Join(known, ", "))
	}

	return fmt.Sprintf("the old certificate is of %s, the new one of %s", describe(old), describe(now))
}

// volatileText matches the parts of a doctor's finding that differ each time: interrupt counts
// and thread numbers.
var volatileText = regexp.MustCompile(` ?\(\d+ so far\)| \d+ (?:FIFO|RR)`)

// Worse lists the figures with the verdict Worse.
func (c *Comparison) Worse() []Compared {
	return slices.DeleteFunc(slices.Clone(c.Figures), func(f Compared) bool { return f.Verdict != Worse })
}

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) {
	if c.Boxes != "" {
		fmt.Fprintf(w, "DIFFERENT HOSTS: %s\n\n", c.Boxes)
	}
	for _, s := range c.Settings {
		fmt.Fprintf(w, "  %s\n    was  %s\n    is   %s\n", s.What, cmp.Or(s.Old, "-"), cmp.Or(s.New, "-"))
	}
	if len(c.Settings) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  %-38s%12s%12s%8s\n", "", "old", "new", "ratio")
	for _, f := range c.Figures {
		fmt.Fprintf(w, "  %-38s%12s%12s%8s  %s\n", f.Name, f.format(f.Old), f.format(f.New), f.formatRatio(), f.formatVerdict())
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
