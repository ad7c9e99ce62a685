package cli

import (
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// completeCommand is how the shells ask for what could come next: the words so
// far behind it, the last of them not finished. No answer means a file name.
const completeCommand = "internal-complete"

// The scripts ask the program itself, so that they never fall behind its flags.
var completions = map[string]string{
	"bash": `# ebpfprof completion for bash: eval "$(NAME completion bash)"
_FUNCTION() {
  local cur="${COMP_WORDS[COMP_CWORD]}" words
  words=$("${COMP_WORDS[0]}" internal-complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _FUNCTION NAME
`,
	"zsh": `#compdef NAME
# ebpfprof completion for zsh: eval "$(NAME completion zsh)"
_FUNCTION() {
  local -a candidates
  candidates=(${(f)"$("${words[1]}" internal-complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#candidates )); then
    compadd -a candidates
  else
    _files
  fi
}
compdef _FUNCTION NAME
`,
	"fish": `# ebpfprof completion for fish: NAME completion fish | source
function _FUNCTION
  set -l words (commandline -opc) (commandline -ct)
  set -l candidates ($words[1] internal-complete $words[2..-1] 2>/dev/null)
  or set candidates
  if set -q candidates[1]
    printf '%s\n' $candidates
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c NAME -f -a '(_FUNCTION)'
`,
}

// CompletionCommand is `ebpfprof completion`.
func CompletionCommand() *urfave.Command {
	return &urfave.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		ArgsUsage: "bash|zsh|fish",
		Action: func(c *urfave.Context) error {
			script, ok := completions[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return Usagef("give a shell: %s completion bash|zsh|fish", c.App.Name)
			}
			name := c.App.Name
			function := strings.ReplaceAll(name, "-", "_") + "_complete"
			fmt.Print(strings.NewReplacer("NAME", name, "FUNCTION", function).Replace(script))
			return nil
		},
	}
}
