package badinput

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompletionScriptsAreValidInTheirShells(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("no %s here", shell)
			}
			c := exec.Command(shell, "-n")
			c.Stdin = strings.NewReader(run(t, ebpfprof, "completion", shell).stdout)
			if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestBashCompletesWhatTheProgramSays(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	script := `PATH=` + filepath.Dir(ebpfprof) + `:$PATH; eval "$(ebpfprof completion bash)"; complete -p ebpfprof >/dev/null || exit
t() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ebpfprof_complete; echo "${COMPREPLY[*]}"; }
t ebpfprof at; t ebpfprof attach --level w; t ebpfprof query d --format j; t ebpfprof query d`
	want := "attach\nwindow\njson\n\n"
	if r := run(t, "bash", "-c", script); r.stdout != want {
		t.Errorf("%q, want %q\n%s", r.stdout, want, r.stderr)
	}
}
