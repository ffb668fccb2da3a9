package report

import (
	"testing"

	"lockstep/io/sigmap"
	"lockstep/rt"
)

// A message that is late takes the values of its timeout, if any; otherwise an INVALID window takes those
// of on_error.
func TestSilenceNamesTheSubstitutesOfTimeoutsAndErrors(t *testing.T) {
	values := sigmap.Reaction{Action: sigmap.Substitute, Values: []sigmap.SubstituteValue{{}}}
	onTimeout, onError := sigmap.Rx{OnTimeout: values}, sigmap.Rx{OnError: values}
	for _, c := range []struct {
		rx   *sigmap.Rx
		s    rt.RxStatus
		want bool
	}{
		{&onTimeout, rt.RxStatus{Late: true}, true},
		{&onTimeout, rt.RxStatus{}, false},
		{&onTimeout, rt.RxStatus{Window: sigmap.WindowInvalid}, false},
		{&onError, rt.RxStatus{Window: sigmap.WindowInvalid}, true},
		{&onError, rt.RxStatus{Window: sigmap.WindowInvalid, Late: true}, false},
		{&onError, rt.RxStatus{Window: sigmap.WindowValid}, false},
	} {
		if got := isSubstituted(c.rx, c.s); got != c.want {
			t.Errorf("timeout %+v, error %+v, %+v: %t", c.rx.OnTimeout, c.rx.OnError, c.s, got)
		}
	}
}
