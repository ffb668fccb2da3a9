package recorder

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"lockstep/io/record"
	"lockstep/model/kernel"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// header returns the header of the record, with all files that a replay needs.
func (c *Recorder) header(start, offset int64) (*record.Header, error) {
	b, t := c.Handover.Bench, c.Handover.Tables
	h := &record.Header{
		Version: host.Version(), Host: hostName(), GOARCH: runtime.GOARCH, BestEffort: c.bestEffort,
		Period: t.PeriodNs, Start: start + offset, Mono: start,
		Phases: []string{"the tick before", "wake-up", "receive", "step", "send"},
		Hashes: map[string]string{"tables": bench.DigestOfData(t)},
		Notes:  map[string]string{"kernel": c.Handover.KernelInUse()},

		Handover: c.handover,
	}
	if set := b.SetText(); set != "" {
		h.Notes["set"] = set
	}
	if start := b.StartText(); start != "" {
		h.Notes["start"] = start
	}
	for _, p := range t.Inputs {
		h.Inputs = append(h.Inputs, record.Signal{Name: p.Name, Unit: p.Unit, Declared: p.Declared})
	}
	for i, p := range t.Outputs {
		h.Outputs = append(h.Outputs, record.Signal{Name: p.Name, Unit: p.Unit, Declared: p.Declared,
			Texts: t.OutputForm(i).Modes, FirstText: int(kernel.Backward)})
	}
	h.Files = append(h.Files, record.File{Role: "bench", Name: b.File, Text: b.FileText()})
	if s := c.scenario; s != nil {
		h.Files = append(h.Files, record.File{Role: "scenario", Name: s.File, Text: s.Source})
	}
	for i, bus := range b.Buses {
		rb := record.Bus{Name: bus.Name.Text, Interface: bus.Interface.Text, Database: bus.Database.Text,
			Units: bus.UnitsInPlace()}
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

// hostName returns the name of this host and its kernel.
func hostName() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	text := func(b [65]byte) string { return unix.ByteSliceToString(b[:]) }
	return fmt.Sprintf("%s, %s %s %s, %s", text(u.Nodename), text(u.Sysname), text(u.Release), text(u.Version), text(u.Machine))
}
