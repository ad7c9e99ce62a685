package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheChartIsOfTheRelease(t *testing.T) {
	pack := func() []byte {
		r := release{version: "v0.3.0-4-g1a78d23", to: t.TempDir()}
		path, err := r.writeChart(filepath.Join("..", "..", "..", "deploy", "helm", "ebpfprof-agent"))
		if err != nil || filepath.Base(path) != "ebpfprof-agent-0.3.0+4.g1a78d23.tgz" {
			t.Fatalf("%s: %v", path, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := pack()
	if !bytes.Equal(first, pack()) {
		t.Error("two archives of one chart differ")
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	files := entries(t, unpacked)
	description := string(files["ebpfprof-agent/Chart.yaml"])
	if !strings.Contains(description, "\nversion: 0.3.0+4.g1a78d23\n") || !strings.Contains(description, "\nappVersion: \"v0.3.0-4-g1a78d23\"\n") {
		t.Errorf("%s", description)
	}
	if len(files["ebpfprof-agent/templates/daemonset.yaml"]) == 0 || len(files["ebpfprof-agent/files/alerts.yaml"]) == 0 {
		t.Errorf("%d files lack some", len(files))
	}
	if _, err := (release{version: "v1"}).released("version: 1.0.0\n"); err == nil {
		t.Error("a chart without the lines for versions is packed")
	}
}
