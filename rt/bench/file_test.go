package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/io/inputfile"
	"lockstep/io/yamlfile"
	"lockstep/model/plants"
	"lockstep/rt"
	"lockstep/rt/bench/benchtest"
)

func TestEmbeddedBenchIsPrepared(t *testing.T) {
	b, err := Load("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	if want := (rt.Overrun{Policy: rt.Skip, Max: 200}); b.PeriodNs != 5e6 || b.Overrun != want || b.CPU != -1 || b.Priority != 80 {
		t.Errorf("period %d ns, overrun %v, cpu %d, priority %d; want 5000000, %v, -1 (auto), 80", b.PeriodNs, b.Overrun, b.CPU, b.Priority, want)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Tables.Modes) != 256 || len(h.Maps) != 1 || len(h.Maps[0].Rx) != 2 || len(h.Maps[0].Tx) != 3 {
		t.Errorf("%d modes, %d maps; want 256 modes and one map with 2 messages in and 3 out", len(h.Tables.Modes), len(h.Maps))
	}
	for name, i := range map[string]int{"lag": h.Loop.Watch.Lag, "events": h.Loop.Watch.Events, "transitions": h.Loop.Watch.Transitions, "fault": h.Loop.Watch.Fault} {
		if i < 0 || h.Tables.Outputs[i].Name != name {
			t.Errorf("the loop watches output %d as %s", i, name)
		}
	}
}

func TestBenchFindsPlantAndDatabaseInItsFolder(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"powershift": "mine.yaml", "powershift.dbc": "mine.dbc"} {
		data, err := plants.Read(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := benchtest.DemoText(t, "plant: powershift ", "plant: mine.yaml ")
	text = strings.Replace(text, "database: powershift.dbc", "database: mine.dbc", 1)
	file := filepath.Join(dir, "bench.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(b); err != nil {
		t.Fatal(err)
	}
}

// TestErrorsOfABenchFileHaveAPosition replaces one piece of the demo bench. The
// error must start with the place of at and contain want.
func TestErrorsOfABenchFileHaveAPosition(t *testing.T) {
	for _, c := range []struct{ name, old, new, at, want string }{
		{"unknown key", "period: 5 ms", "perod: 5 ms", "perod", `bench file: unknown key "perod" (did you mean period?); known are bench, about, plant, period,`},
		{"unknown key of a bus", "database:", "databse:", "databse", `bus "drive": unknown key "databse" (did you mean database?); known are interface, database, units, frames, receive, send`},
		{"unknown key of a frame", "phase: 5 ms", "fase: 5 ms", "fase", `frame Status: unknown key "fase"`},
		{"duplicate key", "cpu: auto ", "period: 5 ms\ncpu: auto ", "period: 5 ms\ncpu", `"period"`},
		{"no unit of time", "period: 5 ms", "period: 5 bar", "5 bar", "period:"},
		{"period 0", "period: 5 ms", "period: 0 ms", "0 ms", `period: "0 ms" is not between 100µs and 10s`},
		{"negative period", "period: 5 ms", "period: -5 ms", "-5 ms", `period: "-5 ms" is not between 100µs and 10s`},
		{"period too long", "period: 5 ms", "period: 20 s", "20 s\n", `period: "20 s" is not between 100µs and 10s`},
		{"period without a unit", "period: 5 ms", "period: 5", "5\n", "period: 5 needs a unit: 5 ms or 5 s?"},
		{"delay without a unit", "supervisor_gone: stop after 1 s", "supervisor_gone: stop after 5", "stop after 5", "end: supervisor_gone: 5 needs a unit: 5 ms or 5 s?"},
		{"fraction of a nanosecond", "period: 5 ms", "period: 5000.0005 us", "5000.0005 us", "not a whole number of nanoseconds"},
		{"unknown scheme", "scheme: papers", "scheme: paper", "paper ", `scheme: "paper" is unknown (did you mean papers?); known are papers, complete`},
		{"negative cpu", "cpu: auto", "cpu: -1", "-1", "is not a whole number from 0 to 1023"},
		{"priority too high", "priority: 80", "priority: 100", "100 ", `priority: "100" is not a whole number from 1 to 99`},
		{"unknown policy", "overrun: skip 200", "overrun: ignore", "ignore", `overrun: "ignore" is not one of: stop, safe, skip N, catchup N`},
		{"policy without a number", "overrun: skip 200", "overrun: skip", "skip ", `overrun: "skip" is not one of`},
		{"policy with 0", "overrun: skip 200", "overrun: catchup 0", "catchup 0", `overrun: "catchup 0" is not one of`},
		{"a list where a value belongs", "period: 5 ms", "period: [5 ms]", "[5 ms]", "period: expected one value, got a list"},
		{"a value where a mapping belongs", "show: {engine: w1, wheel: w4}", "show: w1", "w1 ", `show: expected keys with values, got "w1"`},
		{"empty value", "plant: powershift ", "plant: ", "     # an", "plant"},
		{"link without arrow", "- w1 -> Speeds.w1", "- w1 = Speeds.w1", "w1 = ", `link "w1 = Speeds.w1" is not of the form PORT -> MESSAGE.SIGNAL`},
		{"link without signal", "- TCU_Pressure_1.pressure_C1 ->", "- TCU_Pressure_1 ->", "TCU_Pressure_1 ->", "is not of the form MESSAGE.SIGNAL -> PORT"},
		{"no cycle", "{cycle: 5 ms, counter: counter_S}", "{counter: counter_S}", "Speeds: {", "frame Speeds: the cycle is missing"},
		{"key of before", "control_unit: powershift", "unit: powershift", "unit: power", "unit: this key is called control_unit"},
		{"unknown unit", "control_unit: powershift", "control_unit: nonsense", "nonsense", `control_unit: no control unit "nonsense"; there are powershift`},
		{"unit that is nearly one", "control_unit: powershift", "control_unit: powershit", "powershit", `no control unit "powershit" (did you mean powershift?)`},
		{"escape sequences", "bench: powershift-bench", `bench: "\x1b[31mred"`, `"\x1b`, `bench: "\x1b[31mred" has characters that cannot be printed`},
		{"long name", "bench: powershift-bench", "bench: " + strings.Repeat("x", 65), "xxx", "bench: the name has 65 letters; at most 64 fit"},
		{"long name of a bus", "  drive:", "  " + strings.Repeat("x", 65) + ":", "xxx", "bus: the name has 65 letters"},
		{"interface that is a command", "interface: pair ", "interface: vcan0;reboot ", "vcan0;", `bus "drive": "vcan0;reboot" cannot be the name of a CAN interface`},
		{"long interface", "interface: pair ", "interface: vcan012345678901 ", "vcan0123", `"vcan012345678901" cannot be the name`},
		{"period below 100 us", "period: 5 ms", "period: 99.999 us", "99.999", "is not between 100µs and 10s"},
		{"no interface", "    interface: pair ", "    # interface: pair", "drive:", `bus "drive": the interface is missing`},
		{"broken YAML", "buses:", "buses: [", "[", ""},

		{"setting that a unit has not", "control_unit: powershift ", "control_unit: {name: abs, slipp: 0.1} ", "slipp", `"slipp"`},
		{"setting out of range", "control_unit: powershift ", "control_unit: {name: abs, slip: 1.5} ", "slip: 1.5", "slip of abs: 1.5"},
		{"setting without a unit", "control_unit: powershift ", "control_unit: {name: abs, crawl: 2} ", "crawl", "control_unit: crawl: 2 needs a unit: 2 m/s?"},
		{"setting in another unit", "control_unit: powershift ", "control_unit: {name: abs, follow: 3 bar/s} ", "follow", `control_unit: follow: "3 bar/s": unit bar/s does not fit, bar/s/(m/s) is wanted`},
		{"settings of nobody", "control_unit: powershift ", "control_unit: {slip: 0.1} ", "{slip", "control_unit: name is missing: {name: powershift, PARAMETER: VALUE}"},
		{"program without a name", "control_unit: powershift ", "control_unit: {exec: []} ", "{exec", "control_unit: exec: the program is missing: {exec: ./PROGRAM}"},
		{"program of another kind", "control_unit: powershift ", "control_unit: {exec: {a: b}} ", "{a: b}", "control_unit: exec: expected one value"},
		{"program with a name", "control_unit: powershift ", "control_unit: {exec: ./tcu, name: abs} ", "name: abs", `control_unit: unknown key "name"`},
		{"program that hangs for ever", "control_unit: powershift ", "control_unit: {exec: ./tcu, hang: 2 h} ", "2 h", `control_unit: hang: "2 h" is not between 1s and 1h0m0s`},
		{"program as a name", "control_unit: powershift ", "control_unit: ./tcu.py ", "./tcu.py", "a program is {exec: ./PROGRAM}"},
		{"unknown plant", "plant: powershift ", "plant: powershit ", "powershit ", `no file powershit, and no embedded file of that name (did you mean powershift?)`},
		{"unknown database", "database: powershift.dbc", "database: powershift.dbx", "powershift.dbx", "(did you mean powershift.dbc?)"},
		{"unknown input", "-> clutch3.pressure", "-> clutch3.presure", "TCU_Pressure_1.pressure_C3", `plant powershift has no input "clutch3.presure" (did you mean clutch3.pressure?)`},
		{"input driven twice", "-> clutch2.pressure", "-> clutch1.pressure", "TCU_Pressure_1.pressure_C2", `input "clutch1.pressure" is driven twice`},
		{"unknown message", "TCU_Pressure_2.pressure_C5", "TCU_Pressure_3.pressure_C5", "TCU_Pressure_3", "TCU_Pressure_3"},
		{"unknown signal", "w2 -> Speeds.w2", "w2 -> Speeds.w5", "w2 -> Speeds.w5", "w5"},
		{"unknown output", "w2 -> Speeds.w2", "w9 -> Speeds.w2", "w9 ->", "w9"},
		{"unit that does not fit", "w2 -> Speeds.w2", "tau_load -> Speeds.w2", "tau_load -> Speeds", "rad/s"},
		{"unknown counter", "counter: counter_S", "counter: counter_X", "Speeds: {", "counter_X"},
		{"cycle off the grid", "{cycle: 5 ms, ", "{cycle: 7 ms, ", "Speeds: {", "cycle 7 ms"},
		{"phase beyond the cycle", "phase: 5 ms", "phase: 10 ms", "Status: {", "phase 10 ms"},
		{"unknown further output to show", "wheel: w4", "wheel: w4, outputs: [w44]", "w44", `show: plant powershift has no output "w44" (did you mean w4?)`},
		{"wrong unit of an output to show", "wheel: w4", "wheel: w4, outputs: [w1: kg]", "w1: kg", `show: w1: unit "kg" (kg) does not fit "rpm" (1/s)`},
		{"unknown output to show", "wheel: w4", "wheel: w44", "w44", `show: plant powershift has no output "w44" (did you mean w4?)`},

		{"unknown timer", "timer: timerfd", "timer: timer", "timer ", `timer: "timer" is unknown (did you mean timerfd?); known are timerfd, nanosleep`},
		{"unknown scheduler", "scheduler: fifo", "scheduler: rr", "rr ", `scheduler: "rr" is unknown; known are fifo, deadline`},
		{"long spin", "# spin: 50 us ", "spin: 1.1 ms ", "1.1 ms", `spin: "1.1 ms" is not between 0s and 1ms`},
		{"tiny budget", "# tick_budget: 1 ms ", "tick_budget: 1 ns ", "1 ns", `tick_budget: "1 ns" is not between 1µs and 10s`},
		{"tiny watchdog", "# watchdog: 3 s ", "watchdog: 3 ms ", "3 ms", `watchdog: "3 ms" is not between 10ms and 1h0m0s`},
		{"unknown end", "planned: silence", "planed: silence", "planed", `end: unknown key "planed" (did you mean planned?)`},
		{"unknown action", "planned: silence", "planned: halt", "halt ", `end: planned: "halt" is unknown; known are safe, silence`},
		{"loss of nothing known", "stop after 1 s", "halt after 1 s", "halt", `end: supervisor_gone: "halt after 1 s" is not one of: continue, safe after T, stop after T`},
		{"loss after no time", "stop after 1 s", "stop after noon", "stop after", `"stop after noon" is not one of`},
		{"loss after too long", "stop after 1 s", "stop after 3601 s", "stop after", `(T: 0 s to 3600 s)`},
		{"to continue later", "stop after 1 s", "continue after 1 s", "continue after", `"continue after 1 s" is not one of`},
		{"bus off later", "bus_off: continue ", "bus_off: stop after 2 s  ", "stop after 2 s  ", `bus_off: "stop after 2 s" is not one of: continue, safe, stop`},
		{"no safe time", "  time: 100 ms ", "  # time: 100 ms ", "values:", "safe: the time is missing"},
		{"short safe time", "  time: 100 ms ", "  time: 9 ms ", "time: 9", "safe: the time, 9ms, is shorter than the cycle of frame Torque, 10ms"},
		{"missing safe value", "w3: 0, ", "", "time: 100", "safe: no value for w3, which bus drive sends in frame Speeds (w3: 0 rpm)"},
		{"unknown safe output", "w3: 0, ", "w3: 0, w33: 0, ", "w33: 0", `safe: plant powershift has no output "w33"`},
		{"safe value of another unit", "w3: 0, ", "w3: 3 bar, ", "3 bar", "safe: w3: "},
		{"safe value without a unit", "w3: 0, ", "w3: 50, ", "50, w4", "safe: w3: 50 needs a unit: 50 rpm?"},
		{"safe value beyond its signal", "w3: 0, ", "w3: 1e9 rpm, ", "1e9", "safe: w3: 1e9 rpm is beyond the range of its signal in frame Speeds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := benchtest.DemoText(t, c.old, c.new)
			line, col := benchtest.Place(t, text, c.at)
			b, err := Parse("b.yaml", "", []byte(text))
			if err == nil {
				_, err = Prepare(b)
			}
			var at *yamlfile.FileError
			if !errors.As(err, &at) || at.File != "b.yaml" || at.Line != line || at.Col != col && c.name != "empty value" && c.name != "broken YAML" ||
				!strings.Contains(at.Err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %d:%d ... %s", err, line, col, c.want)
			}
		})
	}
}

func TestMissingKeysOfABenchFileAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "b.yaml:1:1: bench: the file is empty",
		"# only a comment\n":                  "b.yaml:1:1: bench: the file is empty",
		"- a\n- b\n":                          "b.yaml:1:1: bench: bench file: expected keys with values, got a list",
		"about: x\n":                          "b.yaml:1:1: bench: the name (bench: NAME) is missing",
		"bench: x\nplant: y\n":                "b.yaml:1:1: bench: the period (period: 5 ms) is missing",
		"bench: x\nplant: y\nperiod: 5 ms\n":  "b.yaml:1:1: bench: a bus",
		"bench: x\n---\nbench: y\n":           "b.yaml:3:",
		"bench: x\nperiod: 5 ms\nbuses: {}\n": "b.yaml:1:1: bench: the plant (plant: NAME) is missing",
	} {
		_, err := Parse("b.yaml", "", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s...", text, err, want)
		}
	}
}

// The control unit is on the first pair; the other end of any other pair is nobody's.
func TestAPairNeedsNobodyAtItsOtherEnd(t *testing.T) {
	const second = "  drive:\n    interface: pair\n    database: powershift.dbc\n  second:"
	for _, c := range []struct {
		old, new string
		want     []bool // buses without a process at the other end
	}{
		{"control_unit: powershift ", "# control_unit: powershift ", []bool{true}},
		{"  drive:", second, []bool{false, true}},
		{"interface: pair ", "interface: vcan0 ", []bool{false}},
		{"  drive:", second + " #", []bool{false, false}}, // a program is on all pairs
	} {
		text := benchtest.DemoText(t, c.old, c.new)
		if strings.HasSuffix(c.new, "#") {
			text = strings.Replace(text, "control_unit: powershift ", "control_unit: {exec: ./tcu} ", 1)
		}
		b, err := Parse("b.yaml", "", []byte(text))
		if err == nil {
			_, err = Prepare(b)
		}
		if err != nil {
			t.Errorf("%s: %v", c.new, err)
			continue
		}
		for i, want := range c.want {
			if got := b.Unconnected(i); got != want {
				t.Errorf("%s: bus %d has nobody at its other end: %v, want %v", c.new, i, got, want)
			}
		}
	}
}

func TestInterfaceCanBeReplaced(t *testing.T) {
	two := benchtest.DemoText(t, "  drive:", "  second:\n    interface: can7\n    database: powershift.dbc\n  drive:")
	for _, c := range []struct{ text, bus, want string }{
		{benchtest.DemoText(t, "pair", "pair"), "vcan0", ""},
		{benchtest.DemoText(t, "pair", "pair"), "drive=vcan0", ""},
		{benchtest.DemoText(t, "pair", "pair"), "dive=vcan0", "run: -bus dive=vcan0: write -bus BUS=INTERFACE; the bench's buses are drive"},
		{two, "vcan0", "run: -bus vcan0: the bench has 2 buses; write -bus second=vcan0"},
		{two, "drive=vcan0", ""},
		{benchtest.DemoText(t, "pair", "pair"), "vcan0;reboot", `run: -bus: "vcan0;reboot" cannot be the name of a CAN interface: 1 to 15 letters, digits, ".", "_" and "-", like vcan0; or pair, or file:LOG, or file:LOG@CHANNEL`},
		{benchtest.DemoText(t, "pair", "pair"), "\x1b[2J", `run: -bus: "\x1b[2J" cannot be the name of a CAN interface: 1 to 15 letters, digits, ".", "_" and "-", like vcan0; or pair, or file:LOG, or file:LOG@CHANNEL`},
		{two, "drive=", "run: -bus drive=: write -bus BUS=INTERFACE; the bench's buses are second, drive"},
	} {
		b, err := Parse("b.yaml", "", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		err = b.SetBuses([]string{c.bus})
		last := b.Buses[len(b.Buses)-1].Interface.Text
		switch {
		case c.want == "" && (err != nil || last != "vcan0"):
			t.Errorf("-bus %s: error %v, interface %s; want vcan0", c.bus, err, last)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("-bus %s: got %v, want %s", c.bus, err, c.want)
		}
	}
}

func TestSeveralBusesOfABenchAreBound(t *testing.T) {
	text := benchtest.DemoText(t, "  drive:", "  second:\n    interface: can7\n    database: powershift.dbc\n    frames:\n      Torque: {cycle: 20 ms}\n    send:\n      - tau_load -> Torque.tau_load\n  drive:")
	b, err := Parse("b.yaml", "", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Maps) != 2 || len(h.Maps[0].Tx) != 1 || len(h.Maps[0].Rx) != 0 || h.Maps[0].Tx[0].CycleTicks != 4 || len(h.Maps[1].Rx) != 2 {
		t.Errorf("got %d maps; want the second bus first, with one message out every 4 ticks", len(h.Maps))
	}
}

func TestPeriodOf100MicrosecondsIsAccepted(t *testing.T) {
	for text, want := range map[string]int64{"100 us": 100_000, "0.1 ms": 100_000, "0.0001 s": 100_000, "10 s": 10e9} {
		if b, err := Parse("b.yaml", "", []byte(benchtest.DemoText(t, "period: 5 ms", "period: "+text))); err != nil || b.PeriodNs != want {
			t.Errorf("period %s: %v", text, err)
		}
	}
}

// The watchdog waits for all missed ticks that the policy tolerates, and for the worst stall of the host.
func TestWatchdogWaitsForToleratedTicksAndTheStallOfTheHost(t *testing.T) {
	for _, c := range []struct {
		change, to string
		realtime   bool
		want       time.Duration
	}{
		{"skip 200", "skip 200", true, 201*5*time.Millisecond + 100*time.Millisecond},
		{"skip 200", "skip 200", false, 201*5*time.Millisecond + 2*time.Second},
		{"skip 200", "stop", true, 5*time.Millisecond + 100*time.Millisecond},
		{"# watchdog: 3 s ", "watchdog: 40 ms ", true, 40 * time.Millisecond},
		{"# watchdog: 3 s ", "watchdog: 40 ms ", false, 40 * time.Millisecond},
	} {
		b, err := Parse("b.yaml", "", []byte(benchtest.DemoText(t, c.change, c.to)))
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Watchdog(c.realtime); got != c.want {
			t.Errorf("%s, real-time rights %t: %v, want %v", c.to, c.realtime, got, c.want)
		}
	}
}

func TestByteOrderMarkIsIgnored(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": benchtest.DemoText(t, "5 ms", "5 ms"), "powershift.dbc": ""} {
		if text == "" {
			data, err := plants.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("\xef\xbb\xbf"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Load(filepath.Join(dir, "b.yaml"))
	if err == nil {
		_, err = Prepare(b)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestFoldersAndMissingFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	large, database := filepath.Join(dir, "large.yaml"), filepath.Join(dir, "large.dbc")
	for _, file := range []string{large, database} {
		if err := os.WriteFile(file, []byte("bench: large\n"+strings.Repeat("#", int(inputfile.Text.Limit()))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{large: inputfile.ErrTooLarge, dir: syscall.EISDIR} {
		if _, err := Load(name); !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if name == large {
			name = database
		}
		b, err := Parse("b.yaml", dir, []byte(benchtest.DemoText(t, "database: powershift.dbc", "database: "+name)))
		if err != nil {
			t.Fatal(err)
		}
		var at *yamlfile.FileError
		if _, err := Prepare(b); !errors.Is(err, want) || !strings.Contains(err.Error(), name) || !errors.As(err, &at) || at.File != "b.yaml" {
			t.Errorf("database %s: %v, want %v", name, err, want)
		}
	}
}

func TestInputsThatNoBusDrivesAreNamed(t *testing.T) {
	b, err := Parse("b.yaml", "", []byte(benchtest.DemoText(t, "      - TCU_Pressure_2.pressure_C8 -> clutch8.pressure\n", "")))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.uncommanded) != 1 || h.uncommanded[0] != "clutch8.pressure follows its own table" {
		t.Errorf("not driven: %q, want clutch8.pressure with its own table", h.uncommanded)
	}
}
