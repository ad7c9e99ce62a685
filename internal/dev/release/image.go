package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// libraries are the files of the C library that the agent and NVIDIA's library need, by architecture: the image has no
// other program. NVIDIA's container runtime brings libnvidia-ml.so.1.
var libraries = map[string][]string{
	"amd64": {"lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libdl.so.2",
		"lib/x86_64-linux-gnu/libm.so.6", "lib/x86_64-linux-gnu/libpthread.so.0", "lib/x86_64-linux-gnu/librt.so.1"},
	"arm64": {"lib/ld-linux-aarch64.so.1", "lib/aarch64-linux-gnu/libc.so.6", "lib/aarch64-linux-gnu/libdl.so.2",
		"lib/aarch64-linux-gnu/libm.so.6", "lib/aarch64-linux-gnu/libpthread.so.0", "lib/aarch64-linux-gnu/librt.so.1"},
}

// certificates are what buckets' servers are known by.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// descriptor points at a blob of the layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// layout is an OCI image layout in the making, written as a tar.
type layout struct {
	files map[string][]byte
	names []string
}

func (l *layout) add(name string, text []byte) {
	if _, there := l.files[name]; !there {
		l.names = append(l.names, name)
	}
	l.files[name] = text
}

func (l *layout) blob(mediaType string, text []byte) descriptor {
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	l.add("blobs/sha256/"+digest, text)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: int64(len(text))}
}

// writeImage writes the agent's image and returns its size.
func (r release) writeImage(to string) (int64, error) {
	base, err := r.layer(append([]string{certificates}, libraries[r.arch]...), func(name string) string {
		return filepath.Join(r.libraries, name)
	})
	if err != nil {
		return 0, err
	}
	agent, err := r.layer([]string{"usr/bin/ebpfprof-agent"}, func(string) string { return r.agent })
	if err != nil {
		return 0, err
	}
	l := &layout{files: map[string][]byte{}}
	var layers []descriptor
	var digests []string
	for _, plain := range [][]byte{base, agent} {
		sum := sha256.Sum256(plain)
		digests = append(digests, "sha256:"+hex.EncodeToString(sum[:]))
		var packed bytes.Buffer
		compressor, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a valid one
		if _, err := compressor.Write(plain); err != nil {
			return 0, err
		}
		if err := compressor.Close(); err != nil {
			return 0, err
		}
		layers = append(layers, l.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes()))
	}
	config := l.blob("application/vnd.oci.image.config.v1+json", encoded(map[string]any{
		"architecture": r.arch, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/usr/bin/ebpfprof-agent"}, "Env": []string{"PATH=/usr/bin"},
			"Labels": map[string]string{"org.opencontainers.image.title": "ebpfprof-agent", "org.opencontainers.image.version": r.version}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	}))
	manifest := l.blob("application/vnd.oci.image.manifest.v1+json", encoded(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
	}))
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version,
		"io.containerd.image.name": "docker.io/library/ebpfprof-agent:" + r.version}
	l.add("index.json", encoded(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
		"manifests": []descriptor{manifest}}))
	l.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	var out bytes.Buffer
	if err := l.write(&out); err != nil {
		return 0, err
	}
	return int64(out.Len()), os.WriteFile(to, out.Bytes(), 0o644)
}

func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings
	}
	return text
}

// layer is a tar of files, executable, root's and without a time.
func (r release) layer(names []string, from func(string) string) ([]byte, error) {
	if len(libraries[r.arch]) == 0 {
		return nil, fmt.Errorf("no image for %s", r.arch)
	}
	l := &layout{files: map[string][]byte{}}
	for _, name := range names {
		text, err := os.ReadFile(from(name))
		if err != nil {
			return nil, err
		}
		l.add(name, text)
	}
	var out bytes.Buffer
	err := l.write(&out)
	return out.Bytes(), err
}

func (l *layout) write(to *bytes.Buffer) error {
	archive := tar.NewWriter(to)
	for _, name := range l.names {
		text := l.files[name]
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(text)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	return archive.Close()
}
