package recorder

import (
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/io/record"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// header is what the record needs to run again without any other file.
func (c *Recorder) header(start, offset int64) (*record.Header, error) {
	b, t := c.Handover.Bench, c.Handover.Tables
	h := &record.Header{
		Version: host.Version(), Host: hostName(), GOARCH: runtime.GOARCH, BestEffort: c.best,
		Period: t.PeriodNs, Start: start + offset, Mono: start,
		Phases: []string{"the tick before", "wake-up", "receive", "step", "send"},
		Hashes: map[string]string{"tables": bench.DigestOfData(t)},
		Notes:  map[string]string{"kernel": c.Handover.Kernel()},
	}
	for _, p := range t.Inputs {
		h.Inputs = append(h.Inputs, record.Signal{Name: p.Name, Unit: p.Unit})
	}
	for _, p := range t.Outputs {
		h.Outputs = append(h.Outputs, record.Signal{Name: p.Name, Unit: p.Unit})
	}
	h.Files = append(h.Files, record.File{Role: "bench", Name: b.File, Text: b.FileText()})
	if s := c.trial; s != nil {
		h.Files = append(h.Files, record.File{Role: "scenario", Name: s.File, Text: s.Source})
	}
	for i, bus := range b.Buses {
		rb := record.Bus{Name: bus.Name.Text, Interface: bus.Interface.Text}
		for _, m := range c.Handover.Maps[i].Rx {
			rb.Messages = append(rb.Messages, record.Message{Name: m.Name, ID: m.ID})
		}
		for _, m := range c.Handover.Maps[i].Tx {
			rb.Messages = append(rb.Messages, record.Message{Name: m.Name, ID: m.ID, Sent: true})
		}
		h.Buses = append(h.Buses, rb)
	}
	files, err := b.Sources()
	if err != nil {
		return nil, err
	}
	h.Files = append(h.Files, files...)
	return h, nil
}

// hostName is the name of this host and its kernel.
func hostName() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	text := func(b []byte) string { return strings.TrimRight(string(b), "\x00") }
	return text(u.Nodename[:]) + ", " + text(u.Sysname[:]) + " " + text(u.Release[:]) + " " + text(u.Version[:]) + ", " + text(u.Machine[:])
}
