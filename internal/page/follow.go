package page

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/page/progress"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const (
	lookEvery = 200 * time.Millisecond
	// settled is how long the files must stay as they are before they are read: a rotation gives a dozen tables their new
	// files, one after the other.
	settled = 100 * time.Millisecond
	// longestWait answers a page that waits for news without any, before a proxy on the way gives up.
	longestWait = 20 * time.Second
	// unwatched is for how long after a request the files are looked at: a page that is open asks again and again.
	unwatched = 2 * longestWait
	// pauses is how many times longer than reading a new state the pause after it is: on the machine of the job the page
	// takes a fifth of one CPU at the most.
	pauses = 4
)

// state is /api/status: what the page has to know about the dataset besides its contents.
type state struct {
	Version   int64  `json:"version"` // another one with each news; the page waits for one that it does not have
	Edition   int64  `json:"edition"`
	Recording bool   `json:"recording"`
	Gone      bool   `json:"gone"`
	Problem   string `json:"problem"` // why the files as they are now cannot be read; what is shown is as they were
	Report    string `json:"report"`  // what of the report is being computed; "" when nothing is
}

// follow reads the dataset anew when its files have changed, as long as a page is open.
func (s *Server) follow() {
	pause := lookEvery
	for {
		select {
		case <-s.life.Done():
			return
		case <-time.After(pause):
		}
		pause = lookEvery
		if time.Since(time.Unix(0, s.seenNS.Load())) > unwatched {
			continue
		}
		if s.gone() {
			s.tell(func(now *state) { now.Gone = true })
			continue
		}
		s.tell(func(now *state) { now.Gone = false })
		if s.current.changed() { // only this goroutine replaces it
			began := time.Now()
			s.next()
			pause = max(pause, pauses*time.Since(began))
		}
	}
}

// next reads the dataset as it is now, and takes that in place of what was read before.
func (s *Server) next() {
	for last := ""; s.life.Err() == nil; {
		now := listed(s.current.base)
		if now == last {
			break
		}
		last = now
		time.Sleep(settled)
	}
	e, err := openEdition(s.path, s.options, s.current)
	if err != nil {
		if !s.gone() {
			s.tell(func(now *state) { now.Problem = printable.Text(err.Error()) })
		}
		return
	}
	select {
	case <-e.lanes.built:
	case <-s.life.Done():
		e.end()
	}
	s.retire(e)
	s.tell(func(now *state) { now.Edition, now.Recording, now.Problem = e.number, e.recording, "" })
}

// retire puts an edition in the place of the current one, which is closed after its last request.
func (s *Server) retire(next *edition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current
	s.current, old.retired = next, true
	s.retiring.Add(1)
	if old.uses == 0 {
		go s.close(old)
	}
}

func (s *Server) close(e *edition) {
	err := e.close()
	s.mu.Lock()
	s.failure = errors.Join(s.failure, err)
	s.mu.Unlock()
	s.retiring.Done()
}

// borrow is the current edition, which stays open until giveBack; nil when the server is closed: a request that came just
// before may still be there.
func (s *Server) borrow() *edition {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.uses++
	}
	return s.current
}

func (s *Server) giveBack(e *edition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.uses--; e.uses == 0 && e.retired {
		go s.close(e)
	}
}

// tell changes the state; pages that wait for news get it.
func (s *Server) tell(change func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state
	if change(&s.state); s.state == before {
		return
	}
	s.state.Version++
	close(s.news)
	s.news = make(chan struct{})
}

// status is /api/status: with ?after=VERSION it answers when there are news.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	now, news := s.state, s.news
	s.mu.Unlock()
	if after := r.URL.Query().Get("after"); after == strconv.FormatInt(now.Version, 10) {
		select {
		case <-news:
		case <-r.Context().Done():
			return
		case <-s.life.Done():
		case <-time.After(longestWait):
		}
		s.mu.Lock()
		now = s.state
		s.mu.Unlock()
	}
	e := s.borrow()
	if e == nil {
		return
	}
	now.Report = e.reports.progress()
	s.giveBack(e)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, now)
}

// Say takes what the recorder says of the recording that it makes.
func (s *Server) Say(line progress.Line) {
	s.mu.Lock()
	s.recorder = &line
	s.mu.Unlock()
}

// said is /api/recorder: what the recorder said last, null of a dataset that was recorded before.
func (s *Server) said(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	line := s.recorder
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, line)
}

func (s *Server) gone() bool { return gone(s.root) }

func gone(root string) bool {
	_, err := os.Stat(root)
	return errors.Is(err, fs.ErrNotExist)
}
