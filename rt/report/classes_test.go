package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"lockstep/rt"
	"lockstep/rt/runtest"
)

func TestHistogramShowsRareValues(t *testing.T) {
	got := histogram([]Class{{1535, 10}, {1791, 999_990}, {4095, 500_000}, {1<<24 - 1, 1}})
	want := []string{
		"to       2.0 us   1000000 " + strings.Repeat("#", 32),
		"to       4.1 us    500000 " + strings.Repeat("#", 16),
		"to   16777.2 us         1 #",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if rows := histogram(nil); rows != nil {
		t.Errorf("%q of nothing", rows)
	}
}

func TestReportHasAHistogramOfResponses(t *testing.T) {
	r := runtest.Demo(t)
	for range 7 {
		r.Status.Response.Record(1500)
	}
	r.Status.Response.Record(3_000_000)
	v := View{Handover: r.Handover, Status: r.Status}.Report()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"response_histogram":[[1535,7],[3145727,1]]`; !strings.Contains(string(data), want) {
		t.Errorf("the report does not say %s:\n%s", want, data)
	}
	var text strings.Builder
	v.Bench = "demo"
	if v.Text(&text); !strings.Contains(text.String(), "\n                   to    4194.3 us         1 #####\n") {
		t.Errorf("the text report has no row for 4194.3 us:\n%s", &text)
	}
	if v := (View{Handover: r.Handover, Status: new(rt.StatusBlock)}).Report(); v.Responses != nil || v.Response != nil {
		t.Error("a run without responses reports some")
	}
}
