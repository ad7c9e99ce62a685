package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// writeChart packs the Helm chart as helm package does, of this release: its image is the default one. Equal charts are
// equal archives. It returns the archive's path.
func (r release) writeChart(chart string) (string, error) {
	to := filepath.Join(r.to, fmt.Sprintf("%s-%s.tgz", filepath.Base(chart), packageVersion(r.version)))
	file, err := os.Create(to)
	if err != nil {
		return "", err
	}
	defer file.Close()
	compressor := gzip.NewWriter(file)
	archive := tar.NewWriter(compressor)
	add := func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			return err
		}
		if name == "Chart.yaml" {
			if text, err = r.released(string(text)); err != nil {
				return err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(filepath.Base(chart), name), Mode: 0o644, Size: int64(len(text))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(text)
		return err
	}
	if err := fs.WalkDir(os.DirFS(chart), ".", add); err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	if err := compressor.Close(); err != nil {
		return "", err
	}
	return to, file.Close()
}

// released is a chart's description with the versions of the release: its own, and that of the image.
func (r release) released(description string) ([]byte, error) {
	for before, after := range map[string]string{"\nversion: 0.0.0\n": "\nversion: " + packageVersion(r.version) + "\n",
		"\nappVersion: latest\n": fmt.Sprintf("\nappVersion: %q\n", r.version)} {
		if strings.Count(description, before) != 1 {
			return nil, fmt.Errorf("the chart has no line %q, which takes the release's version", strings.TrimSpace(before))
		}
		description = strings.Replace(description, before, after, 1)
	}
	return []byte(description), nil
}
