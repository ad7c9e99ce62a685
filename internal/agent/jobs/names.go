package jobs

import (
	"fmt"
	"regexp"
	"slices"
)

// Name has jobs that begin again under another name keep the one that they are known by:
// a scheduler numbers each run, and a job's own history, its reports and its cool-down go by
// its name.
type Name struct {
	Match string `yaml:"match"` // a regular expression that a job's whole name has to match
	Name  string `yaml:"name"`  // what it is called then; $1 is what the first parentheses matched
}

// expression matches whole names.
func (n *Name) expression() (*regexp.Regexp, error) { return regexp.Compile(`^(?:` + n.Match + `)$`) }

// CheckNames says what is wrong with names.
func CheckNames(all []Name) error {
	for i := range all {
		n := &all[i]
		if _, err := n.expression(); err != nil || n.Match == "" {
			return fmt.Errorf("match: %q is no regular expression", n.Match)
		}
		if n.Name == "" {
			return fmt.Errorf("match %q has no name", n.Match)
		}
	}
	return nil
}

// known is what a job is called by the first of the names that it matches.
func known(names []Name, job string) string {
	for i := range names {
		e, err := names[i].expression()
		if err != nil {
			continue // check has refused it
		}
		if found := e.FindStringSubmatchIndex(job); found != nil {
			if name := string(e.ExpandString(nil, names[i].Name, job, found)); name != "" {
				return name
			}
		}
	}
	return job
}

// Rename calls the jobs of a look what they are known by. Of several of one user at once that would
// be called the same, the first has the name, and the others keep their own: they are different
// jobs, or a run that has not ended yet and the one after it.
func Rename(names []Name, found []Job) []Job {
	if len(names) == 0 {
		return found
	}
	type owned struct {
		user  uint32
		space string
		name  string
	}
	of := func(job *Job, name string) owned { return owned{job.User, job.Space, name} }
	taken := map[owned]bool{}
	renamed := slices.Clone(found)
	for i := range found { // those that keep their names have them
		if job := &found[i]; known(names, job.Name) == job.Name {
			taken[of(job, job.Name)] = true
		}
	}
	for i := range found {
		job := &found[i]
		if name := known(names, job.Name); !taken[of(job, name)] {
			taken[of(job, name)], renamed[i].Name = true, name
		}
	}
	return renamed
}
