package latency

import (
	"encoding/json"
	"maps"
)

// ratioText says how the ratios are made.
const ratioText = "ratio_p50 and ratio_p99 are medians over the rounds of the quotient of the two quantiles of one round, " +
	"so that a burst of another tenant in one round does not decide; ratio_pooled_p50 and ratio_pooled_p99 are quotients " +
	"of the quantiles over all rounds. The counterpart is named in `against`."

// noLoad is the text of the load where there was none.
const noLoad = "none"

// ByMethod are the figures of all methods in one state of the host.
type ByMethod struct {
	Tickers    map[string]*Figures `json:"tickers"`    // ours, by name; one that failed is not there
	Cyclictest *Figures            `json:"cyclictest"` // nil: not measured
	CTimerfd   *Figures            `json:"c_timerfd"`  // nil: not measured
}

// all are the figures by the names of their methods.
func (l *ByMethod) all() map[string]*Figures {
	all := maps.Clone(l.Tickers)
	for name, f := range map[string]*Figures{peerCyclictest: l.Cyclictest, peerTimerfd: l.CTimerfd} {
		if f != nil {
			all[name] = f
		}
	}
	return all
}

// Report is the outcome of a Measurement. Its keys do not change.
type Report struct {
	ByMethod                 // under load, or idle if Load is "none"
	Idle           *ByMethod `json:"idle"`
	Load           string    `json:"load"`           // what the load was, "none"
	Ratios         string    `json:"ratios"`         // how the ratios are made
	Representative bool      `json:"representative"` // nothing speaks against the figures
	Reasons        []string  `json:"reasons"`        // what does
	Host           Host      `json:"host"`
	Period         int64     `json:"period_ns"`
	Spin           int64     `json:"spin_ns"` // of the methods called _spin
	CPU            int       `json:"cpu"`
	Priority       int       `json:"priority"`
	Rounds         int       `json:"rounds"`
	Seconds        float64   `json:"seconds"` // all turns together
}

// JSON is the report for machines.
func (r *Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}
