package kernel

import (
	"bytes"
	"encoding/gob"
	"runtime"
	"sync/atomic"
	"testing"
)

func TestTablesAreEqualOnAnyNumberOfProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, form := range []Form{Projected, Held} {
		var first []byte
		for _, processors := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(processors)
			tables, err := Prepare(powershift(), Options{Period: ms(5), Form: form})
			if err != nil {
				t.Fatal(err)
			}
			var bits bytes.Buffer
			if err := gob.NewEncoder(&bits).Encode(tables); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = bits.Bytes()
			}
			if !bytes.Equal(bits.Bytes(), first) {
				t.Errorf("form %s: the tables prepared on %d processors differ from those on one", form, processors)
			}
		}
	}
}

func TestParallelCallsRunOnceEachAndTheFirstPanicCounts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for range 100 {
		var calls [50]atomic.Int32
		inParallel(len(calls), func(i int) { calls[i].Add(1) })
		for i := range calls {
			if n := calls[i].Load(); n != 1 {
				t.Fatalf("call %d ran %d times", i, n)
			}
		}
		func() {
			defer func() {
				if r := recover(); r != 17 {
					t.Fatalf("panic %v, want that of call 17", r)
				}
			}()
			inParallel(len(calls), func(i int) {
				if i == 17 || i > 30 {
					runtime.Gosched()
					panic(i)
				}
			})
		}()
	}
}
