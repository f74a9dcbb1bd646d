package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

func TestCardsText(t *testing.T) {
	node := &outlook.PastNode{Cards: []outlook.PastCard{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 2}, {Index: 6}, {Index: 7}, {Gone: true}}}
	for _, c := range []struct {
		span outlook.PastSpan
		want string
	}{
		{outlook.PastSpan{}, "-"},
		{outlook.PastSpan{Cards: []int{0, 1, 2, 3}}, "0-2"},
		{outlook.PastSpan{Cards: []int{0, 2, 4, 5}}, "0,2,6-7"},
		{outlook.PastSpan{Cards: []int{1, 6}, UnknownCards: 2}, "1 +3?"},
		{outlook.PastSpan{UnknownCards: 2}, "+2?"},
		{outlook.PastSpan{Cards: []int{9, -1}}, "+2?"}, // of servers that know better
	} {
		if got := cardsText(node, &c.span); got != c.want {
			t.Errorf("%+v: %q, not %q", c.span, got, c.want)
		}
	}
}

// What nobody knows is said below what is known.
func TestPrintPast(t *testing.T) {
	at := structs.At(time.Date(2026, 11, 2, 8, 0, 0, 0, time.Local))
	ago := func(hours int) structs.UnixNano { return at.Add(-time.Duration(hours) * time.Hour) }
	past := &outlook.Past{
		From: ago(24), To: at, More: 3,
		Nodes: []outlook.PastNode{
			{
				Node: "gpu-1", Cards: []outlook.PastCard{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 3}}, CompleteSince: ago(10),
				Spans: []outlook.PastSpan{
					{JobID: "a", Job: "train", Project: "vision", User: "ada", Cards: []int{0, 1}, From: ago(8), To: ago(6)},
					{JobID: "a", Job: "train", Project: "vision", User: "ada", Held: true, Cards: []int{0}, From: ago(6)},
					{Cards: []int{1}, From: ago(5), To: ago(1)},
				},
			},
			{Node: "gpu-2", Cards: []outlook.PastCard{{Index: 0}}, JoinedAt: ago(2)},
			{Node: "old", Removed: true, Cards: []outlook.PastCard{{Gone: true}}, Spans: []outlook.PastSpan{{JobID: "b", Job: "sweep", Subjob: 3, Project: "p", User: "li", Cards: []int{0}, From: ago(20), To: ago(19)}}},
		},
		Forgotten: []outlook.PastUse{{Pool: "a800", Cards: 1, From: ago(9), To: ago(7)}, {Pool: "a800", Cards: 1, From: ago(9), To: ago(5)}},
	}
	print := func(found *outlook.Past, language messages.Language) string {
		var out bytes.Buffer
		env := &Env{Stdout: &Screen{Writer: &out}, Language: language}
		env.printPast(found)
		return out.String()
	}
	want := strings.TrimPrefix(`
NODE           CARDS  JOB                         PROJECT  USER  FROM              TO
gpu-1          0-1    train                       vision   ada   2026-11-02 00:00  2026-11-02 02:00
gpu-1          0      train (held for debugging)  vision   ada   2026-11-02 02:00  -
gpu-1          1      a job that you may not see  -        -     2026-11-02 03:00  2026-11-02 07:00
old (removed)  +1?    sweep s3                    p        li    2026-11-01 12:00  2026-11-01 13:00
gpu-1: what ended before 2026-11-01 22:00 is left out
gpu-2 joined at 2026-11-02 06:00
a800: 2 attempts of jobs that are kept no longer held cards as well; which ones nobody knows
and 3 nodes more
`, "\n")
	if got := print(past, messages.English); got != want {
		t.Errorf("the day:\n%s\nnot\n%s", got, want)
	}
	want = strings.TrimPrefix(`
2026-11-02 00:00：共 4 张卡，占用 4 张
节点   加速卡  任务   项目    用户  开始              结束
gpu-1  0-1     train  vision  ada   2026-11-02 00:00  2026-11-02 02:00
gpu-2 于 2026-11-02 06:00 加入
a800：另有 2 张卡由已不再保留的任务占用，具体哪些卡已无记录
另有 3 个节点
`, "\n")
	if got := print(past.At(ago(8)), messages.Chinese); got != want {
		t.Errorf("eight hours ago:\n%s\nnot\n%s", got, want)
	}
}
