package codegen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
)

// logTimes logs the times of a tick of both kernels. text has one line for each plant: its name and
// the times of the generated kernel with constant and with changing inputs, ns.
func logTimes(t *testing.T, list []subject, rows [][][]float64, text string) {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var name string
		var quiet, busy float64
		fmt.Sscan(line, &name, &quiet, &busy)
		k := kernel.New(list[i].tables)
		m, p := k.Dims()
		y, u := make([]float64, p), make([]float64, m)
		copy(u, rows[i][0][3:])
		q, b := time.Hour, time.Hour
		for range 7 {
			k.Reset()
			at := time.Now()
			for range 2000 {
				k.Step(y, u)
			}
			q = min(q, time.Since(at))
			k.Reset()
			at = time.Now()
			for _, r := range rows[i] {
				k.Step(y, r[3:])
			}
			b = min(b, time.Since(at))
		}
		tq, tb := float64(q.Nanoseconds())/2000, float64(b.Nanoseconds())/float64(len(rows[i]))
		t.Logf("%-20s quiet %7.0f ns, table %7.0f: %4.1f times; busy %7.0f ns, table %7.0f: %4.1f times", list[i].name, quiet, tq, tq/quiet, busy, tb, tb/busy)
	}
}
