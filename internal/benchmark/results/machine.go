package results

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

func (s *Session) writeJSON(w io.Writer) error {
	out := json.NewEncoder(printable.JSON(w))
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(s)
}

// writeCSV has a row for each number of each run.
func (s *Session) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"session", "run", "name", "sysenv", "repeat", "attempt", "result", "pvar", "pval", "punit", "lo", "hi", "samples",
		"why"}}
	for _, b := range s.Benchmarks {
		for _, r := range b.Runs {
			for _, n := range r.Numbers {
				rows = append(rows, []string{s.ID, r.ID, b.Name, b.SysEnv, strconv.Itoa(r.Repeat), strconv.Itoa(r.Attempt), string(r.Result),
					n.Name, exact(n.Value), n.Unit, exact(n.Lo), exact(n.Hi), strconv.Itoa(n.Of), n.Why})
			}
		}
	}
	return out.WriteAll(rows)
}

func exact(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// JUnit's elements, as CI servers read them.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Hostname  string      `xml:"hostname,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Seconds   string      `xml:"time,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Error   *junitFailure `xml:"error"`
		Skipped *junitFailure `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
	}
)

// writeJUnit has a case for each run, and one for what all runs of a benchmark say together: a miss is a failure, what
// did not come to be measured an error, an expected miss skipped.
func (s *Session) writeJUnit(w io.Writer) error {
	suite := junitSuite{Name: "ebpfprof bench", Hostname: s.Host, Timestamp: time.Unix(0, s.BeginNS).UTC().Format("2006-01-02T15:04:05")}
	total := 0.0
	for _, b := range s.Benchmarks {
		for _, r := range b.Runs {
			total += r.Seconds
			c := junitCase{Class: b.SysEnv, Name: fmt.Sprintf("%s run %d attempt %d", b.Name, r.Repeat+1, r.Attempt), Seconds: fmt.Sprintf("%.3f",
				r.Seconds)}
			for _, n := range r.Numbers {
				if n.Value != nil {
					c.Output += fmt.Sprintf("%s = %s %s\n", n.Name, exact(n.Value), n.Unit)
				}
			}
			suite.put(c, r.Result, r.Stage, r.Reason)
		}
		c := junitCase{Class: b.SysEnv, Name: b.Name + " all runs", Seconds: "0"}
		switch b.Verdict {
		case Missed:
			suite.put(c, reference.Fail, "performance", "a reference is missed by the mean of all runs")
		case Inconclusive:
			suite.put(c, reference.XFail, "performance", "inconclusive: an interval reaches over a bound; run more repeats")
		case Failed:
			suite.put(c, reference.Fail, "run", "a run failed before it was measured")
		default:
			suite.put(c, reference.Pass, "", "")
		}
	}
	suite.Seconds = fmt.Sprintf("%.3f", total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	out := xml.NewEncoder(w)
	out.Indent("", "  ")
	if err := out.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) put(c junitCase, result reference.Result, stage, reason string) {
	s.Tests++
	said := &junitFailure{Type: stage, Message: printable.Text(reason)}
	switch {
	case result == reference.XFail:
		s.Skipped++
		said.Type = ""
		c.Skipped = said
	case result == reference.Fail && stage != "performance" && stage != "sanity":
		s.Errors++
		c.Error = said
	case result == reference.Fail || result == reference.XPass:
		s.Failures++
		c.Failure = said
	}
	s.Cases = append(s.Cases, c)
}
