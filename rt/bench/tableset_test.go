package bench_test

import (
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
	"lockstep/model/plants"
	"lockstep/rt/bench"
)

// tablesOf prepares an embedded plant with a text replaced by another.
func tablesOf(t *testing.T, name, from, to string) *kernel.Tables {
	t.Helper()
	text, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("plant %s has no %q", name, from)
	}
	tables, err := kernel.Prepare(modeltest.System(t, strings.Replace(string(text), from, to, 1)), kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// A set is coded as the difference to the one before it, so a friction coefficient costs a few bytes. It is
// decoded bit for bit, and only in its place.
func TestTableSetsAreCodedAsDifferences(t *testing.T) {
	const mu = "mu_oil: {value: 0.1"
	a := tablesOf(t, "powershift", mu, mu)
	first := tablesOf(t, "powershift", mu, "mu_oil: {value: 0.12")
	inertia := tablesOf(t, "powershift", "J: 1 kg.m2", "J: 1.1 kg.m2")
	sets := []*kernel.Tables{first, inertia, inertia, a, tablesOf(t, "oscillator", "plant:", "plant:")} // the last one differs in its sizes
	h := &bench.Handover{Tables: a}
	coder, decoder := bench.NewTableCoder(h), bench.NewTableCoder(h)
	for i, tables := range sets {
		set := &bench.TableSet{Tables: []*kernel.Tables{tables}}
		data, err := coder.Encode(set)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("set %d: %d bytes", i, len(data))
		digest := bench.DigestOfData(set)
		if i%2 == 0 && i < 4 && len(data) > 500 {
			t.Errorf("set %d has %d bytes", i, len(data))
		}
		if i == 1 {
			if _, err := bench.NewTableCoder(h).Decode(data, digest); err == nil {
				t.Error("a difference to other tables is decoded")
			}
		}
		got, err := decoder.Decode(data, digest)
		if err != nil || bench.DigestOfData(got) != digest {
			t.Fatalf("set %d: %v", i, err)
		}
	}
}
