package registrar

import (
	"fmt"
	"time"
)

// daysOfTable is for how many days a table is kept; 0 for ever. What people said stays.
func (p *pass) daysOfTable(table string) int {
	if _, merges := tables[table]; merges {
		return p.Days
	}
	if table == requests {
		return requestDays
	}
	return 0
}

const requests = "request"

const oneDay = 24 * time.Hour

// clockIsPlausible is false where everything would be removed: either nobody has sent
// anything for as long, or the clock is wrong. To keep it is right in both cases.
func (p *pass) clockIsPlausible(days []day) bool {
	if p.Days == 0 || len(days) == 0 {
		return true
	}
	newest := days[len(days)-1].date()
	if p.Now().Sub(newest) < time.Duration(p.Days)*oneDay {
		return true
	}
	p.Notes = append(p.Notes, fmt.Sprintf("the newest day in the store is %s, longer ago than the %d days that patterns are kept: nothing "+
		"was removed for its age",
		newest.Format(time.DateOnly), p.Days))
	return false
}

// expired is whether all of a day is older than its table is kept.
func (p *pass) expired(d day) bool {
	keep := p.daysOfTable(d.table())
	return keep > 0 && p.mayBeExpired && p.Now().Sub(d.date().Add(oneDay)) > time.Duration(keep)*oneDay
}

// removeDay removes all of a day; the manifests last, so that what was merged never
// counts again.
func (p *pass) removeDay(d day) error {
	for _, prefix := range []string{d.prefix(), d.manifests()} {
		keys, err := p.s.List(p.ctx, prefix)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := p.remove(key); err != nil {
				return err
			}
			if prefix == d.prefix() {
				p.Expired++
			}
		}
	}
	return nil
}
