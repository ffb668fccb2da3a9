package supervisor

import (
	"encoding/json"
	"path/filepath"

	"lockstep/io/inputfile"
	"lockstep/rt/bench"
	"lockstep/rt/metrics"
)

// openMetrics opens the server of the figures for Prometheus, if the bench names an address. If that fails,
// the run goes on without it and shows a message.
func (r *Session) openMetrics() {
	if r.Bench.Metrics == "" {
		return
	}
	disk := metrics.NewDisk(filepath.Dir(r.Options.Record))
	var err error
	r.metrics, err = metrics.Open(r.Bench.Metrics, &metrics.Run{
		View: r.View, BestEffort: len(r.missing) > 0, Previous: r.previous,
		Buses: r.states.figures, Record: func() *metrics.Record { return r.recordFigures(disk) }, Ended: r.ended.Load,
	})
	if err != nil {
		r.head += err.Error() + "\n"
		return
	}
	r.head += "metrics: " + r.metrics.URL() + "\n"
}

// recordFigures returns the state of the record on disk; nil if the run writes none.
func (r *Session) recordFigures(disk *metrics.Disk) *metrics.Record {
	if r.Options.Record == "" {
		return nil
	}
	v := &metrics.Record{Incomplete: r.record.Failed() || r.Status.LostEntries() > 0}
	v.Free, v.FreeKnown = disk.Free()
	return v
}

// figures returns the present states of the buses.
func (s *busStates) figures() (list []metrics.Bus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.buses {
		e := &w.errors
		list = append(list, metrics.Bus{Name: w.bus.Name.Text, Interface: w.bus.Interface.Text, State: w.lastState,
			ErrorFrames: e.Frames, HasCounters: e.HasCounters, Tx: e.Tx, Rx: e.Rx})
	}
	return list
}

// previousEnd returns how the previous run of a bench ended by its report, which this run will replace; nil
// if there is no such report.
func previousEnd(report string, b *bench.Bench) *metrics.End {
	if report == "" || b.Metrics == "" {
		return nil
	}
	f, err := inputfile.Open(report, inputfile.State)
	if err != nil {
		return nil
	}
	defer f.Close()
	end := &metrics.End{}
	if json.NewDecoder(f).Decode(end) != nil || end.Bench != b.Name {
		return nil
	}
	return end
}
