//go:build long

package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// Debian's Prometheus reads the figures of a run by its own rules, and its alert for a missed tick fires after
// the target was stopped for some periods.
func TestPrometheusFiresTheAlertForAMissedTick(t *testing.T) {
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatal("the package prometheus is missing: apt-get install --no-install-recommends prometheus")
		}
	}
	dir, rules := t.TempDir(), absolute(t, "../../deploy/root/usr/share/lockstep/prometheus/lockstep.rules.yml")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	check := func(stdin string, args ...string) {
		c := exec.Command("promtool", args...)
		c.Stdin = strings.NewReader(stdin)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("promtool %s: %v: %s", args, err, out)
		}
	}
	check("", "check", "rules", rules)

	binary := lab.Command(t)
	text, err := exec.Command(binary, "plants", "powershift-bench").Output()
	if err != nil {
		t.Fatal(err)
	}
	bench := write("fleet.yaml", strings.Replace(string(text), "\nplant:", "\nmetrics: 0\nplant:", 1))
	run := exec.Command(binary, "run", bench, "-besteffort", "-page", "off", "-record", filepath.Join(dir, "fleet.rec"))
	run.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out := write("out", "")
	to, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	run.Stdout, run.Stderr = to, to
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Signal(os.Interrupt); _ = run.Wait() })
	address := ""
	await(t, "the address of the figures", func() bool {
		text, _ := os.ReadFile(out)
		_, rest, ok := strings.Cut(string(text), "metrics: http://")
		address, _, _ = strings.Cut(rest, "/metrics")
		return ok
	})
	figures := func() string { return get(t, "http://"+address+"/metrics") }
	await(t, "a tick", func() bool { return strings.Contains(figures(), "\nlockstep_running 1\n") })
	check(figures(), "check", "metrics")

	config := write("prometheus.yml", fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs:\n  - job_name: lockstep\n    static_configs: [{targets: [%q]}]\n", rules, address))
	check("", "check", "config", config)
	const server = "127.0.0.1:19090"
	prometheus := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+server)
	prometheus.Stderr = os.Stderr
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = prometheus.Process.Signal(syscall.SIGTERM); _ = prometheus.Wait() })
	query := func(expression string) (values []string) {
		var a struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		r, err := http.Get("http://" + server + "/api/v1/query?query=" + url.QueryEscape(expression))
		if err != nil {
			return nil
		}
		defer r.Body.Close()
		_ = json.NewDecoder(r.Body).Decode(&a)
		for _, v := range a.Data.Result {
			values = append(values, fmt.Sprint(v.Value[1]))
		}
		return values
	}
	await(t, "two samples of Prometheus", func() bool {
		n := query(`count_over_time(lockstep_ticks_missed_total[1m])`)
		return len(n) == 1 && n[0] != "1"
	})
	firing := `ALERTS{alertname="LockstepTickMissed",alertstate="firing"}`
	missed := func() int {
		_, rest, _ := strings.Cut(figures(), "\nlockstep_ticks_missed_total ")
		n, err := strconv.Atoi(strings.Split(rest, "\n")[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := missed()
	if before == 0 && len(query(firing)) != 0 {
		t.Error("the alert fires before a tick was missed")
	}
	target := targetOf(t, binary, run)
	if err := syscall.Kill(target, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // 20 periods
	if err := syscall.Kill(target, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "the alert", func() bool { return len(query(firing)) == 1 })
	now := missed()
	if now < before+15 {
		t.Errorf("the run has missed %d ticks of about 20", now-before)
	}
	await(t, "the count of Prometheus", func() bool {
		n := query(`lockstep_ticks_missed_total`)
		return len(n) == 1 && n[0] == strconv.Itoa(missed())
	})
	t.Logf("missed %d before the stop, %d after it; firing: %v", before, now, query(firing))
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within a minute", what)
		}
	}
}

// targetOf returns the target process of a run.
func targetOf(t *testing.T, binary string, run *exec.Cmd) int {
	t.Helper()
	c := exec.Command(binary, "ctl", strconv.Itoa(run.Process.Pid), "status", "-json")
	c.Env = run.Env
	out, err := c.Output()
	var a struct {
		Run struct {
			Target int `json:"target"`
		} `json:"run"`
	}
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil || a.Run.Target == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return a.Run.Target
}
