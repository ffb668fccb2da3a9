package metrics

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"lockstep/sched"
)

// text is an answer in the text format of Prometheus, version 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/. The samples of a family follow its head.
type text struct {
	bytes.Buffer
	name string // of the present family
}

// The types of a family.
const (
	counter = "counter"
	gauge   = "gauge"
)

// family begins a family of samples. help is a sentence without a full stop.
func (t *text) family(name, kind, help string) {
	t.name = name
	t.WriteString("# HELP " + name + " " + strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(help) + "\n")
	t.WriteString("# TYPE " + name + " " + kind + "\n")
}

// sample adds a sample to the family. labels are names and values in turn.
func (t *text) sample(v float64, labels ...string) { t.line("", v, labels...) }

func (t *text) line(suffix string, v float64, labels ...string) {
	t.WriteString(t.name + suffix)
	for i := 0; i+1 < len(labels); i += 2 {
		t.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		t.WriteString(labels[i] + `="` + quoteLabel(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		t.WriteByte('}')
	}
	t.WriteString(" " + number(v) + "\n")
}

// quoteLabel returns the value of a label as it is between quotation marks.
func quoteLabel(v string) string {
	return strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(v, "\uFFFD"))
}

// number formats a value.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// only adds a family of one sample.
func (t *text) only(name, kind, help string, v float64) {
	t.family(name, kind, help)
	t.sample(v)
}

// The buckets of a histogram end at powers of two, ns: they are ends of bins of sched.Histogram, so the
// counts are exact.
const (
	firstBucket = 10 // 1.024 us
	lastBucket  = 34 // 17.2 s
)

// histogram adds a family of buckets, s. The sum is that of the middles of the bins, which are at most
// 1/64 of the duration wide.
func (t *text) histogram(name, help string, h *sched.Histogram) {
	t.family(name, "histogram", help)
	var upTo [lastBucket + 1]uint64 // durations of each bucket
	var n uint64
	sum := 0.0
	for _, c := range h.Classes(64) {
		n += c.N
		sum += float64(c.N) * float64(c.Upper) / 1e9 * (1 - 1.0/128)
		for i := firstBucket; i <= lastBucket; i++ {
			if c.Upper < 1<<i {
				upTo[i] += c.N
				break
			}
		}
	}
	var below uint64
	for i := firstBucket; i <= lastBucket; i++ {
		below += upTo[i]
		t.line("_bucket", float64(below), "le", number(float64(int64(1)<<i)/1e9))
	}
	t.line("_bucket", float64(n), "le", "+Inf")
	t.line("_sum", sum)
	t.line("_count", float64(n))
}
