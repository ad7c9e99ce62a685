package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// settings are the values of a key of a systemd unit.
func settings(unit, key string) (values []string) {
	for line := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(line, key+"="); ok {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

// keeps runs the command of deploy/ with a store of its own, as what starts it would.
func keeps(t *testing.T, where string, command []string, variable string) {
	t.Helper()
	if len(command) < 3 || filepath.Base(command[0]) != "ebpfprof" || command[1] != "fleet" || !slices.Contains(command, variable) {
		t.Fatalf("%s runs %q", where, command)
	}
	command = slices.Clone(command[2:])
	store := t.TempDir()
	if err := os.Mkdir(filepath.Join(store, "v1"), 0o755); err != nil {
		t.Fatal(err)
	}
	command[slices.Index(command, variable)] = store
	out, complaints, code, err := testcommand.Run(Command(), command...)
	if err != nil || code != 0 || !strings.HasPrefix(out, "{") {
		t.Errorf("%s: %q ends with %d, %v\n%s%s", where, command, code, err, out, complaints)
	}
}

// What deploy/ starts is a command line that there is, makes one pass, and is told the
// store by a variable that it sets.
func TestTheRegistrarIsDeployedAsItIsCalled(t *testing.T) {
	unit := deployed(t, "ebpfprof-registrar.service")
	start := settings(unit, "ExecStart")
	if len(start) != 1 || !slices.Equal(settings(unit, "Type"), []string{"oneshot"}) || !slices.Equal(settings(unit, "CapabilityBoundingSet"),
		[]string{""}) ||
		len(settings(unit, "Environment")) != 1 || !strings.HasPrefix(settings(unit, "Environment")[0], "EBPFPROF_STORE=") {
		t.Fatalf("the unit\n%s", unit)
	}
	keeps(t, "the unit", strings.Fields(start[0]), "${EBPFPROF_STORE}")
	// A timer starts the service of its own name.
	timer := deployed(t, "ebpfprof-registrar.timer")
	if len(settings(timer, "OnCalendar")) != 1 || !slices.Equal(settings(timer, "WantedBy"), []string{"timers.target"}) {
		t.Errorf("the timer\n%s", timer)
	}

	var job struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       struct {
			Schedule    string
			JobTemplate struct {
				Spec struct {
					Template struct {
						Spec struct {
							RestartPolicy string `yaml:"restartPolicy"`
							Containers    []struct {
								Command, Args []string
								Env           []struct{ Name, Value string }
							}
						}
					}
				}
			} `yaml:"jobTemplate"`
		}
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "registrar-cronjob.yaml")), &job); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "CronJob" || len(strings.Fields(job.Spec.Schedule)) != 5 || pod.RestartPolicy != "Never" ||
		len(pod.Containers) != 1 ||
		len(pod.Containers[0].Env) != 1 || pod.Containers[0].Env[0].Name != "EBPFPROF_STORE" {
		t.Fatalf("%+v", job)
	}
	keeps(t, "the CronJob", slices.Concat(pod.Containers[0].Command, pod.Containers[0].Args), "$(EBPFPROF_STORE)")
}
