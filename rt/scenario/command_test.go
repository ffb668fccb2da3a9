package scenario

import (
	"fmt"
	"math"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"pgregory.net/rapid"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/fault"
)

// openBench prepares the bench of benchtest.OpenFile.
func openBench(t testing.TB) *bench.Handover {
	t.Helper()
	b, err := bench.Load(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestLinesAreSplitIntoWordsAsByTheShell(t *testing.T) {
	for _, line := range []string{
		"fault input=p stuck=3", "  a   b  ", `a'b c'd`, `"a b" 'c d'`, `'it'\''s'`, `a\ b \'c\" \\`, `"a\"b\\c\d\$e"`, `'' "" x`, `'a\b'`, `"it's"`, "ä='ö ü'",
	} {
		want, err := exec.Command("sh", "-c", `printf '%s\n' `+line).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := SplitWords(line)
		if err != nil || strings.Join(got, "\n")+"\n" != string(want) {
			t.Errorf("%s: %q, %v; the shell says %q", line, got, err, want)
		}
	}
	for _, line := range []string{`'a`, `"a`, `a\`, `a "b\"`} {
		if got, err := SplitWords(line); err == nil {
			t.Errorf("%s: %q, want an error", line, got)
		}
	}
}

func TestQuotedWordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = QuoteWord(w)
		}
		if got, err := SplitWords(strings.Join(quoted, " ")); err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q became %q, %v", words, got, err)
		}
	})
}

// session has lines of a user with the slots of their commands.
var session = []struct {
	line  string
	slots []int
}{
	{"fault name=a input=clutch1.pressure 'stuck=3 bar'", []int{0}},
	{"fault name=b frame=Speeds drop", []int{1}},
	{"fault name=c bus=drive bus_off 'for=100 ms'", []int{2}},
	{"clear b", []int{1}},
	{"fault name=d signal=Speeds.w1 'offset=100 rpm'", []int{1}},
	{"fault name=a input=clutch1.pressure hold", []int{0}}, // replaces the first
	{"set clutch7.pressure=3bar Status.lag=1ms 'clutch8.pressure=500 kPa'", []int{0, 0, 0}},
	{"release all", []int{0}},
	{"clear all", []int{0, 1, 2}},
	{"clear all", nil},
}

func TestSlotsDependOnTheCommandsOnly(t *testing.T) {
	first, second := NewCommands(openBench(t)), NewCommands(openBench(t))
	for _, c := range session {
		list, err := first.Translate(c.line)
		again, err2 := second.Translate(c.line)
		if err != nil || err2 != nil || !reflect.DeepEqual(list, again) {
			t.Fatalf("%s: %v, %v; %+v and %+v", c.line, err, err2, list, again)
		}
		var slots []int
		for _, command := range list {
			slots = append(slots, command.Slot)
		}
		if !slices.Equal(slots, c.slots) {
			t.Errorf("%s: slots %v, want %v", c.line, slots, c.slots)
		}
	}
	if left := first.Slots.names(); left != nil {
		t.Errorf("faults %q are left", left)
	}
}

func TestFaultsOfAScenarioHaveTheFirstSlots(t *testing.T) {
	h := openBench(t)
	h.Named = []bench.NamedFault{{Name: "x", Spec: "..."}, {Name: "y", Spec: "..."}}
	commands := NewCommands(h)
	list, err := commands.Translate("fault name=z frame=Speeds drop")
	if err != nil || list[0].Slot != 2 {
		t.Errorf("%+v, %v; want slot 2", list, err)
	}
	if list, err = commands.Translate("clear x z"); err != nil || len(list) != 2 || list[0].Slot != 0 || list[1].Slot != 2 {
		t.Errorf("%+v, %v; want slots 0 and 2", list, err)
	}
}

func TestSetConvertsValuesToSI(t *testing.T) {
	h := openBench(t)
	list, err := NewCommands(h).Translate("set 'clutch7.pressure=3 bar' clutch8.pressure=400kPa Status.lag=1ms")
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []float64{3e5, 4e5} {
		name := []string{"clutch7.pressure", "clutch8.pressure"}[i]
		if c := list[i]; c.Op != fault.Drive || c.Input != bench.PortIndex(h.Tables.Inputs, name) || !scalar.EqualWithinRel(c.Value, want, 1e-15) {
			t.Errorf("%s: %+v, want %g Pa", name, c, want)
		}
	}
	if c := list[2]; c.Op != fault.Drive || c.Fault.Where != fault.Signal || !scalar.EqualWithinRel(c.Value, 0.001, 1e-15) {
		t.Errorf("Status.lag: %+v", c)
	}
}

func TestSetReadsWholeNumbersOfASignalExactly(t *testing.T) {
	signal := &messages.Signal{Name: "n", Len: 64, Factor: 1, Unit: "1"}
	for text, want := range map[string]uint64{"18446744073709551613": 1<<64 - 3, "9223372036854775809": 1<<63 + 1, "9007199254740993": 1<<53 + 1, "7": 0, "1e19": 0} {
		target := resolvedTarget{Fault: fault.Fault{Where: fault.Signal}, sig: signal, Wanted: units.WantSignal("1"), ownUnit: true, hi: 1 << 64}
		v, err := target.parseLevel(text)
		if err != nil {
			t.Fatal(err)
		}
		if raw, ok := target.parseWhole(text, v); raw != want || ok != (want > 0) {
			t.Errorf("%s: %d, %v; want %d", text, raw, ok, want)
		}
	}
}

func TestValuesOfASignalGoToTheLimitsOf64Bits(t *testing.T) {
	signal := &messages.Signal{Name: "n", Len: 64, Factor: 1, Unit: "1", Values: []messages.Value{{Raw: -1, Text: "none"}}}
	target := resolvedTarget{
		Fault: fault.Fault{Where: fault.Signal}, sig: signal, Wanted: units.WantSignal("1"), ownUnit: true,
		hi: math.Nextafter(1<<64, 0),
	}
	for text, want := range map[string]uint64{"18446744073709551615": 1<<64 - 1, "none": 1<<64 - 1, "18446744073709551616": 0} {
		r := bench.NewReader("s.yaml")
		var w sigmap.Waveform
		if r.Try(func() { w = target.readWaveform(r, yamlfile.Field{Node: r.Document([]byte(text))}) }); w.Raw != want || w.Whole != (want > 0) {
			t.Errorf("stimulus %s: raw %d, %t; want %d", text, w.Raw, w.Whole, want)
		}
		v, err := target.parseStimulus(text)
		raw, ok := target.parseWhole(text, v)
		if ok != (want > 0) || ok == (err != nil) || ok && (raw != want || v != target.hi) {
			t.Errorf("%s: %g, raw %d, %v, %v; want raw %d", text, v, raw, ok, err, want)
		}
	}
}

func TestRefusedLineChangesNothing(t *testing.T) {
	commands := NewCommands(openBench(t))
	if _, err := commands.Translate("fault name=a frame=Speeds drop"); err != nil {
		t.Fatal(err)
	}
	before := *commands
	for line, want := range map[string]string{
		"set a=" + strings.Repeat("1", 4096): "the change has 4102 bytes; a record holds at most 4096",
		"":                                   `"" is not a command that changes a run`,
		"stop":                               `"stop" is not a command that changes a run`,
		"set":                                "set: PORT=VALUE is missing",
		"set x":                              `set: "x" is not PORT=VALUE`,
		"set " + strings.Repeat("ä", 1000) + "=1bar":      "set: " + strings.Repeat("ä", 60) + `: there is no input "` + strings.Repeat("ä", 60) + `"; there are `,
		"set clutch7.presure=1bar":                        `set: clutch7.presure: there is no input "clutch7.presure" (did you mean clutch7.pressure?)`,
		"set clutch1.pressure=1bar":                       "set: clutch1.pressure: TCU_Pressure_1.pressure_C1 drives the input: use a fault, like fault 'input=clutch1.pressure' 'stuck=...'",
		"set clutch7.pressure=50bar":                      "set: clutch7.pressure: 50bar is outside the range of the input, 0 to ",
		"set clutch7.pressure=NaN":                        `set: clutch7.pressure: "NaN": "NaN" is not a number`,
		"set clutch7.pressure=3rpm":                       "set: clutch7.pressure: ",
		"set clutch7.pressure=1bar clutch7.pressure=2bar": "set: clutch7.pressure is set twice",
		"set Speeds.w1=3":                                 "set: Speeds.w1: output w1 drives the signal: use a fault",
		"set TCU_Pressure_1.pressure_C1=3bar":             "set: TCU_Pressure_1.pressure_C1: the signal is received: use a fault",
		"release":                                         "release: name an input or signal that was set, or all",
		"release Speeds.w1":                               "release: Speeds.w1: output w1 drives the signal",
		"set lagg=1ms":                                    `set: lagg: there is no input "lagg" (did you mean lag?)`,
		"release clutch1.pressure":                        "release: clutch1.pressure: TCU_Pressure_1.pressure_C1 drives the input",
		"clear":                                           "clear: name a fault, or all",
		"clear b":                                         `clear: there is no fault called "b"; there are a`,
		"clear ''":                                        `clear: there is no fault called ""`,
		"clear a b":                                       `clear: there is no fault called "b"`,
		"fault":                                           "fault: word 1: the target is missing",
		"fault name=b frame=Speds drop":                   "fault: word 2: fault: there is no message that the bench sends or receives called \"Speds\" (did you mean Speeds?)",
		"fault frame=Speeds drop name=all":                "fault: word 3: fault: name: clear all ends every fault: choose another name",
		"fault 'name=b":                                   "a quotation is not closed",
	} {
		list, err := commands.Translate(line)
		if err == nil || list != nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v\ngot  %v\nwant %s", line, list, err, want)
		}
		if !reflect.DeepEqual(before, *commands) {
			t.Fatalf("%s: the commands have changed", line)
		}
	}
}

func TestEverySlotTakesAFault(t *testing.T) {
	commands := NewCommands(openBench(t))
	for i := range fault.Max {
		if _, err := commands.Translate(fmt.Sprintf("fault name=f%d frame=Speeds drop", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := commands.Translate("fault name=more frame=Speeds drop"); err == nil || err.Error() != "fault: all 64 slots are taken: clear one" {
		t.Errorf("%v", err)
	}
	if list, err := commands.Translate("clear all"); err != nil || len(list) != fault.Max {
		t.Errorf("%d commands, %v", len(list), err)
	}
}

func FuzzCommandLinesApplyWhollyOrNotAtAll(f *testing.F) {
	for _, c := range session {
		f.Add(c.line)
	}
	for _, line := range []string{"set clutch7.pressure=1e999", "fault name=a input=clutch1.pressure 'leak={share: 30 %, time: 1 s}'", "fault {", "clear ''", `release "`} {
		f.Add(line)
	}
	base := openBench(f)
	f.Fuzz(func(t *testing.T, line string) {
		own := base.Clone()
		commands := NewCommands(own)
		if _, err := commands.Translate("fault name=a frame=Speeds drop"); err != nil {
			t.Fatal(err)
		}
		before := commands.Slots
		list, err := commands.Translate(line)
		if err != nil {
			if list != nil || strings.Contains(err.Error(), "\n") || !reflect.DeepEqual(before, commands.Slots) {
				t.Errorf("%q: %v with %d commands; the slots must not change", line, err, len(list))
			}
			return
		}
		if len(list) == 0 || len(list) > fault.Max {
			t.Errorf("%q: %d commands", line, len(list))
		}
		for i := range list {
			if err := own.CheckFaults(list[i : i+1]); err != nil {
				t.Errorf("%q: the loop would refuse it: %v", line, err)
			}
		}
	})
}

// A signal that several messages carry is named with its message.
func TestSetFindsASignalOfTheRestbusByItsName(t *testing.T) {
	h := faultBench(t)
	commands := NewCommands(h)
	for _, c := range []struct {
		line  string
		value float64 // in the unit of the signal
		set   []SetValue
	}{
		{"set key=1", 1, []SetValue{{"Klemmen.key", "1"}}},
		{"set Klemmen.key=0 mode=running", 0, []SetValue{{"Klemmen.key", "0"}, {"Motor.mode", "running"}}},
		{"set 'Klemmen.level on drive=-30'", -30, []SetValue{{"Klemmen.key", "0"}, {"Klemmen.level", "-30"}, {"Motor.mode", "running"}}}, // without an entry in values
		{"release level", 0, []SetValue{{"Klemmen.key", "0"}, {"Motor.mode", "running"}}},
		{"release all", 0, nil},
	} {
		list, err := commands.Translate(c.line)
		if err != nil || list[0].Value != c.value || !slices.Equal(commands.Set, c.set) {
			t.Errorf("%s: %+v, %v, set %v; want %v, %v", c.line, list, err, commands.Set, c.value, c.set)
		}
	}
	klemmen := slices.IndexFunc(h.Maps[0].Tx, func(x sigmap.Tx) bool { return x.Name == "Klemmen" })
	h.Maps[0].Tx[klemmen].Fields = nil // as in a message of `frames` without values
	if _, err := commands.Translate("set Klemmen.level=1"); err == nil || !strings.Contains(err.Error(), "no port and no value of the bench drives it (values: {level: ...})") {
		t.Errorf("a signal without a value: %v", err)
	}
	h.Maps[0].Tx[0].Fields[0].Index, h.Maps[0].Tx[0].Fields[0].Name = -1, "mode"
	if _, err := commands.Translate("set mode=running"); err == nil || !strings.Contains(err.Error(), "several messages have a signal mode: write "+h.Maps[0].Tx[0].Name+".mode or Motor.mode") {
		t.Errorf("two signals of one name: %v", err)
	}
}

func TestLiveFaultAfterTheEndOfTheRunIsRefused(t *testing.T) {
	h := openBench(t)
	h.Loop.Ticks = 400
	commands := NewCommands(h)
	if _, err := commands.Translate("fault frame=Speeds drop 'at=tick 401'"); err == nil || !strings.Contains(err.Error(), "at: tick 401 is after the end of the run, at tick 400: the fault would never start") {
		t.Errorf("%v", err)
	}
	if list, err := commands.Translate("fault frame=Speeds drop 'at=2 s'"); err != nil || len(list) != 1 {
		t.Errorf("%+v (%v)", list, err)
	}
}
