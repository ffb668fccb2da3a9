package soak

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockstep/rt/ecu"
	"lockstep/rt/report"
	"lockstep/sched"
)

// tally adds legs up. It stays as large as it is, however many there are.
type tally struct {
	Legs   int           `json:"legs"` // done, broken ones included
	Broken int           `json:"broken"`
	Asked  int64         `json:"asked"`   // ticks of these
	WallNs int64         `json:"wall_ns"` // from their first grid points to their ends
	Sum    report.Report `json:"sum"`     // counts added, the largest of largest ones
	Late   *histograms   `json:"histograms"`

	Most    int64             `json:"most"` // points lost at once
	Listed  uint64            `json:"listed"`
	Points  int64             `json:"points"` // by the ledger
	Due     int64             `json:"due"`    // frames, of legs in which none is disturbed on purpose
	Unsent  int64             `json:"unsent"` // of them at missed ticks
	Sent    sentCounts        `json:"sent"`   // what became of these
	Unit    ecu.Counts        `json:"unit"`   // of the control unit, in these legs
	Demands []*demandSum      `json:"demands"`
	Kinds   []*report.LegKind `json:"kinds"`
}

// histograms are those of a page.
type histograms struct{ Late, Work, Response sched.Histogram }

// sentCounts are what became of frames that were due, and of received ones.
type sentCounts struct{ Sent, Dropped, Refused, Lost, Received uint64 }

// demandSum is what became of one demand in all legs.
type demandSum struct {
	report.Demand        // of the latest leg
	Legs          int    `json:"legs"`
	Broken        int    `json:"broken"`
	First         string `json:"first,omitempty"` // that was broken
}

// kind is the entry of a kind of legs.
func (t *tally) kind(name string) *report.LegKind {
	i := slices.IndexFunc(t.Kinds, func(k *report.LegKind) bool { return k.Kind == name })
	if i < 0 {
		i = len(t.Kinds)
		t.Kinds = append(t.Kinds, &report.LegKind{Kind: name})
	}
	return t.Kinds[i]
}

// add takes a leg that has ended; v has its verdict.
func (t *tally) add(l leg, s *soak, v *report.Report) {
	h, p := s.r.Handover, s.r.Page
	t.Legs++
	t.Asked += h.Loop.Ticks
	t.WallNs += max(0, s.r.Target.EndedNs-int64(p.StartNs.Load()))
	if t.Late == nil {
		t.Late = &histograms{}
	}
	t.Late.Late.Merge(&p.Late)
	t.Late.Work.Merge(&p.Work)
	t.Late.Response.Merge(&p.Response)
	addReport(&t.Sum, v)
	t.Most, t.Listed, t.Points = max(t.Most, s.most), t.Listed+s.entries-s.gone, t.Points+s.lost
	k := t.kind(l.kind)
	k.Legs, k.Ticks, k.Missed = k.Legs+1, k.Ticks+v.Ticks, k.Missed+v.Missed
	if s.r.Scenario.Scenario != nil {
		k.Faults += len(s.r.Scenario.Scenario.Faults)
	}
	if !s.disturbed() {
		t.Due, t.Unsent = t.Due+framesDue(h, 1, int64(v.Ticks)), t.Unsent+s.unsent
		c := &t.Sent
		*c = sentCounts{c.Sent + v.TxFrames, c.Dropped + v.TxDropped, c.Refused + v.TxRefused, c.Lost + v.TxLost, c.Received + v.RxFrames}
		if u, err := ecu.ParseCounts(v.Unit); err == nil {
			addCounts(&t.Unit, u)
		}
	}
	if !v.Soak.Pass {
		t.Broken++
		k.Broken++
		k.First = cmp.Or(k.First, fmt.Sprintf("leg %d: %v", l.number, firstLine(v.Soak.Failed())))
	}
	for _, d := range v.Soak.Demands {
		t.demand(l, d)
	}
}

func (t *tally) demand(l leg, d report.Demand) {
	i := slices.IndexFunc(t.Demands, func(e *demandSum) bool { return e.What == d.What })
	if i < 0 {
		i = len(t.Demands)
		t.Demands = append(t.Demands, &demandSum{})
	}
	e := t.Demands[i]
	e.Demand = d
	if e.Legs++; !d.Held {
		e.Broken++
		e.First = cmp.Or(e.First, fmt.Sprintf("leg %d, %s: demanded %s; seen %s", l.number, l.kind, d.Want, d.Seen))
	}
}

// addCounts adds what a control unit has sent and heard.
func addCounts(u *ecu.Counts, v ecu.Counts) {
	u.Cycles, u.Missed, u.Dropped = u.Cycles+v.Cycles, u.Missed+v.Missed, u.Dropped+v.Dropped
	u.Heard, u.Malformed, u.Lost = u.Heard+v.Heard, u.Malformed+v.Malformed, u.Lost+v.Lost
}

// addReport adds the counts of v; what is the same in all runs is v's.
func addReport(r *report.Report, v *report.Report) {
	usage := report.Usage{}
	for _, u := range []*report.Usage{r.Usage, v.Usage} {
		if u != nil {
			usage = report.Usage{Allocs: usage.Allocs + u.Allocs, GCCycles: usage.GCCycles + u.GCCycles, MinorFaults: usage.MinorFaults + u.MinorFaults, MajorFaults: usage.MajorFaults + u.MajorFaults}
		}
	}
	for dst, n := range map[*uint64]uint64{
		&r.Ticks: v.Ticks, &r.Missed: v.Missed, &r.Unserved: v.Unserved, &r.LateTicks: v.LateTicks, &r.LedgerLost: v.LedgerLost,
		&r.Events: v.Events, &r.Transitions: v.Transitions, &r.RxFrames: v.RxFrames, &r.TxFrames: v.TxFrames, &r.RxUnknown: v.RxUnknown,
		&r.RxShort: v.RxShort, &r.RxRange: v.RxRange, &r.RxInvalid: v.RxInvalid, &r.RxBad: v.RxBad, &r.RxOverflow: v.RxOverflow,
		&r.RxBadSize: v.RxBadSize, &r.RxBound: v.RxBound, &r.RxStale: v.RxStale, &r.TxDropped: v.TxDropped, &r.TxAgain: v.TxAgain,
		&r.TxLost: v.TxLost, &r.TxRefused: v.TxRefused, &r.Saturated: v.Saturated, &r.BusDown: v.BusDown, &r.BusErrors: v.BusErrors,
		&r.BusOffs: v.BusOffs,
	} {
		*dst += n
	}
	r.Usage, r.LagMax, r.Lag, r.Still = &usage, max(r.LagMax, v.LagMax), v.Lag, r.Still+v.Still
	r.SafeFrames, r.SimTime = r.SafeFrames+v.SafeFrames, r.SimTime+v.SimTime
	r.Plant, r.Bench, r.Kernel, r.StepNs, r.BudgetNs, r.Overrun = v.Plant, v.Bench, v.Kernel, v.StepNs, v.BudgetNs, v.Overrun
	r.BestEffort = r.BestEffort || v.BestEffort
	for i, why := range v.BestEffortWhy {
		if !slices.Contains(r.BestEffortWhy, why) && len(r.BestEffortWhy) < worstRoom {
			r.BestEffortWhy = append(r.BestEffortWhy, why)
			if i < len(v.BestEffortHelp) && !slices.Contains(r.BestEffortHelp, v.BestEffortHelp[i]) {
				r.BestEffortHelp = append(r.BestEffortHelp, v.BestEffortHelp[i])
			}
		}
	}
	r.Ledger = append(r.Ledger, v.Ledger...)
	slices.SortStableFunc(r.Ledger, func(a, b report.LateTick) int { return cmp.Compare(b.LateNs, a.LateNs) })
	r.Ledger = slices.Clone(r.Ledger[:min(len(r.Ledger), worstRoom)])
}

// worstRoom is how many of the latest ticks the report of a soak lists.
const worstRoom = 32

// report is that of all legs, without a verdict; unit is the control unit's name.
func (t *tally) report(unit string) *report.Report {
	v := t.Sum
	if v.BestEffortWhy == nil {
		v.BestEffortWhy = []string{}
	}
	if t.Late != nil {
		v.Late, v.Tick = report.Quantiles(&t.Late.Late), report.Quantiles(&t.Late.Work)
		if h := &t.Late.Response; h.N() > 0 {
			s := report.Quantiles(h)
			v.Response = &s
			for _, c := range h.Classes(8) {
				v.Responses = append(v.Responses, report.Class{c.Upper, int64(c.N)})
			}
		}
	}
	if t.Unit != (ecu.Counts{}) {
		v.Unit = unit + ": " + t.Unit.String()
	}
	return &v
}

// verdict is that on all legs; length is how long they are to be together.
func (t *tally) verdict(length time.Duration, load string) *report.Verdict {
	d := &report.Verdict{Load: load}
	for _, e := range t.Demands {
		want, seen := t.words(e, length)
		held := e.Broken == 0
		if e.What == "ticks" {
			held = held && t.Asked >= int64(length)/t.Sum.StepNs
		}
		if e.Broken > 0 && t.Legs > 1 {
			seen += fmt.Sprintf("; broken in %d of %d legs, first in %s", e.Broken, e.Legs, e.First)
		}
		d.Demand(held, e.What, want, "%s", seen)
	}
	if t.Legs == 0 {
		d.Demand(false, "ticks", length.String(), "no leg is done")
	}
	d.Pass = d.Failed() == nil
	return d
}

// words are what was demanded and seen over all legs; of one leg its own.
func (t *tally) words(e *demandSum, length time.Duration) (want, seen string) {
	v, c := &t.Sum, &t.Sent
	if e.What == "ticks" {
		return fmt.Sprintf("%d, %v / %g ms", int64(length)/v.StepNs, length, float64(v.StepNs)/1e6),
			fmt.Sprintf("%d in %.3f s", v.Ticks, float64(t.WallNs)/1e9)
	}
	if t.Legs == 1 {
		return e.Want, e.Seen
	}
	legs := fmt.Sprintf("held in %d of %d legs", e.Legs-e.Broken, e.Legs)
	switch want = e.Want; e.What {
	case "missed ticks":
		seen = fmt.Sprintf("%d, %.3f %%, at most %d at once", v.Missed, 100*float64(v.Missed)/float64(max(1, v.Ticks)), t.Most)
	case "ledger":
		seen = fmt.Sprintf("%d of %d late ticks, %d of %d points", t.Listed, v.LateTicks, t.Points, v.Missed)
	case "lag":
		seen = fmt.Sprintf("largest %.3f ms, %s", v.LagMax*1e3, legs)
	case "allocations":
		seen = fmt.Sprintf("%d, %d", v.Usage.Allocs, v.Usage.GCCycles)
	case "page faults":
		seen = fmt.Sprintf("%d minor, %d major", v.Usage.MinorFaults, v.Usage.MajorFaults)
	case "frames out":
		want = fmt.Sprintf("%d due, %d of them at missed ticks", t.Due, t.Unsent)
		seen = fmt.Sprintf("%d sent, %d dropped, %d refused, %d of missed ticks, in %d legs", c.Sent, c.Dropped, c.Refused, c.Lost, e.Legs)
	case "bus":
		seen = fmt.Sprintf("dropped %d, refused %d, %s", c.Dropped, c.Refused, legs)
	case "frames in":
		seen = fmt.Sprintf("%d, %s", c.Received, legs)
	case "control unit":
		seen = t.Unit.String()
	default:
		if e.What != "end" && e.What != "expectations" && e.What != "faults" {
			want = "as in each leg: " + want
		}
		seen = legs
	}
	return want, seen
}
