package history

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Use is what one line of a report on use says: card time and core time between the report's
// ends, in milliseconds.
type Use struct {
	Key     string `json:"key"`
	Period  string `json:"period,omitempty"` // the day, the Monday of the week, or the month; empty where a report is not cut
	CardMs  int64  `json:"card_ms"`          // the sum of the six below
	CoreMs  int64  `json:"core_ms"`          // of processor cores
	Ranks   int64  `json:"ranks"`            // holdings that were counted: one of each rank of each attempt
	GoodMs  int64  `json:"good_ms"`          // of ranks that ended well, or finished
	Stopped int64  `json:"stopped_ms"`       // of what people stopped, or a time limit ended
	Failed  int64  `json:"failed_ms"`        // of what failed by itself
	Lost    int64  `json:"lost_ms"`          // of what nodes and devices took away
	Yielded int64  `json:"yielded_ms"`       // of what made room for others
	Running int64  `json:"running_ms"`       // of what has not ended

	milliCPUMs int64 // CoreMs before it is rounded
}

// OutcomeRunning is the outcome of a holding that has not ended.
const OutcomeRunning structs.Outcome = "running"

// keys are the texts of a part that decide about the line of a row.
func (q *Question) keys(c *columns) *Texts {
	switch q.By {
	case ByUser:
		return c.users
	case ByPool:
		return c.pools
	case ByTag:
		return c.tags
	case ByCards, BySize:
		return c.cards
	}
	return c.projects
}

// Uses sums up who held what. Take is called with each part of the history.
type Uses struct {
	question Question
	cuts     []structs.UnixNano
	groups   map[string][]Use // by key, one for each period
}

// NewUses begins a report on use.
func NewUses(q Question) (*Uses, error) {
	cuts, err := q.periods()
	if err != nil {
		return nil, err
	}
	return &Uses{question: q, cuts: cuts, groups: make(map[string][]Use)}, nil
}

// group returns the lines of a key.
func (u *Uses) group(key string) []Use {
	lines, there := u.groups[key]
	if !there {
		lines = make([]Use, len(u.cuts)-1)
		u.groups[key] = lines
	}
	return lines
}

// held is one kind of card within a holding.
type held struct {
	lines []Use
	cards int64 // of this kind; -1: all that the holding has
}

// columns are those that every report reads.
type columns struct {
	kind, users, projects, pools, tags, cards, outcomes *Texts
	begin, end                                          []int64
}

func readColumns(part Columns) (*columns, error) {
	var c columns
	for _, one := range []struct {
		name string
		into **Texts
	}{
		{"kind", &c.kind},
		{"user", &c.users},
		{"project", &c.projects},
		{"pool", &c.pools},
		{"tags", &c.tags},
		{"cards", &c.cards},
		{"outcome", &c.outcomes},
	} {
		var err error
		if *one.into, err = part.Texts(one.name); err != nil {
			return nil, err
		}
	}
	var err error
	if c.begin, err = part.Numbers("start"); err != nil {
		return nil, err
	}
	c.end, err = part.Numbers("end")
	return &c, err
}

// chosen returns a function that reports whether a row is one that is asked for and may be
// seen. Each pair of user and project is judged once.
func (q *Question) chosen(c *columns, kind structs.HistoryKind) func(row int) bool {
	of := slices.Index(c.kind.Words, string(kind))
	pools := wordsAre(c.pools, func(word string) bool { return q.Pool == "" || word == q.Pool })
	tags := wordsAre(c.tags, func(word string) bool {
		return q.Tag == "" || slices.Contains(strings.Split(word, tagsSeparator), q.Tag)
	})
	judged := make(map[uint64]bool)
	return func(row int) bool {
		if int(c.kind.At[row]) != of || !pools[c.pools.At[row]] || !tags[c.tags.At[row]] {
			return false
		}
		pair := uint64(c.users.At[row])<<32 | uint64(c.projects.At[row])
		may, known := judged[pair]
		if !known {
			user, project := c.users.Of(row), c.projects.Of(row)
			may = (q.User == "" || q.User == user) && (q.Project == "" || q.Project == project) && (q.May == nil || q.May(user, project))
			judged[pair] = may
		}
		return may
	}
}

func wordsAre(texts *Texts, is func(string) bool) []bool {
	are := make([]bool, len(texts.Words))
	for i, word := range texts.Words {
		are[i] = is(word)
	}
	return are
}

// ms is a time in whole milliseconds, as the state charges them.
func ms(ns int64) int64 {
	if q := ns / 1e6; ns%1e6 >= 0 {
		return q
	}
	return ns/1e6 - 1
}

// Take adds a part of the history. A part that cannot be read adds nothing.
func (u *Uses) Take(part Columns) error {
	c, err := readColumns(part)
	if err != nil {
		return err
	}
	cores, err := part.Numbers("milli_cpu")
	if err != nil {
		return err
	}
	keys := u.question.keys(c)
	chosen := u.question.chosen(c, structs.HistoryHolding)
	total := make([]int64, len(c.cards.Words))
	for i, word := range c.cards.Words {
		total[i] = (&structs.HistoryRow{Cards: structs.ParseCards(word)}).CardCount()
	}
	holders := make(map[uint32][]held) // by the word that decides
	from, to := int64(u.question.From), int64(u.question.To)
	for row := range part.Len() {
		if c.end[row] <= from || c.begin[row] >= to || !chosen(row) {
			continue
		}
		word := keys.At[row]
		lines, known := holders[word]
		if !known {
			lines = u.holders(keys.Words[word])
			holders[word] = lines
		}
		u.charge(c.begin[row], c.end[row], lines, total[c.cards.At[row]], cores[row], structs.Outcome(c.outcomes.Of(row)))
	}
	return nil
}

// holders are the lines of the rows that have a word.
func (u *Uses) holders(word string) []held {
	if u.question.By != ByCards {
		var lines []held
		for _, key := range u.question.lineKeys(word) {
			lines = append(lines, held{u.group(key), -1})
		}
		return lines
	}
	usage := structs.ParseCards(word)
	if len(usage) == 0 {
		return []held{{u.group(""), 0}}
	}
	var lines []held
	for _, model := range slices.Sorted(maps.Keys(usage)) {
		lines = append(lines, held{u.group(model), usage[model]})
	}
	return lines
}

// lineKeys are the keys of the lines of a word; one, but for tags and kinds of cards.
func (q *Question) lineKeys(word string) []string {
	switch q.By {
	case BySize:
		row := structs.HistoryRow{Cards: structs.ParseCards(word)}
		return []string{sizeName(row.CardCount())}
	case ByCards:
		if usage := structs.ParseCards(word); len(usage) > 0 {
			return slices.Sorted(maps.Keys(usage))
		}
	case ByTag:
		return strings.Split(word, tagsSeparator)
	}
	return []string{word}
}

// charge adds what was held between two times to lines, cut where periods end.
func (u *Uses) charge(begin, end int64, lines []held, cards, milliCPU int64, outcome structs.Outcome) {
	begin, end = max(begin, int64(u.cuts[0])), min(end, int64(u.cuts[len(u.cuts)-1]))
	at, _ := slices.BinarySearchFunc(u.cuts, structs.UnixNano(begin), cmp.Compare)
	if at == len(u.cuts) || int64(u.cuts[at]) > begin {
		at--
	}
	first := true
	for ; begin < end; at++ {
		until := min(end, int64(u.cuts[at+1]))
		span := ms(until) - ms(begin)
		for i, line := range lines {
			use := &line.lines[at]
			n := cards
			if line.cards >= 0 {
				n = line.cards
			}
			use.add(n*span, outcome)
			if first {
				use.Ranks++
			}
			if i == 0 || u.question.By == ByTag {
				use.milliCPUMs += milliCPU * span
			}
		}
		begin, first = until, false
	}
}

func (u *Use) add(cardMs int64, outcome structs.Outcome) {
	u.CardMs += cardMs
	switch outcome {
	case structs.OutcomeFailed:
		u.Failed += cardMs
	case structs.OutcomeLost:
		u.Lost += cardMs
	case structs.OutcomePreempted:
		u.Yielded += cardMs
	case structs.OutcomeStopped, structs.OutcomeExpired:
		u.Stopped += cardMs
	case OutcomeRunning:
		u.Running += cardMs
	default:
		u.GoodMs += cardMs
	}
}

// Lines are the lines of the report: by period, and then those first that used most.
func (u *Uses) Lines() []Use {
	list := []Use{}
	for key, lines := range u.groups {
		for i, line := range lines {
			if line == (Use{}) {
				continue
			}
			line.Key, line.Period, line.CoreMs, line.milliCPUMs = key, u.question.name(u.cuts[i]), line.milliCPUMs/1000, 0
			list = append(list, line)
		}
	}
	slices.SortFunc(list, func(x, y Use) int {
		return cmp.Or(cmp.Compare(x.Period, y.Period), cmp.Compare(y.CardMs, x.CardMs), cmp.Compare(y.CoreMs, x.CoreMs), cmp.Compare(x.Key, y.Key))
	})
	return list
}
