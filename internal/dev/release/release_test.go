package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsOfPackagesSortAsThoseOfGit(t *testing.T) {
	for git, want := range map[string]string{
		"v0.3.0": "0.3.0", "v0.3.0-4-g1a78d23": "0.3.0+4.g1a78d23", "v0.3.0-dirty": "0.3.0+dirty",
		"1a78d23": "0.0.0+g1a78d23", "1a78d23-dirty": "0.0.0+g1a78d23.dirty", "0.2.0-dev": "0.2.0+dev",
	} {
		if got := packageVersion(git); got != want {
			t.Errorf("%s is %s, want %s", git, got, want)
		}
	}
}

// entries are the files of a tar.
func entries(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[h.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// image writes an image of an agent that is a text, with the libraries of a machine that are texts.
func image(t *testing.T) []byte {
	t.Helper()
	root := t.TempDir()
	for _, name := range append([]string{certificates, "agent"}, libraries["amd64"]...) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(root, "image.tar")
	r := release{agent: filepath.Join(root, "agent"), arch: "amd64", version: "v1", libraries: root}
	if _, err := r.writeImage(to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEqualProgramsAreEqualImages(t *testing.T) {
	if !bytes.Equal(image(t), image(t)) {
		t.Error("two images of one agent differ")
	}
}

// TestTheImagesDigestsAreThoseOfItsBlobs: from index.json on, every descriptor names a blob of its size and sum, and the
// configuration the sums of the unpacked layers.
func TestTheImagesDigestsAreThoseOfItsBlobs(t *testing.T) {
	files := entries(t, bytes.NewReader(image(t)))
	follow := func(d descriptor, into any) []byte {
		blob, there := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		sum := sha256.Sum256(blob)
		if !there || int64(len(blob)) != d.Size || "sha256:"+hex.EncodeToString(sum[:]) != d.Digest {
			t.Fatalf("%+v: a blob of %d bytes", d, len(blob))
		}
		if into != nil {
			if err := json.Unmarshal(blob, into); err != nil {
				t.Fatal(err)
			}
		}
		return blob
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("%v: %s", err, files["index.json"])
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	follow(index.Manifests[0], &manifest)
	var config struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
		Config struct{ Entrypoint []string }
	}
	follow(manifest.Config, &config)
	root := map[string][]byte{}
	for i, l := range manifest.Layers {
		unpacked, err := gzip.NewReader(bytes.NewReader(follow(l, nil)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(plain); "sha256:"+hex.EncodeToString(sum[:]) != config.RootFS.DiffIDs[i] {
			t.Errorf("layer %d: the configuration has another sum", i)
		}
		for name, text := range entries(t, bytes.NewReader(plain)) {
			root["/"+name] = text
		}
	}
	if agent := root[config.Config.Entrypoint[0]]; string(agent) != "agent" {
		t.Errorf("the entry point is %q", agent)
	}
}

// TestTheListOfAProgramHasItsModules, of this test's own program.
func TestTheListOfAProgramHasItsModules(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "bom.json")
	if err := writeBOM(to, "release.test", "v1", self); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"purl": "pkg:golang/github.com/cpuguy83/go-md2man/v2@v`) || !strings.Contains(string(text), "h1:") {
		t.Errorf("%s", text)
	}
}

func TestTheManualPageHasTheCommands(t *testing.T) {
	to := filepath.Join(t.TempDir(), "ebpfprof.1")
	if err := manual(to, filepath.Join("..", "..", "..", "docs", "commands.md")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{".TH ebpfprof 1", ".SH attach", ".SH report", "--duration"} {
		if !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), part) {
			t.Errorf("no %q in the page", part)
		}
	}
}
