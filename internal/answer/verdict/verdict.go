// Package verdict has the words in which comparisons say what came of them, and the exit
// codes that tell them to scripts.
package verdict

// Verdict of a comparison of times before and after.
type Verdict string

// The verdicts.
const (
	Regression   Verdict = "regression"
	Improvement  Verdict = "improvement"
	Neutral      Verdict = "neutral"
	Inconclusive Verdict = "inconclusive"
)

// Exit codes beside those of all commands.
const (
	ExitRegression   = 10
	ExitInconclusive = 12
)

// ExitCode is 0 for what needs no attention.
func (v Verdict) ExitCode() int {
	switch v {
	case Regression:
		return ExitRegression
	case Inconclusive:
		return ExitInconclusive
	}
	return 0
}
