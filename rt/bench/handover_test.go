package bench

import (
	"reflect"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

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
	got, err := loadHandover(f)
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
