package model_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/rt/guide"
)

var update = flag.Bool("update", false, "write the generated parts of PLANT.md")

var plantGuide = guide.Guide{Name: "plant", Source: model.Guide}

// generated is a part of the guide between its marker lines; the first names element types.
var generated = regexp.MustCompile(`(?s)<!-- ([a-z0-9_ ]+) -->\n.*?<!-- end -->\n`)

// TestGuideTablesMatchTheCode writes the tables into PLANT.md with -update.
func TestGuideTablesMatchTheCode(t *testing.T) {
	w := wordsOf(t)
	text := generated.ReplaceAllStringFunc(string(model.Guide), func(old string) string {
		names := generated.FindStringSubmatch(old)[1]
		part := fmt.Sprintf("<!-- %s -->\n\n%s\n<!-- end -->\n", names, w.part(t, strings.Fields(names)))
		if part != old && !*update {
			t.Errorf("PLANT.md differs from the code for %s; go test ./model -run Guide -update writes\n%s", names, part)
		}
		return part
	})
	if *update {
		if err := os.WriteFile("PLANT.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGuideHasATopicForEachElementTypeOnly(t *testing.T) {
	var types, parts, topics []string
	for _, k := range library.Elements() {
		types = append(types, k.Name)
	}
	for _, m := range generated.FindAllStringSubmatch(string(model.Guide), -1) {
		parts = append(parts, strings.Fields(m[1])...)
	}
	for line := range strings.Lines(string(model.Guide)) {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			topics = append(topics, strings.Split(strings.ReplaceAll(strings.TrimSpace(heading), "`", ""), ", ")...)
		}
	}

	if !slices.Equal(parts, topics) {
		t.Errorf("headings %q\nhave tables of %q", topics, parts)
	}
	slices.Sort(types)
	slices.Sort(parts)
	if !slices.Equal(parts, types) {
		t.Errorf("tables of %q\nwant types   %q", parts, types)
	}
	for _, name := range types {
		if _, ok := plantGuide.Section(name); !ok {
			t.Errorf("no topic %s", name)
		}
	}
}

// TestGuideWritesProductsAsCode requires formulas in backquotes: Markdown reads * as emphasis.
func TestGuideWritesProductsAsCode(t *testing.T) {
	code := false
	for i, line := range strings.Split(string(model.Guide), "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if !code && strings.Contains(regexp.MustCompile("`[^`]*`").ReplaceAllString(line, ""), "*") {
			t.Errorf("PLANT.md:%d: %s", i+1, line)
		}
	}
}

// worked returns the plant of the guide with a name.
func worked(t *testing.T, name string) string {
	t.Helper()
	for _, b := range plantGuide.Blocks() {
		if strings.HasPrefix(b.Text, "plant: "+name+"\n") {
			return b.Text
		}
	}
	t.Fatalf("PLANT.md has no plant %s", name)
	return ""
}

func TestGuidePlantsRun(t *testing.T) {
	plants := 0
	for _, b := range plantGuide.Blocks() {
		if !strings.HasPrefix(b.Text, "plant: ") {
			continue
		}
		plants++
		bench := modeltest.New(t, b.Text, 5*time.Millisecond)
		bench.To(1, func(at float64) {
			for i, y := range bench.Y {
				if math.IsNaN(y) || math.IsInf(y, 0) {
					t.Fatalf("line %d: output %s is %g at %g s", b.Line, bench.Tables.Outputs[i].Name, y, at)
				}
			}
		})
	}
	if plants < 3 {
		t.Errorf("%d plants", plants)
	}
}

// TestGuideExamplesRun requires each example of an element in a plant of the guide, since
// TestGuidePlantsRun runs these plants.
func TestGuideExamplesRun(t *testing.T) {
	all, types := "", map[string]bool{}
	for _, b := range plantGuide.Blocks() {
		if strings.HasPrefix(b.Text, "plant: ") {
			all += b.Text
		}
	}
	entry := regexp.MustCompile(`(?m)^\w+: \{type: (\w+).*\n(?: .*\n)*`)
	for _, b := range plantGuide.Blocks() {
		if b.Language != "yaml" || strings.HasPrefix(b.Text, "plant: ") {
			continue
		}
		list := entry.FindAllStringSubmatch(b.Text, -1)
		length := 0
		for _, m := range list {
			length += len(m[0])
			types[m[1]] = true
			if !strings.Contains(all, "  "+strings.ReplaceAll(strings.TrimSuffix(m[0], "\n"), "\n", "\n  ")+"\n") {
				t.Errorf("PLANT.md:%d: no plant of the guide has\n%s", b.Line, m[0])
			}
		}
		if length < len(b.Text) {
			t.Errorf("PLANT.md:%d: not elements alone:\n%s", b.Line, b.Text)
		}
	}
	for _, k := range library.Elements() {
		if !types[k.Name] {
			t.Errorf("no example of %s", k.Name)
		}
	}
}

// TestGuideListsExactlyTheKeysOfEachSection gets the keys from the reader, whose error for an
// unknown key lists all known keys.
func TestGuideListsExactlyTheKeysOfEachSection(t *testing.T) {
	const body = "elements: {x: {type: inertia, J: 1}}\n"
	known := map[string][]string{} // topic -> keys
	for _, c := range []struct{ topic, text string }{
		{"sections", "xyz: 1"},
		{"inputs", "inputs: {a: {xyz: 1}}"},
		{"assemblies", "assemblies: {a: {xyz: 1}}"},
		{"start-presets", "start: {a: {unit: 1, xyz: 1}}"},
		{"start-presets", "start: {a: {b: {xyz: 1}}}"},
		{"outputs", body + "outputs: {a: {xyz: 1}}"},
		{"partition", body + "partition: {xyz: 1}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {xyz: 1}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {step: {xyz: 1}}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {ramp: {xyz: 1}}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {sine: {xyz: 1}}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {cosine: {xyz: 1}}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {exp_sine: {xyz: 1}}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {sawtooth: {xyz: 1}}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {pulse: {xyz: 1}}}}"},
		{"values-over-time", "inputs: {a: {unit: 1, default: {trapezoid: {xyz: 1}}}}"},
	} {
		_, err := plantfile.Load("t", []byte("plant: p\n"+c.text+"\n"), library.Elements())
		_, list, ok := strings.Cut(fmt.Sprint(err), "known are ")
		if !ok {
			t.Fatalf("%s: %v", c.text, err)
		}
		known[c.topic] = append(known[c.topic], strings.Split(list, ", ")...)
	}

	word := regexp.MustCompile("`([a-zA-Z_]+)[:`]")
	for topic, keys := range known {
		section, ok := plantGuide.Section(topic)
		if !ok {
			t.Fatalf("no topic %s", topic)
		}
		text := string(section.Source)
		head, said := "", []string(nil)
		for line := range strings.Lines(text) {
			cells := strings.Split(line, "|")
			if len(cells) < 3 {
				head = ""
				continue
			}
			if head == "" {
				head = strings.TrimSpace(cells[1])
			}
			if slices.Contains([]string{"key", "section", "entry", "key beside it"}, head) {
				for _, m := range word.FindAllStringSubmatch(cells[1], -1) {
					said = append(said, m[1])
				}
			}
		}
		for _, key := range said {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: %s is not a key of the reader, which has %q", topic, key, keys)
			}
		}
		for _, key := range keys { // in a table, or where a line of an example begins
			if !slices.Contains(said, key) && !regexp.MustCompile(`(?m)^ *\{?`+key+`:`).MatchString(text) {
				t.Errorf("%s: no key %s", topic, key)
			}
		}
	}
}

// TestGuideDefaultsOverTimeMatchTheCode writes each default over time that the plant with every
// element omits; the motion must not change. Defaults that are numbers come from the table.
func TestGuideDefaultsOverTimeMatchTheCode(t *testing.T) {
	w, written := wordsOf(t), 0
	run := func(text string) []float64 {
		return modeltest.New(t, text, 5*time.Millisecond).To(0.5, nil).Y
	}
	want := run(w.text)
	for _, k := range library.Elements() {
		for _, p := range k.Parameters {
			head := fmt.Sprintf("\n  %s: {type: %s", w.named[k.Name], k.Name)
			_, rest, _ := strings.Cut(w.text, head)
			entry, _, _ := strings.Cut(rest, "}\n")
			if _, err := strconv.ParseFloat(p.Default, 64); err != nil || p.Form != element.OverTime || strings.Contains(entry, p.Key+":") {
				continue
			}
			written++
			got := run(strings.Replace(w.text, head, head+", "+p.Key+": "+p.Default, 1))
			for i := range want[:len(w.plant.Outputs)] {
				if !(math.Abs(got[i]-want[i]) <= 1e-6*(1+math.Abs(want[i]))) {
					t.Errorf("%s: with %s: %s output %s is %g, without it %g", k.Name, p.Key, p.Default, w.plant.Outputs[i].Name, got[i], want[i])
				}
			}
		}
	}
	if written < 6 {
		t.Errorf("%d defaults over time were tried", written)
	}
}

// words describes the elements of the plant with every element.
type words struct {
	text  string
	plant *network.Plant
	kinds map[string]element.Kind
	named map[string]string // name of an element, by type
}

func wordsOf(t *testing.T) words {
	t.Helper()
	w := words{text: worked(t, "every-element"), kinds: map[string]element.Kind{}, named: map[string]string{}}
	for _, k := range library.Elements() {
		w.kinds[k.Name] = k
	}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): \{type: (\w+)`).FindAllStringSubmatch(w.text, -1) {
		if w.named[m[2]] == "" {
			w.named[m[2]] = m[1]
		}
	}
	var err error
	if w.plant, err = plantfile.Load("every-element", []byte(w.text), library.Elements()); err != nil {
		t.Fatal(err)
	}
	return w
}

// can reports whether an output of a form loads.
func (w words) can(format string, args ...any) bool {
	text := strings.Replace(w.text, "\noutputs:\n", "\noutputs:\n  probe: {"+fmt.Sprintf(format, args...)+"}\n", 1)
	_, err := plantfile.Load("probe", []byte(text), library.Elements())
	return err == nil && text != w.text
}

// part returns the generated text of element types that share a section.
func (w words) part(t *testing.T, names []string) string {
	var kinds []element.Kind
	for _, name := range names {
		k, ok := w.kinds[name]
		if !ok || w.named[name] == "" {
			t.Fatalf("%s is no element type, or not in the plant with every element", name)
		}
		kinds = append(kinds, k)
	}

	var out strings.Builder
	for _, text := range []string{flangesOf(kinds), tableOf(kinds), w.readsOf(t, kinds)} {
		if text != "" {
			out.WriteString(text + "\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// quoted returns keys in backquotes, separated by commas.
func quoted(keys []string) string { return "`" + strings.Join(keys, "`, `") + "`" }

// domainOf returns the domain of types, or AnyDomain if they differ.
func domainOf(kinds []element.Kind) network.Domain {
	for _, k := range kinds {
		if k.Domain() != kinds[0].Domain() {
			return network.AnyDomain
		}
	}
	return kinds[0].Domain()
}

// flangesOf describes the flanges of the types, and the node that an element itself forms.
func flangesOf(kinds []element.Kind) string {
	does, do := [...]string{"turns or moves", "turns", "moves"}, [...]string{"turn or move", "turn", "move"}
	mixed := domainOf(kinds) == network.AnyDomain && kinds[0].Domain() != network.AnyDomain
	each := func(words [3]string, of string) (list []string) {
		for _, k := range kinds {
			list = append(list, of+" `"+k.Name+"` "+words[k.Domain()])
		}
		return list
	}

	var joined []string
	flanges := kinds[0].Flanges
	for i := 0; i < len(flanges); {
		first, keys := flanges[i], []string(nil)
		for ; i < len(flanges) && flanges[i].Domain == first.Domain && flanges[i].Missing == first.Missing; i++ {
			keys = append(keys, flanges[i].Key)
		}
		text := quoted(keys)
		switch {
		case mixed:
		case len(keys) > 1:
			text += " " + do[first.Domain]
		default:
			text += " " + does[first.Domain]
		}
		if first.Missing != "" {
			text += " (" + first.Missing + " if left out)"
		}
		joined = append(joined, text)
	}

	var said []string
	if joined != nil {
		said = append(said, "Flanges: "+strings.Join(joined, "; "))
		if mixed {
			said = append(said, strings.Join(each(do, "those of"), ", "))
		}
	}
	switch {
	case kinds[0].Owns && mixed:
		said = append(said, "The element is the node `NAME`", strings.Join(each(does, "that of"), ", "))
	case kinds[0].Owns:
		itself := kinds[0].Itself
		if itself == network.AnyDomain {
			itself = domainOf(kinds)
		}
		said = append(said, "The element is the node `NAME`, which "+does[itself])
	case kinds[0].Hint != "":
		hint := regexp.MustCompile(`NAME\.\w+`).ReplaceAllString(kinds[0].Hint, "`$0`")
		said = append(said, hint)
	}
	if said == nil {
		return ""
	}
	for i, s := range said {
		said[i] = strings.ToUpper(s[:1]) + s[1:] + "."
	}
	return wrap(strings.Join(said, " "))
}

// parametersOf returns the parameters of all types, and the types of each parameter by its key.
func parametersOf(kinds []element.Kind) (list []element.Parameter, users map[string][]string) {
	users = map[string][]string{}
	longest := slices.SortedStableFunc(slices.Values(kinds), func(a, b element.Kind) int { return len(b.Parameters) - len(a.Parameters) })
	for _, k := range longest {
		at := 0
		for _, p := range k.Parameters {
			i := slices.IndexFunc(list, func(q element.Parameter) bool { return q.Key == p.Key })
			if i < 0 {
				i = at
				list = slices.Insert(list, i, p)
			}
			at = i + 1
		}
	}
	for _, k := range kinds {
		for _, p := range k.Parameters {
			users[p.Key] = append(users[p.Key], k.Name)
		}
	}
	return list, users
}

// tableOf returns the table of parameters, and the differences for translational elements.
func tableOf(kinds []element.Kind) string {
	list, users := parametersOf(kinds)
	if list == nil {
		return "It has no parameters.\n"
	}

	d, other, where := domainOf(kinds), network.AnyDomain, "Where it moves"
	if d == network.AnyDomain {
		d, other = network.Rotational, network.Translational
		switch f := kinds[0].Flanges; {
		case len(kinds) > 1 && kinds[1].Domain() == other:
			where = "Of `" + kinds[1].Name + "`"
		case len(f) > 1 && f[1].Domain == network.AnyDomain && f[0].Domain == d: // a tyre: its vehicle is translational
			d, other, where = other, d, "Where `"+f[1].Key+"` turns"
		}
	}

	var out strings.Builder
	out.WriteString("| key | unit | default | value | meaning |\n|---|---|---|---|---|\n")
	var differ []string
	for _, raw := range list {
		p := raw.In(d)
		meaning, value := p.Meaning, valueOf(p)
		if len(value) > 24 {
			meaning, value = meaning+": "+value, string(p.Form)
		}
		if len(users[raw.Key]) < len(kinds) {
			meaning += " (" + quoted(users[raw.Key]) + ")"
		}
		missing := p.Default
		if missing == "" {
			missing = "required"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", p.Key, p.Unit, missing, value, meaning)
		if q := raw.In(other); other != network.AnyDomain && (q.Key != p.Key || q.Unit != p.Unit) {
			text := "`" + q.Key + "`"
			if q.Key != p.Key {
				text += " for `" + p.Key + "`"
			}
			if q.Unit != "" {
				text += " in " + q.Unit
			}
			if rangeOf(q) != rangeOf(p) {
				text += ", " + rangeOf(q)
			}
			if strings.Contains(raw.Default, "|") && !strings.HasPrefix(q.Default, "or ") {
				text += ", default " + q.Default
			}
			differ = append(differ, text)
		}
	}

	if differ != nil {
		out.WriteString("\n" + wrap(where+": "+strings.Join(differ, "; ")+"."))
	}
	return out.String()
}

// valueOf describes the form and the range of a value.
func valueOf(p element.Parameter) string {
	text := string(p.Form)
	switch p.Form {
	case element.AsNumber:
		return rangeOf(p)
	case element.AsWord:
		text = strings.Join(p.Words, ", ")
		if p.Words == nil {
			text = "name"
		}
	case element.NumberList:
		text = "list"
	}
	if of := rangeOf(p); of != "" {
		text += ", " + of
	}
	return text
}

// rangeOf returns the range of the numbers of a parameter; "" for words and maps.
func rangeOf(p element.Parameter) string {
	if p.Form == element.AsWord || p.Form == element.AsMap || p.Unit == "" {
		return ""
	}
	return p.Range()
}

// readsOf describes the outputs and events of the types. It tries each output on the plant with
// every element.
func (w words) readsOf(t *testing.T, kinds []element.Kind) string {
	var order []string
	of := map[string][]string{} // types, by line
	note := func(k element.Kind, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if of[text] == nil {
			order = append(order, text)
		}
		of[text] = append(of[text], k.Name)
	}
	d := domainOf(kinds)
	spell := func(turns, moves string) string {
		if d != network.AnyDomain || turns == moves {
			return "`" + d.Per(turns, moves) + "`"
		}
		return "`" + turns + "` (`" + moves + "`)"
	}

	for _, k := range kinds {
		name := w.named[k.Name]
		var keys []string
		for _, pair := range [][2]string{{"torque", "force"}, {"power", "power"}, {"w_rel", "v_rel"}, {"phi_rel", "s_rel"}} {
			turns, moves := w.can("%s: %s", pair[0], name), w.can("%s: %s", pair[1], name)
			switch {
			case len(k.Flanges) == 0 && !k.Owns && (turns || moves), // no node of its own decides the domain
				turns != moves && d != network.AnyDomain: // that of the type may be that of a third flange
				keys = append(keys, "`"+map[bool]string{true: pair[0], false: pair[1]}[turns]+"`")
			case turns || moves:
				keys = append(keys, spell(pair[0], pair[1]))
			}
		}
		if !strings.Contains(strings.Join(keys, " "), "torque") && !strings.Contains(strings.Join(keys, " "), "force") && w.exerts(name) {
			effort := spell("torque", "force")
			for _, f := range k.Flanges {
				if f.Domain != k.Flanges[0].Domain { // rotational and translational flanges
					effort = "`torque` or `force`"
				}
			}
			keys = append(keys, effort+" with `onto: NODE`")
		}
		if keys != nil {
			note(k, "Outputs: %s", strings.Join(keys, ", "))
		}
		if k.Gives != "" {
			note(k, "Signal: `NAME`%s", unitOf(d, k.Gives))
		}
		for _, q := range k.Signals {
			note(k, "Signal: `NAME.%s`%s: %s", q.Key, unitOf(d, q.Unit), d.Spell(q.Meaning))
		}
		for _, q := range k.Adds {
			signal, state := w.can("signal: %s.%s", name, q.Key), w.can("state: %s.%s", name, q.Key)
			if !signal && !state {
				t.Errorf("the plant with every element has no %s.%s", name, q.Key)
			}
			what := "Output"
			if state {
				what = map[bool]string{true: "Output and state", false: "State"}[signal]
			}
			note(k, "%s: `NAME.%s`%s: %s", what, q.Key, unitOf(d, q.Unit), d.Spell(q.Meaning))
		}
		for _, f := range w.plant.Frictions {
			if element, part, _ := strings.Cut(f.Name, "."); element == name {
				inner := strings.TrimSuffix("NAME."+part, ".")
				slip, effort := spell(inner+".w_rel", inner+".v_rel"), spell(inner+".tau", inner+".f")
				if d != network.AnyDomain {
					slip, effort = "`"+inner+".w_rel`", "`"+inner+".tau`"
					if f.Translational {
						slip, effort = "`"+inner+".v_rel`", "`"+inner+".f`"
					}
				}
				note(k, "Friction element: `%s.mode`, %s, %s; each change of mode is an event", inner, slip, effort)
			}
		}
		if slices.ContainsFunc(w.plant.Switches, func(s network.Region) bool { return s.Name == name }) {
			note(k, "Region: `NAME.region`, from 0; each change is an event")
		}
	}

	out := ""
	for _, text := range order {
		if len(of[text]) < len(kinds) {
			text += " (" + quoted(of[text]) + ")"
		}
		out += strings.TrimSuffix(strings.ReplaceAll(wrap("- "+text+"."), "\n", "\n  "), "  ")
	}
	return out
}

// exerts reports whether an element is a rigid joint or exerts a torque or force on a node.
func (w words) exerts(name string) bool {
	return slices.ContainsFunc(w.plant.Ties, func(t network.Tie) bool { return t.Name == name }) ||
		slices.ContainsFunc(w.plant.Efforts, func(e network.Effort) bool { return e.Element == name })
}

// unitOf returns ", " and the unit in each domain; "" for a number without unit.
func unitOf(d network.Domain, unit string) string {
	turns, moves := network.Rotational.Spell(unit), network.Translational.Spell(unit)
	switch {
	case unit == "1":
		return ""
	case d != network.AnyDomain || turns == moves:
		return ", " + d.Spell(unit)
	}
	return ", " + turns + " (" + moves + ")"
}

// wrap returns a text in lines of at most 100 columns.
func wrap(text string) string {
	out, line := "", ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > 100 {
			out, line = out+line+"\n", ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return out + line + "\n"
}
