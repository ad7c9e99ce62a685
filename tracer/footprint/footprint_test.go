package footprint

import "testing"

func TestAProcessAndAUserHaveTheirShares(t *testing.T) {
	accounts := New(100, func(pid int) uint32 { return uint32(pid / 10) })
	one := accounts.Of(10)
	if one.Left() != 100 {
		t.Fatalf("%d bytes are left at the beginning", one.Left())
	}
	one.Add(100)
	if one.Left() != 0 || accounts.Of(11).Left() != 100 || accounts.Most() != 100 {
		t.Errorf("%d left, %d of a second process, %d kept at the most", one.Left(), accounts.Of(11).Left(), accounts.Most())
	}
	accounts.Of(11).Add(100)
	if left := accounts.Of(12).Left(); left != 0 {
		t.Errorf("a third process of the user has %d left: the user has had half of all", left)
	}
	if left := accounts.Of(20).Left(); left != 100 {
		t.Errorf("another user's process has %d left", left)
	}
	accounts.Ended(10)
	if accounts.Of(10) == one {
		t.Error("the pid's next process has the account of the one before")
	}
	if left := accounts.Of(13).Left(); left != 0 {
		t.Errorf("%d are left while what is kept of the ended process is there", left)
	}
	one.Add(-100)
	if left := accounts.Of(13).Left(); left != 100 {
		t.Errorf("%d are left when nothing is kept of the ended process any more", left)
	}
}
