package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var files embed.FS

// asset is a file of the page, compressed once.
type asset struct {
	kind, tag string
	plain     []byte
	packed    []byte
}

// kinds are written down: a machine's own table may call a script text/plain, which nosniff refuses.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// assets are the page's files. They hold no data, so that they need no token.
type assets map[string]asset

func newAssets() assets {
	all := assets{}
	err := fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		plain, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(plain)
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		_, _ = w.Write(plain) // into memory
		_ = w.Close()
		all["/"+strings.TrimPrefix(name, "assets/")] = asset{kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`, plain,
			packed.Bytes()}
		return nil
	})
	if err != nil {
		panic(err) // embedded
	}
	all["/"] = all["/index.html"]
	return all
}

func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, "the page is only read")
		return
	}
	file, known := a[r.URL.Path]
	if !known {
		refuse(w, http.StatusNotFound, "there is no such page: open /")
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("ETag", file.tag)
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == file.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = file.packed
	}
	_, _ = w.Write(body)
}
