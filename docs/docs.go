// Package docs has the documents that the program itself hands out.
package docs

import "embed"

// Files are the pages for readers of datasets.
//
//go:embed findings.md questions.md schema.md json.md limitations.md memory.md
var Files embed.FS
