package bench_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/io/dbc"
	"lockstep/io/j1939"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/guide"
	"lockstep/rt/virtual"
)

var benchGuide = guide.Guide{Name: "bench", Source: bench.Guide}

// section returns the text of a section of the guide.
func section(t *testing.T, topic string) string {
	t.Helper()
	s, ok := benchGuide.Section(topic)
	if !ok {
		t.Fatalf("the guide has no section %s", topic)
	}
	return string(s.Source)
}

// table is a table of the guide: its rows by the names of its columns.
type table []map[string]string

// tableOf returns the n-th table of a section, n from 0, without the marks of code.
func tableOf(t *testing.T, topic string, n int) (list table) {
	t.Helper()
	parts := strings.Split("\n"+section(t, topic), "\n|---")
	if len(parts) < n+2 {
		t.Fatalf("section %s has no table %d", topic, n)
	}
	cells := func(row string) (list []string) {
		row = strings.ReplaceAll(strings.Trim(row, "|"), `\|`, "\x00")
		for _, c := range strings.Split(row, "|") {
			list = append(list, strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|")))
		}
		return list
	}
	head := cells(parts[n][strings.LastIndexByte(parts[n], '\n')+1:])
	text, _, _ := strings.Cut(parts[n+1], "\n\n")
	for _, row := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		c := cells(row)
		if len(c) != len(head) {
			t.Fatalf("section %s, table %d: %q has %d cells, the head %d", topic, n, row, len(c), len(head))
		}
		r := map[string]string{}
		for i, h := range head {
			r[h] = strings.ReplaceAll(c[i], "`", "")
			if strings.HasPrefix(c[i], "`") {
				r[h+" as code"] = r[h]
			}
		}
		list = append(list, r)
	}
	return list
}

// column returns the cells of a column.
func (l table) column(name string) (cells []string) {
	for _, row := range l {
		cells = append(cells, row[name])
	}
	return cells
}

// same compares the list of the guide with the list of the code, in any order.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: the guide lists %q, the code has %q", what, got, want)
	}
}

// The first bench is a complete file. On a pair and on a card its events are those of the guide.
func TestGuideExampleRuns(t *testing.T) {
	var first, card, shown string
	for _, b := range benchGuide.Blocks() {
		switch {
		case b.Language == "yaml":
			first = b.Text
		case strings.Contains(b.Text, "interface: can0"):
			card = b.Text
		case strings.HasPrefix(b.Text, "time[s],element,"):
			shown = b.Text
		}
	}
	whole := plain(t, []byte(first))
	merge(whole, plain(t, []byte(card)), 4)
	changed := written(t, whole)
	for _, text := range []string{first, changed} {
		dir := t.TempDir()
		file, events := filepath.Join(dir, "first.yaml"), filepath.Join(dir, "events.csv")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := virtual.Simulation{Plant: file, For: 4 * time.Second, Every: 1, Events: events}.Run()
		if err != nil {
			t.Fatal(err)
		}
		if r.Ticks != 800 || r.Missed != 0 || !r.Clean || r.RxFrames < 700 || r.Safe != "" {
			t.Errorf("%d ticks, missed %d, clean %v, %d frames in, safe %q", r.Ticks, r.Missed, r.Clean, r.RxFrames, r.Safe)
		}
		if got, err := os.ReadFile(events); err != nil || shown == "" || !strings.HasPrefix(string(got), shown) {
			t.Errorf("events %v\n%s\nwant them to begin with\n%s", err, got, shown)
		}
	}
	b, err := bench.Parse("card.yaml", "", []byte(changed))
	if err != nil || b.Buses[0].Interface.Text != "can0" || b.Buses[0].RestartNs != 200e6 || b.Buses[0].Messages[0].TimeoutNs != 50e6 {
		t.Errorf("%+v, %v", b, err)
	}
}

// plain reads a YAML file as mappings, lists and texts.
func plain(t *testing.T, data []byte) map[string]any {
	t.Helper()
	r := bench.NewReader("b.yaml")
	var read func(f yamlfile.Field) any
	read = func(f yamlfile.Field) any {
		switch {
		case yamlfile.IsMapping(f.Node):
			m := map[string]any{}
			for _, g := range r.FieldsOf(f, "") {
				m[g.Key] = read(g)
			}
			return m
		case yamlfile.IsList(f.Node):
			list := []any{}
			for _, g := range r.Items(f, "") {
				list = append(list, read(g))
			}
			return list
		}
		return r.Text(f, "")
	}
	m, _ := read(yamlfile.Root(r.Document(data))).(map[string]any)
	if r.Err != nil || m == nil {
		t.Fatalf("%s\n%v", data, r.Err)
	}
	return m
}

// written is the inverse of plain: it writes a line for each key, the name of the bench first.
func written(t *testing.T, m map[string]any) (text string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value, err := json.Marshal(m[key]) // JSON is valid YAML
		if err != nil {
			t.Fatal(err)
		}
		if line := key + ": " + string(value) + "\n"; key == "bench" {
			text = line + text
		} else {
			text += line
		}
	}
	return text
}

// merge puts a fragment of a bench file into a complete one. It merges sections, buses and lists of
// messages by their keys; deeper entries, such as a frame, replace the old ones.
func merge(into, from map[string]any, depth int) {
	rest, _ := from["restbus"].(map[string]any)
	frames, _ := into["frames"].(map[string]any)
	for name := range rest {
		delete(frames, name)
	}
	for key, v := range from {
		old, ok := into[key].(map[string]any)
		if add, is := v.(map[string]any); is && ok && depth > 0 {
			merge(old, add, depth-1)
		} else {
			into[key] = v
		}
	}
}

// Each fragment of a bench file fits one of the benches that come with the command.
func TestGuideFragmentsArePrepared(t *testing.T) {
	fragments := 0
	for _, b := range benchGuide.Blocks() {
		if b.Language != "text" || !regexp.MustCompile(`^[a-z_]+:[ \n]`).MatchString(b.Text) {
			continue
		}
		fragments++
		var fits []string
		var problems []string
		for _, name := range []string{"powershift-bench", "truck-bench", "abs-bench"} {
			data, err := plants.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			whole := plain(t, data)
			merge(whole, plain(t, []byte(b.Text)), 3)
			h, err := bench.Parse(name, "", []byte(written(t, whole)))
			if err == nil {
				_, err = bench.Prepare(h)
			}
			if err != nil {
				problems = append(problems, err.Error())
				continue
			}
			fits = append(fits, name)
		}
		if fits == nil {
			t.Errorf("line %d fits no bench:\n%s%s", b.Line, b.Text, strings.Join(problems, "\n"))
		}
	}
	if fragments < 14 {
		t.Errorf("%d fragments; want 14 or more", fragments)
	}
}

// known returns the keys that an error lists as known.
func known(t *testing.T, text, after string) []string {
	t.Helper()
	_, err := bench.Parse("b.yaml", "", []byte(text))
	return listed(t, text, err, after)
}

// listed returns the keys that an error lists after a text.
func listed(t *testing.T, text string, err error, after string) []string {
	t.Helper()
	_, list, ok := strings.Cut(fmt.Sprint(err), after)
	if !ok {
		t.Fatalf("%s: %v", text, err)
	}
	list, _, _ = strings.Cut(list, " (")
	return strings.Split(list, ", ")
}

// inBus is a bench file with a key of a bus.
func inBus(text string) string { return "buses: {b: {interface: can0, database: d, " + text + "}}" }

func TestGuideListsTheKeys(t *testing.T) {
	for _, c := range []struct {
		topic, column string
		n             int
		text          string // with an unknown key
	}{
		{"safe", "key", 0, "safe: {x: 1}"},
		{"show", "key", 0, "show: {x: 1}"},
		{"buses", "key", 0, "buses: {b: {x: 1}}"},
		{"frames", "key", 0, inBus("frames: {F: {x: 1}}")},
		{"restbus", "key", -1, inBus("restbus: {F: {x: 1}}")},
		{"messages", "key", 0, inBus("messages: {M: {x: 1}}")},
		{"protect", "key", 0, inBus("frames: {F: {protect: {x: 1}}}")},
		{"window", "key", 1, inBus("frames: {F: {protect: {window: {x: 1}}}}")},
		{"j1939", "key", 0, inBus("j1939: {x: 1}")},
		{"name", "part", 0, inBus("j1939: {addresses: {0: {x: 1}}}")},
	} {
		want := slices.DeleteFunc(known(t, c.text, "known are "), func(key string) bool { return key == "data_id" })
		if c.n < 0 { // the keys of frames
			c.topic, c.n = "frames", 0
		}
		same(t, c.topic, tableOf(t, c.topic, c.n).column(c.column), want)
	}
	same(t, "file", tableOf(t, "file-format", 0).column("key"),
		slices.DeleteFunc(known(t, "x: 1", "known are "), func(key string) bool { return key == "unit" }))
	same(t, "end", slices.Concat(tableOf(t, "end", 0).column("key"), tableOf(t, "end", 1).column("key")),
		known(t, "end: {x: 1}", "known are "))
	waveform := func(text string) []string {
		r := bench.NewReader("w.yaml")
		err := r.Try(func() { bench.ReadWaveform(r, yamlfile.Root(r.Document([]byte(text))), "S", units.Want("1")) })
		return listed(t, text, err, "known are ")
	}
	same(t, "waveforms", tableOf(t, "waveforms", 0).column("key"), waveform("{x: 1}"))
	same(t, "sine", regexp.MustCompile(`[a-z]+`).FindAllString("mean amplitude frequency", -1), waveform("{sine: {x: 1}}"))
	if !strings.Contains(section(t, "waveforms"), "`{mean: M, amplitude: A, frequency: F}`") {
		t.Error("the guide does not explain sine")
	}
	if !strings.Contains(section(t, "protect"), "`data_id` for one") {
		t.Error("the guide does not explain data_id")
	}
}

func TestGuideListsTheValuesOfKeys(t *testing.T) {
	without := func(list []string, drop ...string) []string {
		return slices.DeleteFunc(list, func(w string) bool { return slices.Contains(drop, w) })
	}
	same(t, "scheme", tableOf(t, "scheme", 0).column("value"), known(t, "scheme: x", "known are "))
	same(t, "timer", tableOf(t, "timer", 0).column("timer"), known(t, "timer: x", "known are "))
	same(t, "scheduler", tableOf(t, "scheduler", 0).column("scheduler"), known(t, "scheduler: x", "known are "))
	same(t, "overrun", tableOf(t, "overrun", 0).column("value"), known(t, "overrun: x", "is not one of: "))
	same(t, "send", tableOf(t, "frames", 1).column("send"), known(t, inBus("frames: {F: {send: x}}"), "known are "))
	same(t, "on_timeout", without(tableOf(t, "on_timeout", 0).column("value"), "{substitute: {PORT: VALUE}}"),
		known(t, inBus("messages: {M: {on_timeout: x}}"), "known are "))
	times := regexp.MustCompile(` after .*`)
	var restarts []string
	for _, value := range tableOf(t, "recover", 0).column("value") {
		restarts = append(restarts, times.ReplaceAllString(value, " after T"))
	}
	same(t, "recover", restarts, known(t, inBus("recover: x"), "is not one of: "))
	same(t, "safe or silence", []string{"safe", "silence"}, known(t, "end: {planned: x}", "known are "))
	for _, row := range tableOf(t, "end", 1) {
		same(t, "end: "+row["key"], without(strings.Split(row["values"], ", "), "safe", "stop"),
			without(known(t, "end: {"+row["key"]+": x}", "is not one of: "), "safe", "stop"))
		for _, word := range strings.Split(row["values"], ", ") {
			if _, err := bench.Parse("b.yaml", "", []byte(least+"end: {"+row["key"]+": "+strings.Replace(word, "after T", "after 2 s", 1)+"}\n")); err != nil {
				t.Error(err)
			}
		}
	}
	var parts, words []string
	for _, p := range j1939.Parts() {
		parts = append(parts, fmt.Sprintf("%s 0 to %d", p.Key, p.Max()))
	}
	for _, f := range j1939.Functions() {
		words = append(words, fmt.Sprintf("%s %d", f.Name, f.Value))
	}
	pairs := func(l table, a, b string) (list []string) {
		for _, row := range l {
			list = append(list, row[a]+" "+row[b])
		}
		return list
	}
	same(t, "parts of a NAME", pairs(tableOf(t, "name", 0), "part", "range"), parts)
	same(t, "functions", pairs(tableOf(t, "name", 1), "word", "function"), words)
	for word := range strings.SplitSeq("stop safe continue", " ") {
		if !strings.Contains(section(t, "j1939"), "`"+word+"`") {
			t.Errorf("the guide does not explain lost: %s", word)
		}
	}
	same(t, "lost", []string{"stop", "safe", "continue"}, known(t, inBus("j1939: {lost: x}"), "known are "))
}

// least is a bench file with the required keys and a section safe.
const least = "bench: b\nplant: p\nperiod: 10 s\nbuses: {b: {interface: can0, database: d}}\nsafe: {time: 1 s}\n"

// templates are bench files with %s in place of an entry, and with the other keys that it needs.
var templates = map[string]string{
	"file-format": least + "%s\n",
	"safe":        strings.Replace(least, "safe: {time: 1 s}", "safe: {%s}", 1),
	"end":         least + "end: {%s}\n",
	"buses":       strings.Replace(least, "database: d", "database: d, %s", 1),
	"frames":      strings.Replace(least, "database: d", "database: d, frames: {F: {send: on_change, %s}}", 1),
	"messages":    strings.Replace(least, "database: d", "database: d, messages: {M: {%s}}", 1),
	"protect":     strings.Replace(least, "database: d", "database: d, messages: {M: {protect: {profile: sum, %s}}}", 1),
	"j1939":       strings.Replace(least, "database: d", "database: d, j1939: {addresses: {1: {identity: 1}}, %s}", 1),
	"name":        strings.Replace(least, "database: d", "database: d, j1939: {addresses: {1: {%s}}}", 1),
}

// tree reads a bench file without keeping its text.
func tree(t *testing.T, text string) (*bench.Bench, error) {
	t.Helper()
	r := bench.NewReader("b.yaml")
	n := r.Document([]byte(text))
	if r.Err != nil {
		t.Fatalf("%s: %v", text, r.Err)
	}
	return bench.FromTree("b.yaml", "", yamlfile.Node(n))
}

// A bench file with the default of the guide equals the file without the key.
func TestGuideDefaultsMatchTheCode(t *testing.T) {
	checked := 0
	for topic, n := range map[string]int{"file-format": 0, "end": 1, "buses": 0, "messages": 0, "protect": 0, "j1939": 0} {
		for _, row := range tableOf(t, topic, n) {
			key, value := row["key"], row["default as code"]
			if value == "" || key == "first_timeout" {
				continue // words, or the name of another key
			}
			checked++
			with, err := tree(t, fmt.Sprintf(templates[topic], key+": "+value))
			if err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			without, err := tree(t, fmt.Sprintf(templates[topic], ""))
			if err != nil {
				t.Fatal(err)
			}
			spec := func(b *bench.Bench) any { // "none" equals an omitted value
				for i := range b.Buses[0].Messages {
					for j := range b.Buses[0].Messages[i].Protect {
						if p := &b.Buses[0].Messages[i].Protect[j]; p.IncludeID == "none" {
							p.IncludeID = ""
						}
					}
				}
				return b
			}
			if !reflect.DeepEqual(spec(with), spec(without)) {
				t.Errorf("%s: %s is not its default", key, value)
			}
		}
	}
	if checked < 10 {
		t.Errorf("%d defaults were checked; want 10 or more", checked)
	}
}

var span = regexp.MustCompile(`^(-?[0-9.e+-]+)( [a-zA-Z/]+)? to (-?[0-9.e+-]+)?( ?[a-zA-Z/]+)?`)

// The reader accepts both ends of a range and refuses values outside.
func TestGuideRangesMatchTheCode(t *testing.T) {
	checked := 0
	for topic, n := range map[string]int{"file-format": 0, "safe": 0, "buses": 0, "frames": 0, "messages": 0, "name": 0} {
		for _, row := range tableOf(t, topic, n) {
			m := span.FindStringSubmatch(row["range"])
			key := row["key"] + row["part"]
			if m == nil || key == "buses" {
				continue
			}
			checked++
			text := templates[topic]
			if key == "period" {
				text = strings.Replace(text, "period: 10 s\n", "", 1)
			}
			try := func(value string, ok bool) {
				if topic == "frames" && key == "phase" {
					text = strings.Replace(text, "send: on_change, ", "cycle: 3600 s, ", 1)
				}
				if key == "recover" {
					value = "restart after " + value
				}
				if _, err := tree(t, fmt.Sprintf(text, key+": "+value)); (err == nil) != ok {
					t.Errorf("%s: %s: accepted %v, the guide says %s; %v", key, value, err == nil, row["range"], err)
				}
			}
			lo, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatalf("%s: %q", key, row["range"])
			}
			number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
			whole := m[2] == ""
			try(m[1]+m[2], true)
			switch {
			case whole:
				try(number(lo-1), false)
			case lo == 0:
				try("-1"+m[2], false)
			default:
				try(number(lo/2)+m[2], false)
			}
			if m[3] == "" { // a word
				continue
			}
			hi, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				t.Fatalf("%s: %q", key, row["range"])
			}
			try(m[3]+m[4], true)
			if whole {
				try(number(hi+1), false)
			} else {
				try(number(hi*2)+m[4], false)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d ranges were checked; want 20 or more", checked)
	}
}

// protected returns a message with room for every profile.
func protected(t *testing.T) *messages.Message {
	t.Helper()
	db, err := dbc.Parse("m.dbc", []byte("VERSION \"\"\nBU_: A\nBO_ 2147483649 M: 64 A\n SG_ a : 32|4@1+ (1,0) [0|0] \"\" A\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &db.Messages[0]
}

// specOf returns a protection of a profile with its required keys.
func specOf(profile string) sigmap.ProtectionSpec {
	s := sigmap.ProtectionSpec{Profile: profile, Counter: []string{"8|4"}}
	switch {
	case profile == "e2e-2" || profile == "e2e-22":
		s.Counter, s.DataIDs = nil, make([]uint32, 16)
	case strings.HasPrefix(profile, "e2e"):
		s.Counter, s.DataIDs = nil, []uint32{0x123}
	case strings.HasPrefix(profile, "j1939"):
		s.Counter = nil
	case strings.HasPrefix(profile, "crc"):
		s.Checksum, s.Poly = []string{"64|" + profile[3:]}, 0x1D
	case profile != "counter-only":
		s.Checksum = []string{"32|8"}
	}
	return s
}

// Each profile has a topic, and the numbers there equal the numbers of the code.
func TestGuideProfilesMatchTheCode(t *testing.T) {
	topics := benchGuide.Topics()
	m := protected(t)
	at := func(s sigmap.Split) string {
		p := s.Part[0]
		if p.Big {
			first := 64 - int(p.Shift+p.Len) // counted from the highest bit of the first byte
			return fmt.Sprintf("%d|%d@0", 8*(int(p.At)+first/8)+7-first%8, p.Len)
		}
		return fmt.Sprintf("%d|%d", 8*int(p.At)+int(p.Shift), p.Len)
	}
	for _, profile := range sigmap.Profiles() {
		if !slices.Contains(topics, profile) {
			t.Errorf("the guide has no topic %s", profile)
			continue
		}
		p, err := sigmap.NewProtection(specOf(profile), m)
		if err != nil {
			t.Errorf("%s: %v", profile, err)
			continue
		}
		text := section(t, profile)
		var want []string
		if strings.HasPrefix(profile, "e2e") {
			digits, poly := int(p.Width)/4, p.Table[1]
			if p.Reflect {
				poly = bits.Reverse64(p.Table[128]) >> (64 - p.Width)
			}
			want = []string{
				fmt.Sprintf("CRC-%d, polynomial 0x%0*X, init 0x%0*X, xor_out 0x%0*X", p.Width, digits, poly, digits, p.Init, digits, p.XorOut),
				"| `" + strings.ReplaceAll(at(p.Checksum), "|", `\|`) + "` |", "| `" + strings.ReplaceAll(at(p.Counter), "|", `\|`) + "` |",
				fmt.Sprintf("| %d, first %d |", p.Modulus, p.Next),
			}
			for name, place := range map[string]sigmap.Split{"length": p.Length, "data identifier": p.ID} {
				if place.N > 0 {
					want = append(want, "| place of the "+name+" | `"+strings.ReplaceAll(at(place), "|", `\|`)+"` |")
				}
			}
			if p.Reflect {
				want = append(want, ", reflected |")
			}
		} else if strings.HasPrefix(profile, "j1939") {
			want = []string{
				fmt.Sprintf("| `%s` | %d, first %d |", profile, p.Modulus, p.Next),
				"checksum is at `" + at(p.Checksum) + "`", "counter at `" + at(p.Counter) + "`",
			}
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: the guide does not say %q", profile, w)
			}
		}
	}
	for _, topic := range topics {
		if regexp.MustCompile(`^(e2e|crc|j1939-)`).MatchString(topic) && !slices.Contains(sigmap.Profiles(), topic) {
			t.Errorf("the guide explains a profile %s that there is not", topic)
		}
	}
}

// The guide lists the classic profiles and the profiles without the state INITIAL.
func TestGuideNamesTheClassicProfiles(t *testing.T) {
	m := protected(t)
	var classic, later []string
	for _, profile := range sigmap.Profiles() {
		p, err := sigmap.NewProtection(specOf(profile), m)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case p.Classic:
			classic = append(classic, profile)
		case p.Seen:
			later = append(later, profile)
		}
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for begin, want := range map[string][]string{"- classic: ": classic, "- Profiles `e2e-4`": later} {
		source := strings.ReplaceAll(string(bench.Guide), "\n", " ")
		_, text, ok := strings.Cut(source, begin)
		if !ok {
			t.Fatalf("the guide does not say %q", begin)
		}
		text, _, _ = strings.Cut(begin+text, "no INITIAL")
		text, _, _ = strings.Cut(text, "- open")
		var got []string
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		same(t, begin, got, want)
	}
}

// Only the profiles that the guide names accept a key of a protection.
func TestGuideProtectionKeysAreForTheirProfiles(t *testing.T) {
	all := sigmap.Profiles()
	sums, crcs := []string{"sum", "nibble-sum", "bit-sum"}, []string{"crc8", "crc16", "crc32", "crc64"}
	classes := map[string][]string{
		"all": all, "sums": sums, "open": slices.Concat(sums, crcs, []string{"xor"}),
		"crcs": crcs, "length": {"e2e-4", "e2e-6", "e2e-7", "e2e-8", "e2e-44"},
		"classic":              {"e2e-1a", "e2e-1b", "e2e-1low", "e2e-1c", "e2e-2"},
		"all but counter-only": slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == "counter-only" }),
		"e2e":                  slices.DeleteFunc(slices.Clone(all), func(p string) bool { return !strings.HasPrefix(p, "e2e") }),
	}
	fields := reflect.TypeFor[sigmap.ProtectionSpec]()
	one := 1
	for _, row := range tableOf(t, "protect", 0) {
		var want []string
		if list, ok := classes[row["profiles"]]; ok {
			want = list
		} else {
			for _, word := range strings.Split(row["profiles"], ", ") {
				if list, ok := classes[word]; ok {
					want = append(want, list...)
				} else {
					want = append(want, word)
				}
			}
		}
		var got []string
		for _, profile := range all {
			spec := sigmap.ProtectionSpec{Profile: profile}
			for i := range fields.NumField() {
				if slices.Contains(strings.Split(fields.Field(i).Tag.Get("key"), ","), row["key"]) && row["key"] != "profile" {
					v := reflect.ValueOf(&spec).Elem().Field(i)
					switch v.Kind() {
					case reflect.Slice:
						v.Set(reflect.MakeSlice(v.Type(), 1, 1))
					case reflect.Map:
						v.Set(reflect.MakeMap(v.Type()))
					case reflect.Pointer:
						if v.Type().Elem().Kind() == reflect.Int {
							v.Set(reflect.ValueOf(&one))
						} else {
							v.Set(reflect.New(v.Type().Elem()))
						}
					case reflect.String:
						v.SetString("bytes")
					case reflect.Bool:
						v.SetBool(true)
					case reflect.Uint64:
						v.SetUint(1)
					default:
						v.SetInt(1)
					}
				}
			}
			if _, err := sigmap.NewProtection(spec, protected(t)); err == nil || !strings.Contains(err.Error(), "the profile does not have this key") {
				got = append(got, profile)
			}
		}
		same(t, row["key"], want, got)
	}
}

func TestGuideListsFrameStatesAndWindows(t *testing.T) {
	var states, windows []string
	for s := sigmap.FrameNoNewData; s <= sigmap.FrameSync; s++ {
		states = append(states, s.String())
	}
	for w := sigmap.WindowNoData; w <= sigmap.WindowInvalid; w++ {
		windows = append(windows, w.String())
	}
	same(t, "frame states", tableOf(t, "frame-states", 0).column("state"), states)
	same(t, "windows", tableOf(t, "window", 0).column("state"), windows)
	p, err := sigmap.NewProtection(specOf("e2e-5"), protected(t))
	if err != nil {
		t.Fatal(err)
	}
	limits := reflect.ValueOf(p.Limits)
	for i, row := range tableOf(t, "window", 1) {
		if key := limits.Type().Field(i).Tag.Get("key"); key != row["key"] || fmt.Sprint(limits.Field(i).Int()) != row["default"] {
			t.Errorf("%s %s, the code has %s %d", row["key"], row["default"], key, limits.Field(i).Int())
		}
	}
}

// The named CRCs have the check values of their publications: the CRC of "123456789".
func TestGuideCRCsHaveTheirPublishedCheckValues(t *testing.T) {
	check := map[string]uint64{
		"SAE J1850": 0x4B, "AUTOSAR CRC-8H2F": 0xDF, "SMBus": 0xF4, "Maxim": 0xA1, "CCITT-FALSE": 0x29B1, "ARC": 0xBB3D,
		"ISO-HDLC": 0xCBF43926, "ECMA-182": 0x6C40DF5F0B497347,
	}
	rows := tableOf(t, "crc8", 0)
	for _, row := range rows {
		profile, keys, _ := strings.Cut(row["keys"], ", ")
		width, _ := strconv.Atoi(profile[3:])
		b, err := bench.Parse("b.yaml", "", []byte(fmt.Sprintf(templates["protect"], fmt.Sprintf(`checksum: "72|%d", %s`, width, keys))))
		if err != nil {
			t.Errorf("%s: %v", row["published CRC"], err)
			continue
		}
		spec := b.Buses[0].Messages[0].Protect[0]
		spec.Profile = profile
		spec.Range = []int{0, 8}
		p, err := sigmap.NewProtection(spec, protected(t))
		if err != nil {
			t.Errorf("%s: %v", row["published CRC"], err)
			continue
		}
		var data [64]byte
		copy(data[:], "123456789")
		p.Protect(&data, 64, 1)
		if got := p.Checksum.Load(&data); got != check[row["published CRC"]] {
			t.Errorf("%s: 0x%X, want 0x%X", row["published CRC"], got, check[row["published CRC"]])
		}
	}
	if len(rows) != len(check) {
		t.Errorf("%d published CRCs, %d have a check value", len(rows), len(check))
	}
}

func TestGuideDescribesEveryControlUnit(t *testing.T) {
	var topics []string
	for _, name := range ecu.Names() {
		if slices.Contains(benchGuide.Topics(), name) {
			topics = append(topics, name)
		}
	}
	same(t, "control units", topics, ecu.Names())
	list := string(section(t, "virtual-control-units"))
	if n := strings.Count(list, "\n### "); n != len(ecu.Names()) {
		t.Errorf("%d control units are described, there are %d", n, len(ecu.Names()))
	}
	for _, name := range ecu.Names() {
		var want []string
		for _, p := range ecu.Parameters(name) {
			want = append(want, fmt.Sprintf("%s %g %s to %s %s", p.Name, *p.Value,
				strconv.FormatFloat(p.Least, 'f', -1, 64), strconv.FormatFloat(p.Most, 'f', -1, 64), p.Unit))
		}
		var got []string
		if want != nil {
			for _, row := range tableOf(t, name, 1) {
				got = append(got, fmt.Sprintf("%s %s %s %s", row["parameter"], row["default"], row["range"], row["unit"]))
			}
		}
		same(t, name, got, want)
	}
	for name, file := range map[string]string{"powershift": "powershift.dbc", "truck": "j1939.dbc", "amt12": "j1939.dbc", "automatic": "automatic.dbc", "hp8": "hp8.dbc", "abs": "abs.dbc", "esc": "esc.dbc", "wsp": "wsp.dbc"} {
		data, err := plants.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		db, err := dbc.Parse(file, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range tableOf(t, name, 0) {
			for _, word := range regexp.MustCompile(`\b[A-Z]\w+`).FindAllString(row["value"], -1) {
				if !slices.ContainsFunc(db.Messages, func(m messages.Message) bool { return m.Name == word }) {
					t.Errorf("%s: %s has no message %s", name, file, word)
				}
			}
		}
	}
}

// The reader accepts every unit of the table, and the table has every named unit of the code.
func TestGuideListsTheUnits(t *testing.T) {
	var listed []string
	for _, row := range tableOf(t, "quantities", 0) {
		for _, unit := range strings.Split(row["units"], ", ") {
			listed = append(listed, unit)
			if v, err := units.Quantity("1 "+unit, map[bool]string{true: "K"}[unit == "degC" || unit == "K"], nil); err != nil {
				if u, err2 := units.Parse(unit); err2 != nil || !(u.Factor > 0) {
					t.Errorf("%s: %v", unit, err)
				}
			} else if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("1 %s is %g", unit, v)
			}
		}
	}
	source, err := os.ReadFile(filepath.Join("..", "..", "model", "units", "units.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(source), "var atoms = ")
	text, _, _ = strings.Cut(text, "\n}\n")
	names := regexp.MustCompile(`"([^"]+)": +\{[^{]*Dim\{`).FindAllStringSubmatch(text, -1)
	if !ok || len(names) < 30 {
		t.Fatalf("found %d units in the code", len(names))
	}
	for _, n := range names {
		if plain := regexp.MustCompile(`^[a-zA-Z%]+$`).MatchString(n[1]); plain && !slices.Contains(listed, n[1]) {
			t.Errorf("the guide does not list the unit %s", n[1])
		}
	}
}

func TestGuideTopicsAreUnique(t *testing.T) {
	topics := benchGuide.Topics()
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			t.Errorf("two headings are called %s", topic)
		}
	}
}
