package agent

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
)

var (
	deployed = filepath.Join("..", "..", "deploy")
	chart    = filepath.Join(deployed, "helm", "ebpfprof-agent")
)

// everyOption has all that the chart can render.
var everyOption = []string{"--set", "podMonitor.enabled=true", "--set", "alerts.enabled=true", "--set", "dashboard.enabled=true",
	"--set", "fleetKeySecret=key", "--set", "otherUsers=true", "--set", "runtimeClassName=nvidia", "--set", "priorityClassName=high",
	"--set", "nodeSelector.gpu=yes", "--set", "imagePullSecrets[0].name=registry", "--set", "podLabels.a=b", "--set", "podAnnotations.a=b", "--set", "env[0].name=A",
	"--set", "volumes[0].name=shared,volumes[0].hostPath.path=/shared", "--set", "volumeMounts[0].name=shared,volumeMounts[0].mountPath=/shared",
	"--set", "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=gpu," +
		"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator=Exists"}

// fetched is a program that scripts/helm.sh has built.
func fetched(t *testing.T, name string) string {
	t.Helper()
	const missing = "no helm here: make helm builds it"
	found, _ := filepath.Glob(filepath.Join(testcache.Path(t, "helm", missing), "v*", name))
	if len(found) == 0 {
		t.Skip(missing)
	}
	return found[len(found)-1]
}

func printed(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, arguments, err, out)
	}
	return string(out)
}

// The chart is the source: what is applied without helm is what it renders.
func TestThePlainManifestsAreTheChart(t *testing.T) {
	to := t.TempDir()
	printed(t, filepath.Join("..", "..", "scripts", "manifests.sh"), fetched(t, "helm"), to)
	for _, name := range []string{"agent-daemonset.yaml", "agent-podmonitor.yaml"} {
		rendered, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := os.ReadFile(filepath.Join(deployed, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(plain) != string(rendered) {
			t.Errorf("deploy/%s is not what the chart renders: run make manifests", name)
		}
	}
}

// helm and kubeconform accept the chart, with the values that it has and with every option.
func TestTheChartIsSound(t *testing.T) {
	helm, kubeconform := fetched(t, "helm"), fetched(t, "kubeconform")
	schemas := filepath.Join("testdata", "schemas", "{{.ResourceKind}}.json")
	for _, options := range [][]string{nil, everyOption} {
		printed(t, helm, append([]string{"lint", "--strict", "--quiet", chart}, options...)...)
		rendered := printed(t, helm, append([]string{"template", "fleet", chart}, options...)...)
		file := testfile.Write(t, filepath.Join(t.TempDir(), "rendered.yaml"), rendered)
		printed(t, kubeconform, "-strict", "-schema-location", schemas, file)
		if len(options) > 0 {
			if rules := strings.Count(rendered, "- alert: "); rules < 5 {
				t.Errorf("the chart has %d alerts", rules)
			}
		}
	}
	for _, name := range []string{"agent-daemonset.yaml", "agent-podmonitor.yaml", "registrar-cronjob.yaml"} {
		printed(t, kubeconform, "-strict", "-schema-location", schemas, filepath.Join(deployed, name))
	}
	// What is wrong is refused before a node sees it.
	for _, wrong := range []string{"config.stor=x", "config.spool=/elsewhere", "imagetag=x", "config.listen=off,podMonitor.enabled=true"} {
		if out, err := exec.CommandContext(t.Context(), helm, "template", "fleet", chart, "--set", wrong).CombinedOutput(); err == nil {
			t.Errorf("--set %s is rendered:\n%s", wrong, out)
		}
	}
	manifest := filepath.Join(t.TempDir(), "wrong.yaml")
	text, err := os.ReadFile(filepath.Join(deployed, "agent-daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, manifest, strings.Replace(string(text), "hostPID:", "hostPIDs:", 1))
	if out, err := exec.CommandContext(t.Context(), kubeconform, "-strict", "-schema-location", schemas, manifest).CombinedOutput(); err == nil {
		t.Errorf("kubeconform accepts a field that there is not:\n%s", out)
	}
}

// The agent reads the configuration that the manifests give it, and the chart's schema knows the agent's keys.
func TestTheChartsConfigurationIsTheAgents(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployed, "agent-daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var settings struct{ Data map[string]string }
	if err := yaml.NewDecoder(strings.NewReader(string(text))).Decode(&settings); err != nil {
		t.Fatal(err)
	}
	read, err := config.Read(testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), settings.Data["agent.yaml"]), nil)
	if err != nil || !strings.HasPrefix(read.Store, "s3://") || !strings.HasPrefix(read.Spool, "/var/lib/ebpfprof/") {
		t.Errorf("%+v, %v", read, err)
	}
	text, err = os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Config struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var known, keys []string
	for key := range schema.Properties.Config.Properties {
		known = append(known, key)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Config]()) {
		keys = append(keys, field.Tag.Get("yaml"))
	}
	slices.Sort(known)
	slices.Sort(keys)
	if !slices.Equal(known, keys) {
		t.Errorf("the chart's schema has the keys %q of the configuration, not %q", known, keys)
	}
}
