package sched

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestMergedHistogramHoldsAllDurations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var parts [3]Histogram
	var all, sum Histogram
	for i := range 3000 {
		ns := logUniform(random)
		parts[i%3].Record(ns)
		all.Record(ns)
	}
	all.Record(1 << 40) // beyond the last bin
	parts[1].Record(1 << 40)
	for i := range parts {
		data, err := json.Marshal(&parts[i])
		if err != nil {
			t.Fatal(err)
		}
		var back Histogram
		if err := json.Unmarshal(data, &back); err != nil || back != parts[i] {
			t.Fatalf("%v: read back it is another one:\n%s", err, data)
		}
		sum.Merge(&back)
	}
	if sum != all {
		t.Errorf("merged: %d, max %d ns; recorded at once: %d, max %d ns", sum.N(), sum.Max(), all.N(), all.Max())
	}
}

func TestHistogramWithAnInvalidBinIsRefused(t *testing.T) {
	for _, text := range []string{`{"bins":[[1000,1]]}`, `{"bins":[[18446744073709551615,1]]}`, `{"bins":3}`, `{"us":[[10000,1]]}`, `[]`} {
		var h Histogram
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			t.Errorf("%s: no error", text)
		} else if strings.Contains(text, "[[") && !strings.Contains(err.Error(), "histogram: no ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestHistogramIsWrittenWithoutItsEmptyBins(t *testing.T) {
	var h Histogram
	for ns, want := range map[int64]string{
		-1:    `{"max_ns":0,"bins":[],"us":[]}`,
		5:     `{"max_ns":5,"bins":[[5,1]],"us":[[0,1]]}`,
		3_000: `{"max_ns":3000,"bins":[[3007,1]],"us":[[3,1]]}`,
		3_010: `{"max_ns":3010,"bins":[[3039,1]],"us":[[3,1]]}`, // a bin of 32 ns between 2048 and 4096
	} {
		h = Histogram{}
		if ns > 0 {
			h.Record(ns)
		}
		if got, err := json.Marshal(&h); err != nil || string(got) != want {
			t.Errorf("%d ns: %s, %v; want %s", ns, got, err, want)
		}
	}
}
