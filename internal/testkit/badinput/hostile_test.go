package badinput

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/attacker"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const evilName = "py\x1b[31m\x1b]0;title\x07\u009b2J\x7f\nthon"

// evil is a job of a user without rights, all of whose names are escape sequences.
func evil(t *testing.T) *background {
	t.Helper()
	home := attacker.Directory(t)
	script, err := os.ReadFile("../../../testdata/jobs/hostile_names.py")
	if err != nil {
		t.Fatal(err)
	}
	python, err := os.ReadFile("/usr/bin/python3")
	if err != nil {
		t.Skip("no /usr/bin/python3 here")
	}
	write := func(name string, content []byte, mode os.FileMode) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	job := start(t, nil, asNobody(t, "", write(evilName, python, 0o755), write("job.py", script, 0o644), "\x1b[2J--password=hunter2")...)
	job.until(t, "ready")
	return job
}

// plain fails for text that a terminal would obey.
func (r result) plain(t *testing.T, what string) {
	t.Helper()
	for stream, text := range map[string]string{"stdout": r.stdout, "stderr": r.stderr} {
		if clean := printable.Lines(text); clean != text {
			t.Errorf("%s writes control characters to %s:\n%s", what, stream, clean)
		}
		if strings.Contains(text, "title") && !strings.Contains(text, `\x1b]0`) && !strings.Contains(text, `\u001b]0`) {
			t.Errorf("%s: the name is no longer to be seen on %s:\n%s", what, stream, text)
		}
	}
}

func TestNoTextObeysWhatAJobCallsItsThings(t *testing.T) {
	needKernel(t)
	job := evil(t)
	dataset := filepath.Join(t.TempDir(), "d")
	attach := run(t, ebpfprof, "attach", "--pid", pidOf(job), "--duration", "2s", "--output", dataset)
	attach.check(t, ok)
	attach.plain(t, "attach")
	for _, argv := range [][]string{
		{"doctor", "--pid", pidOf(job)},
		{"top", "--pid", pidOf(job), "--duration", "1500ms", "--native"},
		{"stacks", dataset, "--threads"},
		{"stacks", dataset, "--full"},
		{"stacks", dataset, "--folded", "--threads"},
		{"stacks", dataset, "--json"},
		{"query", dataset, "SELECT * FROM process"},
		{"query", dataset, "SELECT exe, command FROM process", "--format", "markdown"},
		{"query", dataset, "SELECT * FROM thread", "--format", "json"},
		{"query", dataset, "SELECT DISTINCT unnest(frames).function AS f FROM stack"},
	} {
		r := run(t, append([]string{ebpfprof}, argv...)...)
		if r.code != ok && argv[0] != "doctor" {
			t.Errorf("%q: exit code %d\n%s", argv, r.code, r.stderr)
		}
		r.plain(t, strings.Join(argv, " "))
	}
	all := run(t, ebpfprof, "stacks", dataset, "--folded", "--threads").stdout
	if !strings.Contains(all, `\x1b[31mRED`) {
		t.Errorf("the job's functions are not in its stacks:\n%s", all)
	}
	// The dataset has the bytes.
	if n := rows(t, dataset, `SELECT count(*) FROM process WHERE exe LIKE '%' || chr(27) || ']0;title' || chr(7) || '%'`); n != 1 {
		t.Errorf("%d processes have their name in the dataset", n)
	}
	if !job.alive() {
		t.Error("the job ended")
	}
}

func TestADatasetUnderSudoIsReadByWhoCalledIt(t *testing.T) {
	needKernel(t)
	job, home := openCL(t), attacker.Directory(t)
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	dataset := filepath.Join(home, "runs", "d")
	run(t, ebpfprof, "attach", "--pid", pidOf(job), "--duration", "2s", "--output", dataset).check(t, ok)
	for _, argv := range [][]string{{"query", dataset, "SELECT count(*) FROM span"}, {"stacks", dataset}} {
		c := exec.Command(ebpfprof, argv...)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: attacker.ID, Gid: attacker.ID}}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", argv, err, out)
		}
	}
	attacker.Do(t, home, "rm -r runs")
}

func TestADatasetIsNotReadByOtherUsersUnlessTheModeSaysSo(t *testing.T) {
	needKernel(t)
	job, base := openCL(t), openDirectory(t)
	for _, c := range []struct {
		mode string
		code int
	}{{"", failed}, {"0600", failed}, {"0644", ok}, {"0640:65534", ok}, {"0640:0", failed}} {
		dataset := filepath.Join(base, "d"+strings.ReplaceAll(c.mode, ":", "-"))
		arguments := []string{ebpfprof, "attach", "--pid", pidOf(job), "--duration", "1s", "--output", dataset}
		if c.mode != "" {
			arguments = append(arguments, "--mode", c.mode)
		}
		run(t, arguments...).check(t, ok)
		r := run(t, asNobody(t, "", ebpfprof, "query", dataset, "SELECT count(*) FROM process")...)
		if r.code != c.code {
			t.Errorf("mode %q: another user's query ends with %d, want %d\n%s", c.mode, r.code, c.code, r.stderr)
		}
	}
	r := run(t, ebpfprof, "attach", "--pid", pidOf(job), "--mode", "0666")
	r.check(t, usage, "--mode")
}

func TestAttachRefusesADirectoryThatAnotherUserCanChange(t *testing.T) {
	needKernel(t)
	job, home := openCL(t), attacker.Directory(t)
	treasure, untouched := attacker.Treasure(t)
	attacker.Do(t, home, `mkdir theirs && ln -s "$(dirname "$1")" link`, treasure)
	for _, name := range []string{"theirs", "link/d"} {
		dir := t.TempDir()
		runIn(t, dir, ebpfprof, "attach", "--pid", pidOf(job), "--output", filepath.Join(home, name)).checkAlone(t, dir, failed, "not ours alone",
			name[:4])
	}
	if entries, _ := os.ReadDir(filepath.Dir(treasure)); len(entries) != 1 {
		t.Errorf("beside root's file there is %v", entries)
	}
	untouched()
}

// secretJob is a job with a secret in its arguments, its directory, its environment and a scope's name.
func secretJob(t *testing.T) (argv []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "SECRET")
	script, err := os.ReadFile("../../../testdata/jobs/mlp.py")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "job.py"), script, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "joblib.py"), mustRead(t, "../../../testdata/jobs/joblib.py"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{"/usr/bin/python3", filepath.Join(dir, "job.py"), "--seconds", "4"}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestARedactedRecordingNamesNoDirectoryNoHostAndNoArgument(t *testing.T) {
	needKernel(t)
	argv := secretJob(t)
	if err := exec.Command(argv[0], "-c", "import torch").Run(); err != nil {
		t.Skip("kernel: Debian's python3-torch is not installed")
	}
	t.Setenv("SLURM_JOB_ID", "SECRET-job")
	for _, c := range []struct {
		flags    []string
		redacted bool
	}{{nil, false}, {[]string{"--redact"}, true}} {
		parent := t.TempDir()
		dataset := filepath.Join(parent, "SECRET-output")
		command := append(append([]string{ebpfprof, "run", "--duration", "20s", "--output", dataset}, c.flags...), "--")
		r := run(t, append(command, argv...)...)
		r.check(t, ok)
		moved := filepath.Join(parent, "moved")
		if err := os.Rename(dataset, moved); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, moved, "SELECT count(*) FROM stack"); n < 5 {
			t.Fatalf("%d stacks", n)
		}
		secrets := []string{"SECRET", "--seconds"}
		said := strings.ReplaceAll(r.stderr+r.stdout, dataset, "")
		found := leaks(t, moved, secrets)
		for _, secret := range secrets {
			if strings.Contains(said, secret) && c.redacted {
				t.Errorf("%s is in the summary:\n%s", secret, said)
			}
		}
		if c.redacted && len(found) > 0 {
			t.Errorf("redacted, and still there:\n%s", strings.Join(found, "\n"))
		}
		if !c.redacted && len(found) < 4 { // else the search finds nothing
			t.Errorf("not redacted, and only found in:\n%s", strings.Join(found, "\n"))
		}
		if got := rows(t, moved, "SELECT count(*) FROM session WHERE redacted AND host IS NULL"); got == 1 != c.redacted {
			t.Errorf("%d sessions say that they are redacted", got)
		}
	}
}

// leaks searches every table, and every text and export made of a dataset.
func leaks(t *testing.T, dataset string, secrets []string) (found []string) {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "p.pb")
	outputs := map[string]string{}
	for name, argv := range map[string][]string{
		"stacks": {"stacks", dataset, "--threads", "--full"}, "folded": {"stacks", dataset, "--folded", "--threads"},
		"stacks as JSON": {"stacks", dataset, "--json", "--top", "100000"}, "pprof": {"stacks", dataset, "--pprof", profile},
	} {
		outputs[name] = run(t, append([]string{ebpfprof}, argv...)...).stdout
	}
	raw, err := exec.Command("gzip", "-dc", profile).Output()
	if err != nil {
		t.Fatal(err)
	}
	outputs["pprof"] = string(raw)
	tables, err := os.ReadDir(dataset)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if table.IsDir() {
			outputs["table "+table.Name()] = run(t, ebpfprof, "query", dataset, "SELECT * FROM "+table.Name(), "--format", "csv").stdout
		}
	}
	for name, text := range outputs {
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				found = append(found, name+": …"+text[max(0, at-60):min(len(text), at+60)]+"…")
			}
		}
	}
	return found
}
