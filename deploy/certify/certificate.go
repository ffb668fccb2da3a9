// Package certify owns the certificate of a bench on a host: it measures a bench, writes the
// certificate as a page for people and as JSON, and compares two. ../CERTIFICATE.md describes
// the contents of a certificate and the comparison.
//
// The package does not judge a host (package doctor) and does not run a bench: measure.go calls the
// supervisor for that.
//
// Reading order: certificate.go (Certificate, the reasons against its figures), measure.go
// (Order.Measure), files.go (both files appear complete, the summary for a terminal), html.go (the
// page), compare.go and figures.go (two certificates).
package certify

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/report"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Certificate is what was measured, where, and of what. Its JSON keys do not change.
type Certificate struct {
	Format int    `json:"lockstep_certificate"` // of these keys: 1
	SHA256 string `json:"sha256"`               // of this JSON with this text empty
	Made   string `json:"made"`                 // when it was complete, RFC 3339, UTC
	Again  string `json:"again"`                // the command that measures it again and compares
	Asked  Asked  `json:"asked"`

	Representative bool     `json:"representative"` // of a tuned real-time host, nothing speaks against it
	Reasons        []string `json:"reasons"`        // what does
	CutShort       string   `json:"cut_short"`      // why it is shorter than was asked for; "": it is not

	Run      *report.Report    `json:"run"`
	Late     *Distribution     `json:"wake_up"`    // of every grid point, from its due time; nil: no tick came
	Tick     *Distribution     `json:"tick"`       // from the wake-up to the return of the last send
	Response *Distribution     `json:"bus_to_bus"` // nil: no frame that came in had a time
	Beside   *Beside           `json:"beside"`     // nil: cyclictest was not measured
	Worst    *check.WorstCase  `json:"worst_case"`
	Buses    []Bus             `json:"buses"`
	Deadline bool              `json:"deadline"` // the loop is SCHED_DEADLINE, not SCHED_FIFO
	Box      hostinfo.Machine  `json:"box"`
	Doctor   *doctor.Diagnosis `json:"doctor"`
	Versions Versions          `json:"versions"`

	text []byte // that it was read from; nil: it was not
}

// Asked is what the measurement was asked for.
type Asked struct {
	Bench      string   `json:"bench"` // an absolute path, or an embedded one
	ForNs      int64    `json:"for_ns"`
	Bus        []string `json:"bus,omitempty"`
	UnitBus    string   `json:"unitbus,omitempty"`
	Load       bool     `json:"load"`
	BestEffort bool     `json:"besteffort"`
	Kernel     string   `json:"kernel"` // table, generated, or the path of an executable
}

// Beside is the loop beside cyclictest, in turns of the same time on the same CPU.
type Beside struct {
	Rounds     int              `json:"rounds"`
	Loop       *latency.Figures `json:"loop"`
	Cyclictest *latency.Figures `json:"cyclictest"` // nil: it failed
	Alone      *latency.Figures `json:"alone"`      // the loop while no cyclictest ran; nil: there was no such time
	Priority   int              `json:"priority"`   // SCHED_FIFO, of cyclictest, and of the loop but for a deadline
	PhaseNs    int64            `json:"phase_ns"`   // of cyclictest after the loop's grid points
}

// Bus is a bus of the bench.
type Bus struct {
	Name      string `json:"name"`
	Interface string `json:"interface"`
}

// Versions are what ran.
type Versions struct {
	Lockstep string       `json:"lockstep"` // version, commit where it is known, compiler
	Modified bool         `json:"modified"` // the sources were not those of the revision
	Go       string       `json:"go"`
	Arch     string       `json:"arch"`   // with its level: amd64 v1
	Binary   string       `json:"binary"` // SHA-256 of the executable
	Files    []bench.Hash `json:"files"`
}

// Distribution is a histogram.
type Distribution struct {
	Samples uint64         `json:"samples"`
	MaxNs   int64          `json:"max_ns"`
	Micros  map[int]uint64 `json:"histogram_us"`     // below 10 ms: class of 1 µs, by its lower end: how many
	Beyond  []Beyond       `json:"beyond,omitempty"` // from 10 ms on, the shortest first
}

// Beyond is a class of a histogram from 10 ms on.
type Beyond struct {
	UpperNs int64  `json:"upper_ns"` // the longest time that belongs to it
	N       uint64 `json:"n"`
}

// distribution reads a histogram of the loop; nil if it is empty.
func distribution(h *sched.Histogram) *Distribution {
	if h.N() == 0 {
		return nil
	}
	d := &Distribution{Samples: h.N(), MaxNs: h.Max(), Micros: map[int]uint64{}}
	left := d.Samples
	for us := range sched.Micros {
		if n := h.Micro(us); n > 0 {
			d.Micros[us] = n
			left -= n
		}
	}

	// The class in which 10 ms lies has shorter ones, too: it has what the others leave.
	classes := h.Classes(64)
	for i := len(classes) - 1; i >= 0 && left > 0; i-- {
		n := min(classes[i].N, left)
		d.Beyond = append([]Beyond{{classes[i].Upper, n}}, d.Beyond...)
		left -= n
	}

	return d
}

// Scheduler is that of the loop.
func (c *Certificate) Scheduler() string {
	if c.Deadline {
		return "SCHED_DEADLINE"
	}
	return fmt.Sprintf("SCHED_FIFO %d", c.Doctor.Host.Priority)
}

// hashed matches the hash in the text of a certificate.
var hashed = regexp.MustCompile(`"sha256": "([0-9a-f]{64})"`)

// JSON is the certificate for machines; it fills in the hash.
func (c *Certificate) JSON() ([]byte, error) {
	c.SHA256 = ""
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	c.SHA256 = hashOf(text)
	return sealed(text), nil
}

// sealed is a text whose hash is empty, with it.
func sealed(text []byte) []byte {
	return bytes.Replace(text, []byte(`"sha256": ""`), fmt.Appendf(nil, `"sha256": "%s"`, hashOf(text)), 1)
}

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// Read reads the JSON of a certificate, name is its file's. One that was changed after
// it was made is an error.
func Read(name string, text []byte) (*Certificate, error) {
	fail := func(format string, args ...any) (*Certificate, error) {
		return nil, fmt.Errorf("certify: "+name+": "+format, args...)
	}
	const other = "it is not the JSON of a certificate"
	var head struct {
		Format any `json:"lockstep_certificate"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fail(other+": %w", err)
	}
	switch head.Format {
	case float64(1):
	case nil:
		return fail(other + ": it has no lockstep_certificate")
	default:
		return fail("a certificate of another format: %v; this version reads 1", head.Format)
	}

	at := hashed.FindSubmatchIndex(text)
	if at == nil {
		return fail(other + ": it has no sha256")
	}
	empty := slices.Concat(text[:at[2]], text[at[3]:])
	if want, got := string(text[at[2]:at[3]]), hashOf(empty); got != want {
		return fail("it was changed after it was made: its sha256 says %.12s..., its content has %.12s...", want, got)
	}

	c := &Certificate{text: text}
	if err := json.Unmarshal(text, c); err != nil {
		return fail("%w", err)
	}
	if c.Run == nil || c.Doctor == nil {
		return fail(other + ": it has no run or no doctor")
	}
	return c, nil
}

// What a certificate rests on at least: rare delays have causes that come every few
// minutes, and a 99.9th percentile has ten samples above it, a 99th of cyclictest too.
const (
	longEnough  = 10 * time.Minute
	manySamples = 10_000
	fewSamples  = manySamples / 10
)

// objections says why what is measured on the loop's CPU of a host is not that of a tuned
// real-time one: all that the doctor marks MUST and finds otherwise.
func objections(h *hostinfo.Host, d doctor.Diagnosis) []string {
	plain, list := latency.Objections(h), []string{}
	for _, o := range plain {
		list = append(list, o.Text)
	}
	if in := d.Host.Container; in != "" {
		list = append(list, "the process is in a container ("+in+"): what else the host does cannot be seen")
	}
	for _, c := range d.Checks {
		if c.Level == doctor.Must && c.Verdict != doctor.OK && !slices.ContainsFunc(plain, func(o latency.Objection) bool { return o.Check == c.Name }) {
			list = append(list, fmt.Sprintf("%s: %s; wanted: %s", c.Name, c.Found, c.Wanted))
		}
	}

	return list
}

// judge says whether the certificate is representative of a tuned real-time host; host
// is what speaks against the host itself.
func (c *Certificate) judge(host []string) {
	c.Reasons = []string{}
	reason := func(when bool, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); when && !slices.Contains(c.Reasons, text) {
			c.Reasons = append(c.Reasons, text)
		}
	}

	for _, text := range host {
		reason(true, "%s", text)
	}
	for _, why := range c.Run.BestEffortWhy {
		reason(!slices.Contains(c.Reasons, why), "best effort: %s", why)
	}

	ran := seconds(c.Run.SimTime)
	reason(c.CutShort != "", "cut short: %s after %v of %v", c.CutShort, ran, time.Duration(c.Asked.ForNs))
	reason(ran < longEnough, "too short: %v; what comes every few minutes is not in it, take at least %v", ran, longEnough)
	reason(c.Run.Ticks < manySamples, "too few ticks: %d; p99.9 and max rest on fewer than %d", c.Run.Ticks, manySamples)
	reason(!c.Asked.Load, "no load: the host had nothing else to do")
	reason(c.Run.RxFrames == 0, "no frame came in: nobody was at the other end")
	for _, b := range c.Buses {
		text := c.unreal(b)
		reason(text != "", "%s", text)
	}

	if c.Beside == nil || c.Beside.Cyclictest == nil {
		reason(true, "no cyclictest to compare with")
	} else {
		n := c.Beside.Cyclictest.Samples
		reason(n < fewSamples, "too few wake-ups of cyclictest: %d; the ratio of p99 rests on fewer than %d", n, fewSamples)
	}

	c.Representative = len(c.Reasons) == 0
}

// unreal says why the times of frames on a bus are not those of CAN; "": they are.
func (c *Certificate) unreal(b Bus) string {
	switch {
	case b.Interface == "pair":
		return fmt.Sprintf("bus %s is a pair of sockets in this host: no CAN card, driver or wire is in its times", b.Name)
	case strings.HasPrefix(b.Interface, "file:"):
		return fmt.Sprintf("bus %s is a log that is played: no CAN card, driver or wire is in its times", b.Name)
	}

	for _, card := range c.Box.CAN {
		if card.Interface == b.Interface && card.Driver == "" {
			return fmt.Sprintf("bus %s on %s is a virtual interface: no CAN card or wire is in its times", b.Name, b.Interface)
		}
	}

	return ""
}

// seconds is a time in s, to the ms.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}
