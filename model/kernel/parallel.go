package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// inParallel calls work for 0 to count-1 on as many goroutines as the process may use processors. The
// calls share no results, so that the tables do not depend on the number of processors. If calls
// panic, inParallel panics as the first of them does: indices are taken in order, so a call that
// would have panicked before one that did has run.
func inParallel(count int, work func(i int)) {
	var next atomic.Int64
	var mu sync.Mutex
	var wait sync.WaitGroup
	first, reason := count, any(nil)
	worker := func() {
		at := count
		defer func() {
			r := recover()
			mu.Lock()
			defer mu.Unlock()
			if r != nil && at < first {
				first, reason = at, r
			}
		}()
		for at = int(next.Add(1)) - 1; at < count; at = int(next.Add(1)) - 1 {
			work(at)
		}
	}
	for range min(runtime.GOMAXPROCS(0), count) {
		wait.Go(worker)
	}
	wait.Wait()
	if reason != nil {
		panic(reason)
	}
}
