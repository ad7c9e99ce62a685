package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// A job's name is what its processes say of themselves, and any process may say any name. So a
// job is known by whose it is, too: nobody's process joins another user's job, takes its
// name from it, or has it left alone.

// Key identifies a job: its user, its container or pid namespace, and its name. No name has the
// byte that divides them: it comes from an environment or a file's name.
func (j *Job) Key() string {
	if j.User == 0 && j.Space == "" {
		return j.Name
	}
	return fmt.Sprintf("%s\x00%d\x00%s", j.Name, j.User, j.Space)
}

// Owned is a job's name with its user: what is kept of a job that begins again, in
// another container perhaps.
func (j *Job) Owned() string {
	if j.User == 0 {
		return j.Name
	}
	return fmt.Sprintf("%s\x00%d", j.Name, j.User)
}

// spaceOf is the container of a process, else its pid namespace; "" for that of the process
// that looks.
func (d *Discoverer) spaceOf(p *process.Process) string {
	switch {
	case p.ContainerID != "":
		return p.ContainerID
	case p.PIDNamespace != 0 && d.namespace != 0 && p.PIDNamespace != d.namespace:
		return fmt.Sprintf("pid-%d", p.PIDNamespace)
	}
	return ""
}

// confirms reports whether a control group bears a job's id, as those that schedulers make as
// root do: /slurm/uid_1000/job_77/step_0. Below user.slice a user makes its own.
func confirms(cgroup, job string) bool {
	if delegated(cgroup) || job == "" {
		return false
	}
	words := strings.FieldsFunc(cgroup, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.Contains(words, job)
}

// Names has jobs of different users that call themselves the same told apart. The zero value
// knows none.
type Names struct {
	holders map[string]holder // by name: who is called by it alone
	called  map[string]string // by key, while the job runs
}

type holder struct {
	key       string
	confirmed bool
}

// Distinct gives each job a name of its own. Of several of one name the one has it that its
// scheduler's control group confirms, else the one that has had it, else that which began
// first; the others have their user behind it, and so on. A job keeps what it is called for as
// long as it runs, unless a confirmed one takes the name from it.
func (n *Names) Distinct(found []Job) []Job {
	if n.holders == nil {
		n.holders, n.called = map[string]holder{}, map[string]string{}
	}
	order := slices.Clone(found)
	slices.SortStableFunc(order, func(a, b Job) int {
		return cmp.Or(cmp.Compare(number(b.confirmed), number(a.confirmed)), cmp.Compare(a.began, b.began), cmp.Compare(a.Key(), b.Key()))
	})
	running := map[string]bool{}
	for i := range order {
		running[order[i].Key()] = true
	}
	for name, h := range n.holders {
		if !running[h.key] {
			delete(n.holders, name)
		}
	}
	for key := range n.called {
		if !running[key] {
			delete(n.called, key)
		}
	}
	for i := range order {
		j := &order[i]
		j.key = j.Key()
		h, held := n.holders[j.Name]
		switch {
		case h.key == j.key, !held && n.called[j.key] == "", j.confirmed && !h.confirmed:
			n.holders[j.Name] = holder{j.key, j.confirmed || h.key == j.key && h.confirmed}
			n.called[j.key] = j.Name
		}
	}
	for i := range order {
		j := &order[i]
		if n.holders[j.Name].key != j.key && (n.called[j.key] == "" || n.called[j.key] == j.Name) {
			n.called[j.key] = apart(j, order[:i])
		}
		if n.holders[j.Name].key != j.key {
			j.Name = n.called[j.key]
		}
	}
	slices.SortFunc(order, func(a, b Job) int { return cmp.Compare(a.Name, b.Name) })
	return order
}

// apart is what a job is called beside others of its name.
func apart(j *Job, before []Job) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(before, func(of Job) bool { return of.Name == name })
	}
	name := fmt.Sprintf("%s@%d", j.Name, j.User)
	if j.Space != "" && taken(name) {
		name += "-" + j.Space[:min(len(j.Space), shownSpace)]
	}
	for i, base := 2, name; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return name
}

// shownSpace is how much of a container's id tells it from others, as its runtime shows it.
const shownSpace = 12

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
