package report

import "io"

func (r *Report) writeHTML(w io.Writer, style Style) error { return r.writeMarkdown(w, style) }
