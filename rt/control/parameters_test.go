package control

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"lockstep/model/plantfile"
)

// present returns the value of mu_oil at the present tick.
func (c *controlled) present() float64 {
	c.t.Helper()
	code, body := c.exchange("GET /values?signal=mu_oil HTTP/1.1\r\nHost: x\r\n\r\n")
	v := decoded(c.t, body)
	values, ok := v.(map[string]any)["values"].([]any)
	if code != 200 || !ok {
		c.t.Fatalf("%d %s", code, body)
	}
	return values[0].(map[string]any)["value"].(float64)
}

// A burst of requests becomes a few changes. Each answer names a tick of a change, and all but the last
// ones of a change say that they were superseded.
func TestRequestsDuringAPreparationBecomeOneChange(t *testing.T) {
	c := newControlled(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	effective, superseded := map[int64]string{}, 0
	const requests = 20
	for i := range requests {
		all.Go(func() {
			value := fmt.Sprint(0.08 + 0.001*float64(i))
			a, err := c.ask("param", "mu_oil="+value)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case a.Superseded:
				superseded++
			case effective[a.Tick] != "" || a.Parameters["mu_oil"] != value:
				t.Errorf("mu_oil=%s: %+v; at this tick there is mu_oil=%s already", value, a, effective[a.Tick])
			default:
				effective[a.Tick] = value
			}
		})
	}
	all.Wait()
	a := c.must("status")
	if len(effective)+superseded != requests || superseded == 0 || a.Changes != uint64(len(effective)) || a.Refusals != 0 {
		t.Errorf("%d changes took effect, %d requests were superseded; status %d, %d refused", len(effective), superseded, a.Changes, a.Refusals)
	}
	var last int64
	for tick := range effective {
		last = max(last, tick)
	}
	if now := c.present(); fmt.Sprint(now) != effective[last] || a.Parameters["mu_oil"] != effective[last] {
		t.Errorf("mu_oil is %g, status has %v; want %s", now, a.Parameters, effective[last])
	}
}

func TestImpossibleParametersAreRefusedAndChangeNothing(t *testing.T) {
	c := newControlled(t)
	for request, want := range map[string]string{
		`{"values": {"mu_oli": 0.1}}`:                `the plant has no parameter \"mu_oli\" (did you mean mu_oil?)`,
		`{"values": {"mu_oil": 0.3}}`:                `0.3 is outside 0.05 to 0.2`,
		`{"values": {"mu_oil": "0.1 kg"}}`:           `unit kg does not fit, 1 is wanted`,
		`{"values": {"n_c": 12}}`:                    `parameter \"n_c\" cannot change in a run: the plant file does not say tune: true`,
		`{"values": {"mu_oil": []}}`:                 `\"mu_oil\" needs a number or a text as its value`,
		`{"values": {"mu_oil": ""}}`:                 `\"mu_oil\" needs a number or a text as its value`,
		`{"values": {"": 1}}`:                        `needs a number or a text as its value`,
		`{"values": {}}`:                             `NAME=VALUE is missing`,
		`{"values": {"mu_oil": "NaN"}}`:              `NaN`,
		`{"values": {"mu_oil": "1/0"}}`:              `1/0`,
		`{"values": {"mu_oil": 0.1, "mu_oli": 0.1}}`: `no parameter \"mu_oli\"`,
		`{"values": {"mu_oil": "0.1\n+0"}}`:          `characters that cannot be printed`,
		`{"values": {"mu_oil": 0.1}, "tick": 5}`:     `unknown field`,
	} {
		code, body := c.exchange(post("/param", request))
		if code != 400 || !strings.Contains(body, want) || strings.Count(body, "\n") != 1 {
			t.Errorf("%s: %d %s, want %s", request, code, body, want)
		}
	}
	if now := c.present(); now != 0.1 {
		t.Errorf("mu_oil is %g, want 0.1", now)
	}
	c.s.parameters.fixed = fmt.Errorf("no parameter is tunable")
	if code, body := c.exchange(post("/param", `{"values": {"mu_oil": 0.1}}`)); code != 409 || !strings.Contains(body, "no parameter is tunable") {
		t.Errorf("%d %s", code, body)
	}
}

// The description has the present value. A stream has the new value from the tick of the answer on.
func TestDescriptionAndStreamFollowAChangeOfParameters(t *testing.T) {
	c := newControlled(t)
	w := c.watch("signal=mu_oil&every=tick")
	tick := c.must("param", "mu_oil=0.15").Tick
	for want := 0.1; want == 0.1; {
		l := w.line(t)
		if l.Tick == 0 {
			continue // the first line
		}
		if l.Tick >= tick {
			want = 0.15
		}
		if got := l.Last[0]; !(math.Abs(got-want) < 1e-15) {
			t.Fatalf("tick %d: mu_oil %g, want %g from tick %d on", l.Tick, got, want, tick)
		}
	}
	for _, s := range c.s.streams.description.now(c.s.streams).Signals {
		if tunable := s.Name == "mu_oil"; s.Tunable != tunable || tunable && *s.Value != 0.15 || s.Kind == ParameterKind && s.Value == nil {
			t.Errorf("%+v", s)
		}
	}
}

// A change of several requests that is refused is tried by request: a client is refused for its own values only.
func TestARequestIsNotRefusedForAnotherOne(t *testing.T) {
	c := newControlled(t)
	request := func(value string) *paramRequest { // as when the preparation finds what the first look does not
		return &paramRequest{[]plantfile.Assignment{{Name: "mu_oil", Value: value}}, make(chan paramResult, 1)}
	}
	possible, impossible := request("0.15"), request("0.3")
	p := c.s.parameters
	p.waiting = []*paramRequest{possible, impossible}
	p.work()
	if r := <-possible.done; r.err != nil || r.answer.Parameters["mu_oil"] != "0.15" || r.answer.Superseded {
		t.Errorf("mu_oil=0.15: %+v, %v", r.answer, r.err)
	}
	if r := <-impossible.done; r.err == nil || !strings.Contains(r.err.Error(), "0.3 is outside 0.05 to 0.2") {
		t.Errorf("mu_oil=0.3: %+v, %v", r.answer, r.err)
	}
	if a := c.must("status"); a.Changes != 1 || c.present() != 0.15 {
		t.Errorf("%d changes, mu_oil %g; want 1 change, 0.15", a.Changes, c.present())
	}
}
