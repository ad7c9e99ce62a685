package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"runtime/debug"
)

// A bom is a list of what is in a program, by CycloneDX 1.6. It has no time and no number of its own, so that equal programs
// have equal lists.
type bom struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref,omitempty"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// writeBOM lists the modules that the linker noted in a program, as go version -m prints them.
func writeBOM(to, name, version, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata.Component = component{Type: "application", Name: name, Version: version,
		Properties: []property{{"go:version", info.GoVersion}, {"go:package", info.Path}}}
	for _, setting := range info.Settings {
		b.Metadata.Component.Properties = append(b.Metadata.Component.Properties, property{"go:build:" + setting.Key, setting.Value})
	}
	b.Components = append(b.Components, component{Type: "library", Ref: "std", Name: "std", Version: info.GoVersion})
	for _, m := range info.Deps {
		b.Components = append(b.Components, module(m))
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}

func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
