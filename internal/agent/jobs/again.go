package jobs

// Most processes of a node never map a library that is looked for, and a job may do so hours
// after it began: when the data is prepared, or a notebook imports it at last. So a process is
// looked at again the more seldom, the longer it has had none.

const (
	// often is for how many looks a process is looked at each time: most jobs load their
	// framework within their first minute.
	often = 12
	// Then the next look comes after a share of how long it has been there.
	shareOfAge = 8
	// seldom is the most looks that pass: with a look each 5 s, 5 minutes.
	seldom = 60
)

// dueAfter is after how many looks a process is looked at again that has been there for so many.
func dueAfter(age int) int { return min(max(1, (age-often)/shareOfAge), seldom) }
