package supervisor

import (
	"encoding/json"
	"path/filepath"
	"sync"

	"lockstep/io/inputfile"
	"lockstep/rt/bench"
	"lockstep/rt/metrics"
	"lockstep/rt/recorder"
)

// openMetrics opens the server of the figures for Prometheus, if the bench names an address. If that fails,
// the run goes on without it and shows a message.
func (r *Session) openMetrics() {
	if r.Bench.Metrics == "" {
		return
	}
	figures := &recordFigures{}
	var err error
	r.metrics, err = metrics.Open(r.Bench.Metrics, &metrics.Run{
		View: r.View, BestEffort: len(r.missing) > 0, Previous: r.previous,
		Buses: r.states.figures, Record: func() *metrics.Record { return figures.of(r.record) }, Ended: r.ended.Load,
	})
	if err != nil {
		r.head += err.Error() + "\n"
		return
	}
	r.head += "metrics: " + r.metrics.URL() + "\n"
}

// recordFigures measures the disk of the running record.
type recordFigures struct {
	mu     sync.Mutex
	folder string        // of the last record
	disk   *metrics.Disk // of the folder; nil: no record yet
}

// of returns the state of the running record on disk; nil if the run is not recorded and no record is incomplete.
// After the end of an incomplete record, it is that of the last record.
func (f *recordFigures) of(c *recorder.Recorder) *metrics.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := c.Path()
	if path == "" && (f.disk == nil || !c.Failed()) {
		return nil
	}
	if folder := filepath.Dir(path); path != "" && (f.disk == nil || folder != f.folder) {
		f.folder, f.disk = folder, metrics.NewDisk(folder)
	}
	v := &metrics.Record{Incomplete: c.Failed() || c.LostEntries() > 0}
	v.Free, v.FreeKnown = f.disk.Free()
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
