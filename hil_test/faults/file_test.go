package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	policies = "is not one of: stop, safe, skip N, catchup N (N: grid points at once, 1 to 1000)"
	losses   = "is not one of: continue, safe after T, stop after T (T: 0 s to 3600 s)"
)

// wrong lists wrong lines of the demo bench. Guillemets enclose the refused value.
var wrong = []struct{ old, bad, want string }{
	{"overrun: skip 200", "overrun: «skip»", `overrun: "skip" ` + policies},
	{"overrun: skip 200", "overrun: «skip 0»", `overrun: "skip 0" ` + policies},
	{"overrun: skip 200", "overrun: «skip 1001»", `overrun: "skip 1001" ` + policies},
	{"overrun: skip 200", "overrun: «catchup NaN»", `overrun: "catchup NaN" ` + policies},
	{"overrun: skip 200", "overrun: «safe 3»", `overrun: "safe 3" ` + policies},
	{"overrun: skip 200", "overrun: «ignore»", `overrun: "ignore" ` + policies},
	{"timer: timerfd", "timer: «timerdf»", `timer: "timerdf" is unknown (did you mean timerfd?); known are timerfd, nanosleep`},
	{"scheduler: fifo", "scheduler: «rr»", `scheduler: "rr" is unknown; known are fifo, deadline`},
	{"priority: 80 ", "priority: «100»", `priority: "100" is not a whole number from 1 to 99`},
	{"priority: 80 ", "priority: «0»", `priority: "0" is not a whole number from 1 to 99`},
	{"# spin: 50 us", "spin: «2 ms»", `spin: "2 ms" is not between 0s and 1ms`},
	{"# spin: 50 us", "spin: «-1 us»", `spin: "-1 us" is not between 0s and 1ms`},
	{"# spin: 50 us", "spin: «.nan»", `spin: .nan is not a finite number`},
	{"# spin: 50 us", "spin: «50 rpm»", `spin: "50 rpm": unit rpm does not fit, s is wanted`},
	{"period: 5 ms\nscheme: papers          # one eta step per tick, the rest in the lag buffer; complete: finish the tick\n", "period: 2 ms\nspin: «600 us»\n", `spin: 600µs is longer than a quarter of the period, 2ms`},
	{"# tick_budget: 1 ms", "tick_budget: «6 ms»", `tick_budget: 6ms is longer than the period, 5ms`},
	{"# tick_budget: 1 ms", "tick_budget: «0»", `tick_budget: "0" is not between 1µs and 10s`},
	{"# watchdog: 3 s", "watchdog: «1 ms»", `watchdog: "1 ms" is not between 10ms and 1h0m0s`},
	{"# watchdog: 3 s", "watchdog: «soon»", `watchdog: "soon": "soon" is not a number`},

	{"w1: 0, w2", "«w9»: 0, w2", `safe: plant powershift has no output "w9" (did you mean w1?)`},
	{"w1: 0, w2", "w1: «3 bar», w2", `safe: w1: "3 bar": unit bar does not fit, rpm is wanted`},
	{"w1: 0, w2", "w1: «.nan», w2", `safe: w1: .nan is not a finite number`},
	{"w1: 0, w2", "w1: «400 rad/s», w2", `safe: w1: 400 rad/s is beyond the range of its signal in frame Speeds`},
	{"w1: 0, w2", "w2", `safe: no value for w1, which bus drive sends in frame Speeds (w1: 0 rpm)`},
	{"time: 100 ms ", "time: 7 ms ", `safe: the time, 7ms, is shorter than the cycle of frame Torque, 10ms`},
	{"time: 100 ms ", "time: «2 min» ", `safe: time: "2 min" is not between 1ms and 1m0s`},
	{"  time: 100 ms          # so long after an end\n", "", `safe: the time is missing for which the values are sent after an end (time: 100 ms)`},

	{"planned: silence", "planned: «quiet»", `end: planned: "quiet" is unknown; known are safe, silence`},
	{"policy: safe", "«polici»: safe", `end: unknown key "polici" (did you mean policy?); known are planned, `},
	{"supervisor_gone: stop after 1 s", "supervisor_gone: «stop after»", `end: supervisor_gone: "stop after" ` + losses},
	{"supervisor_gone: stop after 1 s", "supervisor_gone: «continue after 1 s»", `end: supervisor_gone: "continue after 1 s" ` + losses},
	{"supervisor_gone: stop after 1 s", "supervisor_gone: «safe after -1 s»", `end: supervisor_gone: "safe after -1 s" ` + losses},
	{"supervisor_gone: stop after 1 s", "supervisor_gone: «safe after 1 h 1 s»", `end: supervisor_gone: "safe after 1 h 1 s" ` + losses},
	{"supervisor_gone: stop after 1 s", "supervisor_gone:", `end: supervisor_gone: expected one value, got nothing`},
	{"bus_off: continue", "bus_off: «stop after 1 s»", `end: bus_off: "stop after 1 s" is not one of: continue, safe, stop`},
}

// The settings for missed ticks, ends and the thread of the loop are checked before the run starts.
func TestWrongSafetySettingIsRefusedWithPlaceAndRemedy(t *testing.T) {
	for _, c := range wrong {
		text := change(t, demo, []string{c.old, c.bad})
		line, col := 0, 0
		if before, _, marked := strings.Cut(text, "«"); marked {
			line = strings.Count(before, "\n") + 1
			col = len(before) - strings.LastIndex(before, "\n")
		}
		file := filepath.Join(t.TempDir(), "bad.yaml")
		if err := os.WriteFile(file, []byte(strings.NewReplacer("«", "", "»", "").Replace(text)), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "run", file)
		out, _ := cmd.CombinedOutput() // its exit code is checked
		got, _ := strings.CutPrefix(string(out), "lockstep: "+file+":")
		place, message, _ := strings.Cut(got, " bench: ")
		if cmd.ProcessState.ExitCode() != 2 || !strings.HasPrefix(message, c.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: code %d\ngot  %swant %s", c.bad, cmd.ProcessState.ExitCode(), out, c.want)
		}
		if want := fmt.Sprintf("%d:%d:", line, col); line > 0 && place != want {
			t.Errorf("%s: place %s, want %s", c.bad, place, want)
		}
	}
}
