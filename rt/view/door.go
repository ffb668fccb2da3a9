package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/record"
	"lockstep/io/strictjson"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/control"
	"lockstep/rt/graph"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/trace"
)

// maxSamples is how many samples a stream has. The page keeps 16,384 of each signal.
const maxSamples = 16000

// second begins the names of the signals of the second record.
const second = "2:"

// Door answers the requests of the page from files of finished runs. All its requests read.
type Door struct {
	description description
	plants      []*graph.Plant // of each file; without elements if the file holds no plant
	runs        []*trace.Trace
	signals     map[string]column
	period      float64 // of the grid of the first record, or least time between two rows of a file without a grid, s
	grid        bool    // the first file is a record: a time is that of a tick
}

// description is the description of a record: that of its run, with the part of time that is known.
type description struct {
	*control.Description
	Record span `json:"record"`
}

// span is what a page must know to move in the time of records.
type span struct {
	Files []string `json:"files"`
	From  float64  `json:"from_s"`
	To    float64  `json:"to_s"`
}

// column is a signal of a record.
type column struct {
	run    *trace.Trace
	signal *trace.Signal
}

// Open reads the part of one file, or of two, that lies in the times of v: records, CSV files, or MDF4 files of
// export. The page shows them side by side, with the plant of each record.
func Open(files []string, v trace.View) (*Door, error) {
	d := &Door{signals: map[string]column{}}
	for i, file := range files {
		run, err := trace.Open("view", file, v)
		if err != nil {
			return nil, err
		}
		isRecord := run.IsRecord()
		if run, err = run.Window(v); err != nil {
			return nil, fmt.Errorf("view: %w", err)
		}
		d.runs = append(d.runs, run)
		if err := d.add(run, isRecord, i); err != nil {
			return nil, fmt.Errorf("view: %s: %w", file, err)
		}
	}
	return d, nil
}

// handover reads the plan of the run of a record.
func handover(file string) (*bench.Handover, error) {
	r, err := record.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return bench.FromRecord(r, host.Version())
}

// add adds the signals of file i to the description.
func (d *Door) add(run *trace.Trace, isRecord bool, i int) (err error) {
	var h *bench.Handover
	of := describeColumns(run)
	if isRecord {
		if h, err = handover(run.File); err != nil {
			return err
		}
		if of, err = control.Describe(report.View{Handover: h}); err != nil {
			return err
		}
	}
	plant := &graph.Plant{Nodes: []graph.PlantNode{}, Elements: []graph.PlantElement{}}
	if isRecord {
		if plant, err = graph.Of(h); err != nil {
			return err
		}
	}
	d.plants = append(d.plants, plant)
	prefix := ""
	s := &d.description.Record
	if from, to := run.Time[0], run.Time[len(run.Time)-1]; i == 0 {
		d.description.Description, d.period, d.grid = of, of.Period, isRecord
		*s = span{From: from, To: to}
	} else {
		prefix = second
		s.From, s.To = min(s.From, from), max(s.To, to)
	}
	s.Files = append(s.Files, filepath.Base(run.File))
	var list []*control.Signal
	for _, signal := range of.Signals {
		at := slices.IndexFunc(run.Signals, func(s trace.Signal) bool { return s.Name == signal.Name })
		if at < 0 || signal.Kind != control.InputKind && signal.Kind != control.OutputKind {
			continue
		}
		name := signal.Name
		signal.Name, signal.Unit = prefix+signal.Name, run.Signals[at].Unit.Spelled
		signal.Settable, signal.Tunable = false, false
		list = append(list, signal)
		values := &run.Signals[at]
		if signal.Follows != "" {
			values = withoutOwn(values, h, name)
		}
		d.signals[signal.Name] = column{run, values}
	}
	if i == 0 {
		of.Signals, of.Commands = nil, []control.Command{}
	}
	d.description.Signals = append(d.description.Signals, list...)
	return nil
}

// withoutOwn returns an input that follows its own waveform in the plant file. A record has the start value of such an
// input and not the values of the waveform: they are not known unless a fault, a command or a file has set the input.
func withoutOwn(s *trace.Signal, h *bench.Handover, name string) *trace.Signal {
	input := slices.IndexFunc(h.Tables.Inputs, func(p units.Port) bool { return p.Name == name })
	start := s.Unit.FromSI(h.Loop.Start[input])
	if slices.ContainsFunc(s.Values, func(v float64) bool { return v != start }) {
		return s
	}
	return &trace.Signal{Name: s.Name, Unit: s.Unit, Values: slices.Repeat([]float64{math.NaN()}, len(s.Values))}
}

// describeColumns describes a file that is no record: its columns are the outputs of a run with the file's name.
func describeColumns(run *trace.Trace) *control.Description {
	of := &control.Description{Bench: filepath.Base(run.File), Period: math.Inf(1)}
	for i := 1; i < len(run.Time); i++ {
		of.Period = min(of.Period, run.Time[i]-run.Time[i-1])
	}
	if math.IsInf(of.Period, 1) {
		of.Period = 1 // one row
	}
	end := math.Max(math.Abs(run.Time[0]), math.Abs(run.Time[len(run.Time)-1]))
	of.Period = max(of.Period, end/1e12) // a tick is an integer
	for i := range run.Signals {
		s := &run.Signals[i]
		of.Signals = append(of.Signals, &control.Signal{Name: s.Name, Kind: control.OutputKind, Direction: "out", Unit: s.Unit.Spelled})
	}
	return of
}

// ServeHTTP answers a request of the page.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		refuse(w, http.StatusConflict, "this is a record: nothing can be changed")
		return
	}
	switch r.URL.Path {
	case "/description":
		answer(w, &d.description)
	case "/plant":
		d.servePlant(w, r)
	case "/status":
		end := d.description.Record.To
		answer(w, &control.Answer{Bench: d.description.Bench, Tick: d.tick(end), Time: end, State: "record"})
	case "/faults":
		answer(w, &control.Answer{Bench: d.description.Bench, Faults: []control.FaultState{}})
	case "/values":
		d.serveValues(w, r)
	case "/stream":
		d.serveStream(w, r)
	default:
		refuse(w, http.StatusNotFound, "a record does not have this")
	}
}

func answer(w http.ResponseWriter, a any) { _ = json.NewEncoder(w).Encode(a) } // fails if the client has gone

func refuse(w http.ResponseWriter, code int, why string) {
	w.WriteHeader(code)
	answer(w, control.Refusal{Error: why})
}

// servePlant answers with the plant of a file, file=1 or file=2; that of the first one if the request names none.
func (d *Door) servePlant(w http.ResponseWriter, r *http.Request) {
	at, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("file"), "1"))
	if err != nil || at < 1 || at > len(d.plants) {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("file: %.40q is not a file of this page: 1 to %d", r.URL.Query().Get("file"), len(d.plants)))
		return
	}
	answer(w, d.plants[at-1])
}

// tick returns the grid point at a time.
func (d *Door) tick(at float64) int64 { return int64(math.Round(at / d.period)) }

// find returns the signals that a request names; NAME[UNIT] is a signal in another unit. It refuses the request
// otherwise.
func (d *Door) find(w http.ResponseWriter, r *http.Request) (list []column, names []control.StreamSignal, ok bool) {
	for _, name := range r.URL.Query()["signal"] {
		c, found := d.signals[name]
		if base, unit, has := strings.Cut(strings.TrimSuffix(name, "]"), "["); !found && has {
			if c, found = d.signals[base]; found {
				s, err := c.signal.Converted(unit)
				if err != nil {
					refuse(w, http.StatusBadRequest, err.Error())
					return nil, nil, false
				}
				c.signal = &s
			}
		}
		if found {
			names = append(names, control.StreamSignal{Name: name, Unit: c.signal.Unit.Spelled})
		} else { // of a run: the figures of the loop and the signals of the buses are not in the ticks
			names = append(names, control.StreamSignal{Name: name})
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		refuse(w, http.StatusBadRequest, "name a signal: signal=NAME")
		return nil, nil, false
	}
	return list, names, true
}

// at returns the value that a signal has at a time: that of the last tick up to it; NaN: there is none.
func (c column) at(time float64) float64 {
	if c.run == nil {
		return math.NaN()
	}
	i, hit := slices.BinarySearch(c.run.Time, time)
	if !hit {
		i--
	}
	if i < 0 {
		return math.NaN()
	}
	return c.signal.Values[i]
}

// serveValues answers with values at the time at, s, without it at the end.
func (d *Door) serveValues(w http.ResponseWriter, r *http.Request) {
	list, names, ok := d.find(w, r)
	if !ok {
		return
	}
	at := d.description.Record.To
	if text := r.URL.Query().Get("at"); text != "" {
		if err := json.Unmarshal([]byte(text), &at); err != nil {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("at: %.40q is not a time in seconds, like 1.5", text))
			return
		}
	}
	tick := int64(math.Floor(at/d.period + 1e-6)) // a decimal time is not a whole number of periods in binary
	if d.grid {
		at = float64(tick) * d.period
	}
	a := control.Values{Tick: tick, Time: at, Values: []control.Value{}}
	for i, c := range list {
		v := c.at(at + d.period/1e3)
		value := control.Value{Name: names[i].Name, Unit: names[i].Unit}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			value.Value = &v
		}
		a.Values = append(a.Values, value)
	}
	answer(w, &a)
}

// serveStream writes the whole record, at most maxSamples samples, and ends when the client leaves. A sample has
// the last, the least and the largest values of its interval.
func (d *Door) serveStream(w http.ResponseWriter, r *http.Request) {
	list, names, ok := d.find(w, r)
	if !ok {
		return
	}
	s := d.description.Record
	first, last := d.tick(s.From), d.tick(s.To)
	every := max(1, (last-first+maxSamples)/maxSamples)
	lines := json.NewEncoder(w)
	_ = lines.Encode(control.StreamStart{Signals: names, Period: d.period, Every: every})
	next := make([]int, len(list)) // first tick of each signal that is not yet in a sample
	for k := first; k <= last; k += every {
		end := min(k+every-1, last)
		o := control.Sample{Tick: end, Time: float64(end) * d.period,
			Last: make(strictjson.Numbers, len(list)), Min: make(strictjson.Numbers, len(list)), Max: make(strictjson.Numbers, len(list))}
		for i, c := range list {
			o.Last[i], o.Min[i], o.Max[i] = math.NaN(), math.NaN(), math.NaN()
			for ; c.run != nil && next[i] < len(c.run.Time) && c.run.Time[next[i]] < o.Time+d.period/2; next[i]++ {
				v := c.signal.Values[next[i]]
				if o.Last[i] = v; !(v >= o.Min[i]) {
					o.Min[i] = v
				}
				if !(v <= o.Max[i]) {
					o.Max[i] = v
				}
			}
		}
		if lines.Encode(o) != nil {
			return
		}
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done() // the page would take an end for a lost connection
}
