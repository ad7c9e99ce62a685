package jobs

import (
	"os"
	"strings"
)

// podLogs has a link for each container of a node's pods, POD_NAMESPACE_CONTAINER-ID.log. The kubelet makes them, as root, so
// that a pod is named without asking an API server, which would take an account of it.
const podLogs = "/var/log/containers"

// mostPodLogs bounds a look: a node has some hundreds, of containers that have ended too.
const mostPodLogs = 1 << 14

// podOf names the pod and the container that have an id: NAMESPACE/POD/CONTAINER. It is "" where no kubelet runs, or where
// the agent's own container lacks the directory. A user may name a control group of its own like a pod's container.
func (d *Discoverer) podOf(container, cgroup string) string {
	if container == "" || delegated(cgroup) {
		return ""
	}
	directory, err := os.Open(d.podLogs)
	if err != nil {
		return ""
	}
	defer directory.Close()
	links, _ := directory.Readdirnames(mostPodLogs) // what an error leaves unread is not found
	for _, link := range links {
		of, found := strings.CutSuffix(link, "-"+container+".log")
		if parts := strings.Split(of, "_"); found && len(parts) == 3 { // none of the three has an underscore
			return parts[1] + "/" + parts[0] + "/" + parts[2]
		}
	}
	return ""
}

// delegated reports whether a control group is one that a user may have made and named.
func delegated(cgroup string) bool {
	return strings.Contains(cgroup, "user.slice") || strings.Contains(cgroup, "user@")
}
