// Command schemas writes JSON schemas of the Kubernetes objects in deploy/, for kubeconform: of Kubernetes's own kinds from
// its OpenAPI description, of those of Prometheus's operator from its definitions. Both come from the Go proxy. Objects may
// have no other fields than those that are described, and descriptions are left out.
//
//	go run ./internal/dev/schemas -o internal/agent/testdata/schemas
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	kubernetes = "k8s.io/kubernetes@v1.34.2"
	operator   = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
)

// kinds are those of deploy/, by what Kubernetes's description calls them.
var kinds = map[string]string{
	"configmap": "io.k8s.api.core.v1.ConfigMap",
	"daemonset": "io.k8s.api.apps.v1.DaemonSet",
	"cronjob":   "io.k8s.api.batch.v1.CronJob",
}

// definitions are those of Prometheus's operator, by the kind in their files' names.
var definitions = map[string]string{"podmonitor": "podmonitors", "prometheusrule": "prometheusrules"}

func main() {
	to := flag.String("o", "", "`DIR` to write to")
	flag.Parse()
	if *to == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "schemas: -o is needed")
		os.Exit(2)
	}
	if err := write(*to); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func write(to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	own, err := module(kubernetes)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(own, "api/openapi-spec/swagger.json"))
	if err != nil {
		return err
	}
	var description struct{ Definitions map[string]any }
	if err := json.Unmarshal(text, &description); err != nil {
		return err
	}
	for kind, name := range kinds {
		if err := save(filepath.Join(to, kind+".json"), standalone(description.Definitions, name)); err != nil {
			return err
		}
	}
	foreign, err := module(operator)
	if err != nil {
		return err
	}
	for kind, plural := range definitions {
		schema, err := custom(filepath.Join(foreign, "example/prometheus-operator-crd", "monitoring.coreos.com_"+plural+".yaml"))
		if err != nil {
			return fmt.Errorf("reading the definition of %s: %w", plural, err)
		}
		if err := save(filepath.Join(to, kind+".json"), schema); err != nil {
			return err
		}
	}
	return nil
}

// module is the directory of a module in Go's cache.
func module(version string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", version)
	command.Dir = "/" // no module's own
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", version, err)
	}
	var of struct{ Dir string }
	return of.Dir, json.Unmarshal(text, &of)
}

const reference = "#/definitions/"

// standalone is one of the definitions with those that it refers to.
func standalone(all map[string]any, name string) map[string]any {
	used := map[string]any{}
	var use func(node any)
	use = func(node any) {
		switch v := node.(type) {
		case map[string]any:
			if target, ok := v["$ref"].(string); ok {
				if target = strings.TrimPrefix(target, reference); used[target] == nil {
					used[target] = strict(all[target])
					use(used[target])
				}
			}
			for _, inner := range v {
				use(inner)
			}
		case []any:
			for _, inner := range v {
				use(inner)
			}
		}
	}
	root := map[string]any{"$ref": reference + name}
	use(root)
	root["definitions"] = used
	return root
}

// custom is the schema of the first version in a CustomResourceDefinition.
func custom(path string) (any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPI map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	if len(definition.Spec.Versions) == 0 {
		return nil, fmt.Errorf("%s has no version", path)
	}
	return strict(definition.Spec.Versions[0].Schema.OpenAPI), nil
}

// strict is a schema without descriptions in which objects have the properties that it names, and no others.
func strict(node any) any {
	switch v := node.(type) {
	case []any:
		var all []any
		for _, inner := range v {
			all = append(all, strict(inner))
		}
		return all
	case map[string]any:
		if v["format"] == "int-or-string" {
			return map[string]any{"type": []any{"string", "integer"}}
		}
		if text, _ := v["description"].(string); strings.HasPrefix(text, "Quantity is a fixed-point representation") {
			return map[string]any{"type": []any{"string", "number"}}
		}
		schema := map[string]any{}
		for key, inner := range v {
			// Below properties are names of fields, which may be those of keywords.
			if fields, ok := inner.(map[string]any); ok && key == "properties" {
				kept := map[string]any{}
				for field, of := range fields {
					kept[field] = strict(of)
				}
				schema[key], schema["additionalProperties"] = kept, false
			} else if key != "description" && key != "default" && !strings.HasPrefix(key, "x-") {
				schema[key] = strict(inner)
			}
		}
		return schema
	}
	return node
}

func save(path string, schema any) error {
	text, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
