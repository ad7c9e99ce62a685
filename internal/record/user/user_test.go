package user

import (
	"os/exec"
	"slices"
	"testing"
)

// What runs apart as another user has none of root's variables but those that are no secret.
func TestRootsVariablesStayWithRoot(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("TERM", "xterm")
	u, err := Nobody()
	if err != nil {
		t.Skip(err)
	}
	command := exec.Command("true")
	u.Apart(command)
	if slices.Contains(command.Env, "AWS_SECRET_ACCESS_KEY=secret") || !slices.Contains(command.Env, "TERM=xterm") ||
		!slices.Contains(command.Env, "USER="+u.Name()) {
		t.Error(command.Env)
	}
}
