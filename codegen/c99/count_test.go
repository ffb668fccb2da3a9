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

// countTicks are those whose instructions are counted: valgrind takes fifty times as long.
const countTicks = 100

// instructions are those of one of the first ticks, where valgrind is there to count them; 0
// where not.
func (c track) instructions(t testing.TB, binary, name string) float64 {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return 0
	}
	count := func(runs int) (n float64) {
		cmd := exec.Command(valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", binary, name, strconv.Itoa(runs))
		cmd.Stdin = bytes.NewReader(c.bytes(countTicks))
		cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1") // its signals stop valgrind
		out, err := cmd.CombinedOutput()
		_, after, found := strings.Cut(string(out), "Collected : ")
		if _, err2 := fmt.Sscan(after, &n); err != nil || err2 != nil || !found {
			t.Fatalf("valgrind: %v %.500s", err, out)
		}
		return n
	}
	return (count(3) - count(1)) / (2 * countTicks)
}

// counted tells of the instructions of a tick.
func (l *lap) counted() string {
	if l.instructionsGo == 0 {
		return "not counted, which takes valgrind and the tag long"
	}
	text := fmt.Sprintf("%.0f in Go", l.instructionsGo)
	if l.instructionsC == 0 {
		return text + ", not counted in C: that would need a second build, for a processor that valgrind knows"
	}
	text += fmt.Sprintf(", %.0f in C (-O3)", l.instructionsC)
	if l.instructionsByHand > 0 {
		text += fmt.Sprintf(", %.0f by hand", l.instructionsByHand)
	}
	return text
}
