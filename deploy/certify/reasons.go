package certify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/deploy/doctor"
	"lockstep/deploy/hostinfo"
	"lockstep/deploy/latency"
)

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
	reason := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(c.Reasons, text) {
			c.Reasons = append(c.Reasons, text)
		}
	}
	for _, text := range host {
		reason("%s", text)
	}
	for _, why := range c.Run.BestEffortWhy {
		if !slices.Contains(c.Reasons, why) {
			reason("best effort: %s", why)
		}
	}
	if c.CutShort != "" {
		reason("cut short: %s after %v of %v", c.CutShort, seconds(c.Run.SimTime), time.Duration(c.Asked.ForNs))
	}
	if ran := seconds(c.Run.SimTime); ran < longEnough {
		reason("too short: %v; what comes every few minutes is not in it, take at least %v", ran, longEnough)
	}
	if c.Run.Ticks < manySamples {
		reason("too few ticks: %d; p99.9 and max rest on fewer than %d", c.Run.Ticks, manySamples)
	}
	if !c.Asked.Load {
		reason("no load: the host had nothing else to do")
	}
	if c.Run.RxFrames == 0 {
		reason("no frame came in: nobody was at the other end")
	}
	for _, b := range c.Buses {
		if text := c.unreal(b); text != "" {
			reason("%s", text)
		}
	}
	if c.Beside == nil || c.Beside.Cyclictest == nil {
		reason("no cyclictest to compare with")
	} else if n := c.Beside.Cyclictest.Samples; n < fewSamples {
		reason("too few wake-ups of cyclictest: %d; the ratio of p99 rests on fewer than %d", n, fewSamples)
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
