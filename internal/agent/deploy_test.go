package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

var (
	metricName = regexp.MustCompile(`\bebpfprof_[a-z_]+\b`)
	descName   = regexp.MustCompile(`fqName: "([a-z_]+)"`)
	labelUsed  = regexp.MustCompile(`\$labels\.([a-z]+)|\{\{([a-z]+)\}\}`)
)

// exposed are the metrics' names, and those that have no label of a job.
func exposed() (names, ofNode []string) {
	descs := make(chan *prometheus.Desc, 100)
	newSupervisor(defaults(), nil).Describe(descs)
	close(descs)
	for d := range descs {
		name := descName.FindStringSubmatch(d.String())[1]
		names = append(names, name)
		if !strings.Contains(d.String(), "job") || strings.Contains(d.String(), "variableLabels: {}") {
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
			if match[1]+match[2] == "job" && slices.ContainsFunc(found, func(n string) bool { return slices.Contains(ofNode, n) }) {
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
