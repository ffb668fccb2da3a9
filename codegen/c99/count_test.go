package c99_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// countTicks is the number of ticks whose instructions are counted: valgrind is fifty times slower.
const countTicks = 100

// instructions returns the mean number of instructions of the first ticks, counted by valgrind; 0
// without valgrind.
func (c track) instructions(t testing.TB, binary, name string) float64 {
	return c.instructionsOf(t, binary, name, countTicks) / countTicks
}

// instructionsOf returns the number of instructions of the first ticks together.
func (c track) instructionsOf(t testing.TB, binary, name string, ticks int) float64 {
	t.Helper()
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return 0
	}
	count := func(runs int) (n float64) {
		cmd := exec.Command(valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", binary, name, strconv.Itoa(runs), strconv.Itoa(blockTicks))
		cmd.Stdin = bytes.NewReader(c.bytes(ticks))
		cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1") // valgrind stops at the signals of preemption
		out, err := cmd.CombinedOutput()
		_, after, found := strings.Cut(string(out), "Collected : ")
		if _, err2 := fmt.Sscan(after, &n); err != nil || err2 != nil || !found {
			t.Fatalf("valgrind: %v %.500s", err, out)
		}
		return n
	}
	return (count(3) - count(1)) / 2
}

// instructionText describes the instructions of a tick.
func (l *lap) instructionText() string {
	if l.instructionsGo == 0 {
		return "not counted; counting needs valgrind and the tag long"
	}
	text := fmt.Sprintf("%.0f in Go", l.instructionsGo)
	if l.instructionsC == 0 {
		return text + ", not counted in C: this plant has no build for a processor that valgrind supports"
	}
	text += fmt.Sprintf(", %.0f in C (-O3)", l.instructionsC)
	if l.instructionsByHand > 0 {
		text += fmt.Sprintf(", %.0f by hand", l.instructionsByHand)
	}
	return text
}

// TestTickWithAnEventTakesFewInstructions holds the slowest tick of a plant with its own waveforms, among the first
// 1000, at a multiple of the instructions of a quiet tick.
func TestTickWithAnEventTakesFewInstructions(t *testing.T) {
	needGcc(t)
	if _, err := exec.LookPath("valgrind"); err != nil {
		lab.Skip(t, "valgrind is missing; it counts instructions: apt-get install valgrind")
	}
	for _, r := range []struct {
		racer
		tick int     // the slowest
		most float64 // quiet ticks
	}{
		{racers[0], 906, 16}, {racers[1], 800, 5}, {racers[2], 511, 16},
	} {
		s, err := embedded(r.name, true, r.period)
		if err != nil {
			t.Fatal(err)
		}
		binary := newCBuild(t, map[string]files{s.name: s.cFiles}).build(t, "-O2 -ffp-contract=off").binary
		tracks := s.tracks()
		quiet := tracks[0].instructions(t, binary, s.name)
		slowest := tracks[1].instructionsOf(t, binary, s.name, r.tick+1) - tracks[1].instructionsOf(t, binary, s.name, r.tick)
		t.Logf("%s: quiet tick %.0f instructions, tick %d %.0f: %.1f times", s.name, quiet, r.tick, slowest, slowest/quiet)
		if !(slowest/quiet <= r.most) || !(slowest/quiet >= 2) {
			t.Errorf("%s: tick %d takes %.1f times the instructions of a quiet tick, want 2 to %g", s.name, r.tick, slowest/quiet, r.most)
		}
	}
}
