//go:build long

package interop

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lockstep/hil_test/lab"
)

// newSweep returns a folder, the file of a sweep of 62 cases in it, and the path of the command.
func newSweep(t *testing.T) (dir, file, command string) {
	t.Helper()
	dir = t.TempDir()
	file, command = filepath.Join(dir, "masses.yaml"), filepath.Join(dir, "lockstep")
	text := `sweep: masses
plant: automatic4
for: 25 s
parameters:
  m: {of: car.m, from: 1300 kg, to: 1600 kg, steps: 31}
  J: {of: crank.J, values: [0.25 kg.m2, -1 kg.m2]}
results:
  v: {final: v, unit: km/h}
  stands: {first: v > 5 m/s and v < 4 m/s}
`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	lab.MustOutput(t, "go", "build", "-o", command, "../../rt/cmd/lockstep")
	return dir, file, command
}

// slurm starts Slurm on this host as a cluster of one node, with its files in a folder.
func slurm(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"munged", "slurmctld", "slurmd", "sbatch"} {
		lab.RequireProgram(t, name, "slurm-wlm munge")
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	for _, name := range []string{"state", "spool"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(dir, "slurm.conf")
	for name, text := range map[string]string{conf: fmt.Sprintf(slurmConf, host, dir, ports[0], ports[1]), filepath.Join(dir, "key"): strings.Repeat("lockstep", 128)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SLURM_CONF", conf)
	lab.Start(t, "munged", "--foreground", "--force", "--socket="+dir+"/munge", "--key-file="+dir+"/key", "--log-file="+dir+"/munge.log",
		"--pid-file="+dir+"/munge.pid", "--seed-file="+dir+"/munge.seed")
	control := lab.Start(t, "slurmctld", "-D", "-f", conf)
	node := lab.Start(t, "slurmd", "-D", "-f", conf, "-N", host)
	t.Cleanup(func() {
		exec.Command("scancel", "--user=root", "--full").Run()
		if t.Failed() {
			t.Logf("%s%s", &control.Err, &node.Err)
		}
	})
	lab.AwaitFor(t, "the node to be idle", 5*lab.Timeout, func() bool {
		out, err := exec.Command("sinfo", "--noheader", "--format=%T").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle"
	})
}

const slurmConf = `ClusterName=lockstep
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=%[2]s/munge,cred_expire=5
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.pid
SlurmctldPort=%[3]d
SlurmdPort=%[4]d
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
ReturnToService=2
MailProg=/bin/true
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=%[1]s Default=YES MaxTime=INFINITE State=UP
`

// hasRows reports whether the journal of a shard, of 4, has rows.
func hasRows(out string, shard int) bool {
	list, _ := filepath.Glob(fmt.Sprintf("%s/*-shard-%d-of-4.partial", out, shard))
	if len(list) != 1 {
		return false
	}
	info, err := os.Stat(list[0])
	return err == nil && info.Size() > 50
}

// idle reports whether Slurm has no jobs.
func idle() bool {
	text, err := exec.Command("squeue", "--noheader").Output()
	return err == nil && len(strings.TrimSpace(string(text))) == 0
}

// Slurm requeues one running task, the test kills another one and submits the same sweep again.
func TestSweepOnSlurmRunsEachShardOnceThroughRequeueAndKill(t *testing.T) {
	if os.Geteuid() != 0 {
		lab.Skip(t, "starting the daemons of Slurm needs root")
	}
	dir, file, command := newSweep(t)
	slurm(t, dir)
	t.Setenv("LOCKSTEP", command)
	script, err := filepath.Abs("../../deploy/slurm/sweep.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	submit := func() string {
		t.Helper()
		cmd := exec.Command("bash", script, file, out, "4")
		cmd.Dir = dir
		text, err := cmd.CombinedOutput()
		m := regexp.MustCompile(`^job array (\d+), 0 to 3; job \d+ writes .*/table.parquet\n$`).FindSubmatch(text)
		if err != nil || m == nil {
			t.Fatalf("%v, %s", err, text)
		}
		return string(m[1])
	}
	first := submit()
	lab.AwaitFor(t, "rows of the shards 0 and 1", 5*lab.Timeout, func() bool { return hasRows(out, 0) && hasRows(out, 1) })
	killTask(t, command, 1)
	lab.MustOutput(t, "scontrol", "requeue", first+"_0")
	lab.AwaitFor(t, "the end of the first jobs", 5*lab.Timeout, idle)
	if _, err := os.Stat(filepath.Join(out, "table.parquet")); err == nil {
		t.Error("a table was written although a task was killed")
	}
	second := submit()
	lab.AwaitFor(t, "the end of the second jobs", 5*lab.Timeout, idle)
	log := func(job string, shard int) string {
		text, err := os.ReadFile(fmt.Sprintf("%s/sweep-%s-%d.log", dir, job, shard))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if text := log(first, 0); !strings.Contains(text, "DUE TO JOB REQUEUE") || !strings.Contains(text, "masses: continues after ") {
		t.Errorf("the requeued task: %s", text)
	}
	if text := log(second, 1); !strings.Contains(text, "masses: continues after ") {
		t.Errorf("the killed task: %s", text)
	}
	for i := range 4 {
		both := log(first, i) + log(second, i)
		if n := strings.Count(both, " cases in "); n != 1 {
			t.Errorf("shard %d was computed %d times, want once: %s", i, n, both)
		}
		if whole := strings.Contains(log(second, i), "is complete"); whole != (i != 1) {
			t.Errorf("shard %d at the second submission: %s", i, log(second, i))
		}
	}
	compareWithOneProcess(t, dir, file, command, out)
}

// killTask kills the process of a task with SIGKILL.
func killTask(t *testing.T, command string, task int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range list {
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "environ"))
		if exe, _ := os.Readlink(link); exe != command || !strings.Contains(string(env), fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d\x00", task)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("task %d has no process", task)
}

// compareWithOneProcess compares the table of the shards in a folder with that of one process.
func compareWithOneProcess(t *testing.T, dir, file, command, out string) {
	t.Helper()
	one := filepath.Join(dir, "one")
	lab.MustOutput(t, command, "sweep", file, "-o", one)
	lab.MustOutput(t, command, "sweep", file, "-merge", one, "-o", filepath.Join(dir, "one.parquet"))
	a, errA := os.ReadFile(filepath.Join(out, "table.parquet"))
	b, errB := os.ReadFile(filepath.Join(dir, "one.parquet"))
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("the table of the shards, %d bytes, differs from that of one process, %d bytes (%v, %v)", len(a), len(b), errA, errB)
	}
}

// Apache Arrow reads the Parquet file of a sweep.
func TestArrowReadsTheTableOfASweep(t *testing.T) {
	dir, file, command := newSweep(t)
	lab.MustOutput(t, command, "sweep", file, "-o", dir)
	table, csv := filepath.Join(dir, "table.parquet"), filepath.Join(dir, "table.csv")
	lab.MustOutput(t, command, "sweep", "-merge", dir, "-o", csv)
	lab.MustOutput(t, command, "sweep", "-merge", dir, "-o", table)
	reader := "github.com/apache/arrow-go/v18/parquet/cmd/parquet_reader@v18.8.0"
	head := lab.MustOutput(t, "go", "run", reader, "--only-metadata", "--print-key-value-metadata", table)
	for _, want := range []string{"Num Rows: 62", "unit.v", "km/h", "Column 0: case (INT64/INT_64)", "Column 1: m (DOUBLE)", "Column 3: v (DOUBLE)", "Column 5: failed (BYTE_ARRAY/UTF8)"} {
		if !strings.Contains(head, want) {
			t.Errorf("no %q in the output of Arrow:\n%s", want, head)
		}
	}
	text := lab.MustOutput(t, "go", "run", reader, "--json", "--no-metadata", table)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(text[strings.Index(text, "["):]), &rows); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	data, err := os.ReadFile(csv)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")[1:]
	if len(rows) != 62 || len(lines) != 62 {
		t.Fatalf("%d rows, %d lines", len(rows), len(lines))
	}
	for i, line := range lines {
		fields := strings.SplitN(line, ",", 6)
		for j, name := range []string{"case", "m", "J", "v"} {
			want, err := strconv.ParseFloat(fields[j], 64)
			got, ok := rows[i][name].(float64)
			if fields[j] == "" && rows[i][name] != nil || fields[j] != "" && (err != nil || !ok || got != want) {
				t.Errorf("row %d: %s is %v for Arrow, %q in CSV", i, name, rows[i][name], fields[j])
			}
		}
		if rows[i]["stands"] != nil || (rows[i]["failed"] == nil) != (fields[5] == "") {
			t.Errorf("row %d: %v", i, rows[i])
		}
	}
}

// kubeconform checks the job against the schema in the sources of Kubernetes.
func TestKubernetesAcceptsTheJobOfASweep(t *testing.T) {
	const kubernetes = "k8s.io/kubernetes@v1.34.1"
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(lab.MustOutput(t, "go", "mod", "download", "-json", kubernetes)), &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "api/openapi-spec/v3/apis__batch__v1_openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	spec["$ref"] = "#/components/schemas/io.k8s.api.batch.v1.Job"
	for _, s := range spec["components"].(map[string]any)["schemas"].(map[string]any) {
		if s := s.(map[string]any); s["properties"] != nil && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
	}
	text, err = json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job-batch-v1.json"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile("../../deploy/kubernetes/sweep-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"", ""}, {"completions: 16", "completion: 16"}, {"completions: 16", "completions: many"}, {"action: FailIndex", "acton: FailIndex"},
		{"restartPolicy: Never", "restartPolicy: []"}, {"containers:", "container:"}} {
		file := filepath.Join(dir, "job.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(good), c[0], c[1], 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "run", "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0", "-strict", "-summary",
			"-schema-location", dir+"/{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json", file).CombinedOutput()
		if valid := err == nil && strings.Contains(string(out), "Valid: 1"); valid != (c[0] == "") {
			t.Errorf("%q for %q: %v, %s", c[1], c[0], err, out)
		}
	}
}
