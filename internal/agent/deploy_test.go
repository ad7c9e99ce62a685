package agent

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
)

var (
	metricName = regexp.MustCompile(`\bebpfprof_[a-z_]+\b`)
	descName   = regexp.MustCompile(`fqName: "([a-z_]+)"`)
	labelUsed  = regexp.MustCompile(`\$labels\.([a-z_]+)|\{\{([a-z_]+)\}\}`)
)

// exposed are the metrics' names, and those that have no label of a job.
func exposed() (names, ofNode []string) {
	descs := make(chan *prometheus.Desc, 100)
	newSupervisor(config.Defaults(), nil).Describe(descs)
	close(descs)
	for d := range descs {
		name := descName.FindStringSubmatch(d.String())[1]
		names = append(names, name)
		if !strings.Contains(d.String(), training) || strings.Contains(d.String(), "variableLabels: {}") {
			ofNode = append(ofNode, name)
		}
	}
	return names, ofNode
}

// What deploy/ asks Prometheus for, the agent exposes; a rule that says of which job
// asks for a metric that has one.
func TestRulesAndDashboardAskForMetricsThatThereAre(t *testing.T) {
	names, ofNode := exposed()
	used := map[string]bool{}
	check := func(where, expression, text string) {
		t.Helper()
		found := metricName.FindAllString(expression, -1)
		if len(found) == 0 {
			t.Errorf("%s asks for nothing of ours: %s", where, expression)
		}
		for _, name := range found {
			for _, part := range []string{"_bucket", "_count", "_sum"} { // of a histogram
				name = strings.TrimSuffix(name, part)
			}
			used[name] = true
			if !slices.Contains(names, name) {
				t.Errorf("%s: there is no %s", where, name)
			}
		}
		for _, match := range labelUsed.FindAllStringSubmatch(text, -1) {
			if match[1]+match[2] == "job" {
				t.Errorf("%s: job is what Prometheus scrapes, not what trains", where)
			}
			if match[1]+match[2] == training && slices.ContainsFunc(found, func(n string) bool { return slices.Contains(ofNode, n) }) {
				t.Errorf("%s names a job, and %q has none", where, expression)
			}
		}
	}
	deploy := filepath.Join("..", "..", "deploy")
	text, err := os.ReadFile(filepath.Join(deploy, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For string
				KeepFiringFor    string `yaml:"keep_firing_for"`
				Labels           map[string]string
				Annotations      map[string]string
			}
		}
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts++
			check(rule.Alert, rule.Expr, rule.Annotations["summary"]+rule.Annotations["action"])
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["action"] == "" {
				t.Errorf("%s does not say how bad it is, what has happened, and what to do", rule.Alert)
			}
			// What is counted is over in a moment: the alert would come and go.
			if strings.Contains(rule.Expr, "increase(") && rule.KeepFiringFor == "" && rule.For == "" {
				t.Errorf("%s would be told at each evaluation", rule.Alert)
			}
		}
	}
	text, err = os.ReadFile(filepath.Join(deploy, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			check(panel.Title, target.Expr, target.LegendFormat)
		}
	}
	if alerts < 5 || len(dashboard.Panels) < 5 {
		t.Errorf("%d alerts, %d panels", alerts, len(dashboard.Panels))
	}
	for _, name := range names {
		if !used[name] && name != "ebpfprof_pattern_bytes_total" && name != "ebpfprof_outbox_oldest_timestamp_seconds" {
			t.Errorf("nothing looks at %s", name)
		}
	}
}

// Prometheus's own engine evaluates the rules: of hours in which something lasts, or comes
// and goes, one alert is told.
func TestPrometheusTellsEachAlertOnce(t *testing.T) {
	const missing = "no promtool here: make promtool builds it"
	found, _ := filepath.Glob(filepath.Join(testcache.Path(t, "promtool", missing), "v*", "promtool"))
	if len(found) == 0 {
		t.Skip(missing)
	}
	for _, arguments := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", filepath.Join("..", "..", "deploy", "alerts.yaml")},
		{"test", "rules", filepath.Join("testdata", "alerts.yaml")},
	} {
		if out, err := exec.CommandContext(t.Context(), found[len(found)-1], arguments...).CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", arguments, err, out)
		}
	}
}
