//go:build long

package live

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memory are the sizes of a page and of the processes of its run, bytes, and the nodes of the page's document.
type memory struct {
	page, nodes        float64 // after a garbage collection
	supervisor, target float64 // anonymous resident memory
}

// pageMemory returns the memory of a page after a garbage collection, and the nodes of its document.
func (p *tab) pageMemory() (bytes, nodes float64) {
	p.t.Helper()
	for range 2 { // the first one may leave what finalisers hold
		p.must(p.session, "HeapProfiler.collectGarbage", nil)
	}
	var heap struct{ UsedSize, EmbedderHeapUsedSize, BackingStorageSize float64 }
	_ = json.Unmarshal(p.must(p.session, "Runtime.getHeapUsage", nil), &heap)
	var counts struct{ Nodes float64 }
	_ = json.Unmarshal(p.must(p.session, "Memory.getDOMCounters", nil), &counts)
	if heap.UsedSize == 0 || counts.Nodes == 0 {
		p.t.Fatalf("the browser gives no figures: %+v, %+v", heap, counts)
	}
	return heap.UsedSize + heap.EmbedderHeapUsedSize + heap.BackingStorageSize, counts.Nodes
}

// processMemory returns the anonymous resident memory of a process, bytes.
func processMemory(t *testing.T, pid string) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			kilobytes, _ := strconv.ParseFloat(f[1], 64)
			return kilobytes * 1024
		}
	}
	t.Fatalf("process %s has no RssAnon", pid)
	return 0
}

// growth returns by how much a list of values of equal distance has grown from its start to its end: the median of
// the slopes between all pairs (Theil, Sen), which single values do not move, times its length.
func growth(list []float64) float64 {
	var slopes []float64
	for i := range list {
		for j := range i {
			slopes = append(slopes, (list[i]-list[j])/float64(i-j))
		}
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2] * float64(len(list)-1)
}

// An open page with all panels, and the processes of its run, do not grow. LOCKSTEP_PAGE is the time, by default 5 minutes.
func TestMemoryOfPageAndProcessesDoesNotGrow(t *testing.T) {
	length := 5 * time.Minute
	if text := os.Getenv("LOCKSTEP_PAGE"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, t.TempDir(), "run", patient(t, "powershift-bench"), "-besteffort", "-page", "0")
	p := newBrowser(t).openPage(r.url, 1600, 1000, false)
	target := p.door("status", "a.run.target")

	const samples = 60
	var list []memory
	for i := range samples {
		next := time.Now().Add(length / samples)
		// what a user does: a slider, a fault, another choice of signals, a cursor, a chosen message
		p.eval(fmt.Sprintf(`(() => { const set = (e, v, k) => { e.value = v; e.dispatchEvent(new Event(k)); };
			const f = document.querySelector("#faults form").elements; f.name.value = "ice"; f.where.value = "input=clutch1.pressure"; f.what.value = "offset=0.1";
			document.querySelector("#faults form button").click();
			set(document.querySelector("#scope input"), "w%d", "change");
			document.querySelector("#scope .legend button").click();
			document.querySelectorAll("#bus .message")[%d].click(); })()`, 1+i%4, i%4))
		time.Sleep(time.Until(next) / 2)
		p.eval(`document.querySelector("#faults .head button").click(); 0`)
		time.Sleep(time.Until(next))
		m := memory{supervisor: processMemory(t, strconv.Itoa(r.cmd.Process.Pid)), target: processMemory(t, target)}
		m.page, m.nodes = p.pageMemory()
		list = append(list, m)
	}
	p.await(`lockstep.signals.tick > 0 && document.getElementById("state").textContent !== "ended"`)

	steady := list[samples/3:] // the histories of the signals and the heaps have their size by then
	for _, c := range []struct {
		name  string
		of    func(memory) float64
		least float64 // growth that the noise of the measurement may give
	}{
		{"page, bytes", func(m memory) float64 { return m.page }, 512 << 10},
		{"nodes of the page", func(m memory) float64 { return m.nodes }, 200},
		{"supervisor, bytes", func(m memory) float64 { return m.supervisor }, 4 << 20},
		{"target, bytes", func(m memory) float64 { return m.target }, 256 << 10},
	} {
		var values []float64
		for _, m := range steady {
			values = append(values, c.of(m))
		}
		grown, first, last := growth(values), values[0], values[len(values)-1]
		t.Logf("%s: %.0f to %.0f, growth %.0f in %v", c.name, first, last, grown, length*2/3)
		if !(grown <= max(c.least, 0.05*first)) {
			t.Errorf("%s: growth of %.0f in %v, from %.0f", c.name, grown, length*2/3, first)
		}
	}
}
