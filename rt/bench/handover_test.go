package bench

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

func TestHandoverArrivesUnchangedAndIsSealed(t *testing.T) {
	b, err := Load("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	h.Loop.Ticks = 7
	f, err := h.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.WriteAt([]byte{0}, 0); err == nil {
		t.Errorf("%d byte of the sealed hand-over could be written", n)
	}
	got, err := LoadHandover(f)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Tables.Modes, h.Tables.Modes) || !reflect.DeepEqual(got.Maps, h.Maps) {
		t.Error("the modes or the signal map changed on the way")
	}
	if !reflect.DeepEqual(got.Loop, h.Loop) || got.Thread != h.Thread || got.Timer != h.Timer || got.Bench.Name != b.Name {
		t.Errorf("got loop %+v, thread %+v, timer %+v; want %+v, %+v, %+v", got.Loop, got.Thread, got.Timer, h.Loop, h.Thread, h.Timer)
	}
	again, err := got.Save()
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// Another process replays a record, so the digest depends neither on the process nor on the way there.
func TestEqualTablesHaveOneDigest(t *testing.T) {
	seen := map[string]string{}
	for _, e := range plants.List() {
		if e.Kind != "plant" {
			continue
		}
		for range 2 {
			file, data, err := ReadAny(e.Name)
			if err != nil {
				t.Fatal(err)
			}
			plant, err := plantfile.Load(file, data, library.Elements())
			if err != nil {
				t.Fatal(err)
			}
			sys, err := assemble.System(plant)
			if err != nil {
				t.Fatal(err)
			}
			tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			d := DigestOfData(tables)
			if other, ok := seen[d]; len(d) != 64 || ok && other != e.Name {
				t.Errorf("%s: digest %s, as of %q", e.Name, d, other)
			}
			seen[d] = e.Name
			tables.X0[0] += 1e-12
			if DigestOfData(tables) == d {
				t.Errorf("%s: another start has the same digest", e.Name)
			}
			h := Handover{Tables: tables, ForSupervisors: ForSupervisors{Bench: &Bench{}}}
			data, err = h.ForRecord()
			if err != nil {
				t.Fatal(err)
			}
			got, err := LoadHandover(bytes.NewReader(data))
			if err != nil || DigestOfData(got.Tables) != DigestOfData(tables) {
				t.Errorf("%s: the tables changed on the way: %v", e.Name, err)
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("only %d digests", len(seen))
	}
}
