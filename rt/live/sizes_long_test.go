//go:build long

package live

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shootWhole writes a picture of the whole page, also of what is below the window.
func (p *tab) shootWhole(name string) {
	p.t.Helper()
	var size struct{ Width, Height float64 }
	_ = json.Unmarshal([]byte(p.eval("JSON.stringify({ width: innerWidth, height: document.documentElement.scrollHeight })")), &size)
	p.capture(name, map[string]any{"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": 0, "y": 0, "width": size.Width, "height": size.Height, "scale": 1}})
}

// The page shows each plant in each size. Nothing is wider than the screen.
func TestPageShowsEachPlantInEachSize(t *testing.T) {
	dir := t.TempDir()
	for name, text := range ownFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(t)
	for _, bench := range []string{"powershift-bench", "truck-bench", "automatic-bench", filepath.Join(dir, "train.yaml"), filepath.Join(dir, "own.yaml"), filepath.Join(dir, "transfer.yaml")} {
		name := strings.TrimSuffix(filepath.Base(bench), ".yaml")
		if only := os.Getenv("LOCKSTEP_ONLY"); only != "" && !strings.Contains(name, only) {
			continue
		}
		url, _, stop := run(t, bench)
		p := b.openPage(url, 1600, 1000, false)
		time.Sleep(3 * time.Second) // something to see
		for _, width := range []int{400, 1024, 2000} {
			for _, dark := range []bool{false, true} {
				p.size(width, 1000, dark)
				time.Sleep(500 * time.Millisecond)
				if over := p.eval("document.documentElement.scrollWidth > innerWidth"); over != "false" {
					t.Errorf("%s: the page is wider than the screen of %d px", name, width)
				}
				if n := p.eval("document.querySelectorAll('#plant svg text.value').length"); n == "0" {
					t.Errorf("%s: the picture has no values", name)
				}
				shot := fmt.Sprintf("%s-%d-%s", name, width, map[bool]string{true: "dark", false: "light"}[dark])
				if width > 400 {
					p.shootWhole(shot)
					continue
				}
				p.eval("document.querySelector('#tabs [data-panel=plant]').click(); 0")
				p.await("(() => { const c = document.querySelector('#plant .picture'); return c.scrollWidth <= c.clientWidth; })()")
				for _, panel := range []string{"plant", "scope", "inputs", "parameters", "faults", "bus", "scenario", "clock", "runs"} {
					p.eval("document.querySelector('#tabs [data-panel=" + panel + "]').click(); 0")
					time.Sleep(900 * time.Millisecond) // the panel asks the door
					p.shoot(shot + "-" + panel)
				}
			}
		}
		stop()
	}
}
