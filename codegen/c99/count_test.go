package c99_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// countTicks is the number of ticks whose instructions are counted: valgrind is fifty times slower.
const countTicks = 100

// instructions returns the mean number of instructions of the first ticks, counted by valgrind; 0
// without valgrind.
func (c track) instructions(t testing.TB, binary, name string) float64 {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return 0
	}
	count := func(runs int) (n float64) {
		cmd := exec.Command(valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", binary, name, strconv.Itoa(runs), strconv.Itoa(blockTicks))
		cmd.Stdin = bytes.NewReader(c.bytes(countTicks))
		cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1") // valgrind stops at the signals of preemption
		out, err := cmd.CombinedOutput()
		_, after, found := strings.Cut(string(out), "Collected : ")
		if _, err2 := fmt.Sscan(after, &n); err != nil || err2 != nil || !found {
			t.Fatalf("valgrind: %v %.500s", err, out)
		}
		return n
	}
	return (count(3) - count(1)) / (2 * countTicks)
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
