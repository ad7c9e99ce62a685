package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// daemonSet is what the test reads of a manifest.
type daemonSet struct {
	Kind string
	Data map[string]string
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				HostPID    bool  `yaml:"hostPID"`
				Token      *bool `yaml:"automountServiceAccountToken"`
				Containers []container
				Volumes    []struct{ Name string }
			}
		}
	}
}

type container struct {
	Args            []string
	Env             []struct{ Name string }
	SecurityContext struct {
		Privileged   bool
		Escalation   *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities struct{ Drop, Add []string }
	} `yaml:"securityContext"`
	Ports []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Mounts []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

// TestTheDaemonSetHasThreeCapabilitiesAndAConfigurationThatTheAgentTakes: no privilege, no service account, every directory
// that the agent writes in a volume, and metrics at the port that the PodMonitor names.
func TestTheDaemonSetHasThreeCapabilitiesAndAConfigurationThatTheAgentTakes(t *testing.T) {
	deploy := filepath.Join("..", "..", "..", "deploy")
	text, err := os.ReadFile(filepath.Join(deploy, "agent-daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configMap, set daemonSet
	documents := yaml.NewDecoder(strings.NewReader(string(text)))
	for _, into := range []*daemonSet{&configMap, &set} {
		if err := documents.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	pod := set.Spec.Template
	if configMap.Kind != "ConfigMap" || set.Kind != "DaemonSet" || len(pod.Spec.Containers) != 1 {
		t.Fatalf("%+v, %+v", configMap, set)
	}
	if !pod.Spec.HostPID || pod.Spec.Token == nil || *pod.Spec.Token {
		t.Errorf("hostPID %v, service account's token %v", pod.Spec.HostPID, pod.Spec.Token)
	}
	for key, value := range set.Spec.Selector.MatchLabels {
		if pod.Metadata.Labels[key] != value {
			t.Errorf("the pods' label %s is %q, the selector wants %q", key, pod.Metadata.Labels[key], value)
		}
	}
	c := pod.Spec.Containers[0]
	security := c.SecurityContext
	if security.Privileged || security.Escalation == nil || *security.Escalation || !security.ReadOnly ||
		!slices.Equal(security.Capabilities.Drop, []string{"ALL"}) ||
		!slices.Equal(security.Capabilities.Add, []string{"BPF", "PERFMON", "SYS_PTRACE"}) {
		t.Errorf("%+v", security)
	}
	var mounted []string
	for _, m := range c.Mounts {
		mounted = append(mounted, m.Path)
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v struct{ Name string }) bool { return v.Name == m.Name }) {
			t.Errorf("no volume %s", m.Name)
		}
	}

	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(configMap.Data[filepath.Base(path)]), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(c.Args) != 2 || c.Args[0] != "--config" || filepath.Base(c.Args[1]) != filepath.Base(path) ||
		!slices.Contains(mounted, filepath.Dir(c.Args[1])) {
		t.Errorf("%q with mounts at %q", c.Args, mounted)
	}
	config, err := Read(path, []string{"EBPFPROF_AGENT_HOST=node-1"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(mounted, func(m string) bool { return strings.HasPrefix(config.Spool, m+"/") }) {
		t.Errorf("the spool %s is in no volume of %q", config.Spool, mounted)
	}
	if !strings.HasPrefix(config.Store, "s3://") || !strings.HasSuffix(config.Listen, ":9757") || len(c.Ports) != 1 ||
		c.Ports[0].Port != 9757 {
		t.Errorf("store %s, metrics at %s, ports %v", config.Store, config.Listen, c.Ports)
	}

	text, err = os.ReadFile(filepath.Join(deploy, "agent-podmonitor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Spec struct {
			Endpoints []struct{ Port string } `yaml:"podMetricsEndpoints"`
		}
	}
	if err := yaml.Unmarshal(text, &monitor); err != nil || len(monitor.Spec.Endpoints) != 1 ||
		monitor.Spec.Endpoints[0].Port != c.Ports[0].Name {
		t.Errorf("%v: %+v", err, monitor)
	}
}
