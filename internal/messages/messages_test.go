package messages

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// load is the slow twin of index: it parses every area of one language.
func load(t *testing.T, language Language) map[string]string {
	t.Helper()
	entries, err := files.ReadDir(string(language))
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, entry := range entries {
		data, err := files.ReadFile(string(language) + "/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		var area map[string]string
		if err := json.Unmarshal(data, &area); err != nil {
			t.Fatalf("%s: %v", entry.Name(), err)
		}
		maps.Copy(texts, area)
	}
	return texts
}

// TestIndex: each text is what its file says.
func TestIndex(t *testing.T) {
	for _, language := range []Language{English, Chinese} {
		found, err := index(language)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for id := range found {
			got[id], _ = found.text(id)
		}
		if diff := cmp.Diff(load(t, language), got); diff != "" {
			t.Errorf("%s (-file +index):\n%s", language, diff)
		}
		if len(found) > textsExpected {
			t.Errorf("%s has %d texts: raise textsExpected", language, len(found))
		}
	}
}

func TestLanguagesHoldTheSameMessages(t *testing.T) {
	english, chinese := load(t, English), load(t, Chinese)
	parameter := regexp.MustCompile(`\{[a-z_]+(?::words?)?\}`)
	names := func(text string) string {
		found := parameter.FindAllString(text, -1)
		sort.Strings(found)
		return strings.Join(found, " ")
	}
	for id, text := range english {
		other, ok := chinese[id]
		if !ok {
			t.Errorf("%s has no Chinese text", id)
			continue
		}
		if diff := cmp.Diff(names(text), names(other)); diff != "" {
			t.Errorf("%s names other parameters in Chinese (-en +zh):\n%s", id, diff)
		}
	}
	for id := range chinese {
		if _, ok := english[id]; !ok {
			t.Errorf("%s has no English text", id)
		}
	}
}

// TestFieldTexts: both languages hold the same fields, and each text fits into a row of
// a table.
func TestFieldTexts(t *testing.T) {
	english, err := loadFields(English)
	if err != nil {
		t.Fatal(err)
	}
	chinese, err := loadFields(Chinese)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(english)), slices.Sorted(maps.Keys(chinese))); diff != "" {
		t.Errorf("fields (-en +zh):\n%s", diff)
	}
	for _, texts := range []map[string]string{english, chinese} {
		for id, text := range texts {
			if text == "" || strings.ContainsAny(text, "|\n\"") || strings.TrimSpace(text) != text || strings.TrimRight(text, ".。") != text {
				t.Errorf("%s: %q", id, text)
			}
		}
	}
}

func TestText(t *testing.T) {
	if got := Text(Chinese, "name.empty", nil); got != "缺少名称" {
		t.Errorf("Chinese text: %q", got)
	}
	if got := Textf(English, "no.such.id", "b", 2, "a", 1); got != "no.such.id a=1 b=2" {
		t.Errorf("unknown id: %q", got)
	}
	if got := Text(Chinese, "event.alloc.environment_found", map[string]string{"node": "n1", "rank": "0", "text": "full", "text_zh": "已满"}); got != "节点 n1 上 rank 0 的环境：已满" {
		t.Errorf("the Chinese twin of a parameter: %q", got)
	}
	if got := Text(Chinese, "auth.forbidden.role", map[string]string{"kind": "node", "verb": "drain"}); got != "您无权对节点执行排空：您的角色不包含此权限" {
		t.Errorf("words in Chinese: %q", got)
	}
	if got := Text(English, "auth.forbidden.role", map[string]string{"kind": "no-such-kind", "verb": "drain"}); got != "you may not drain this no-such-kind: your role does not include it" {
		t.Errorf("a word that nobody knows: %q", got)
	}
	checks := map[string]string{"checks": "driver exec, devices 4 | disk", "node": "n1", "rank": "a-1-0"}
	if got := Text(Chinese, "event.alloc.prechecked", checks); got != "节点 n1 通过启动前检查，可运行 rank a-1-0：驱动 exec、加速卡 4 | 磁盘" {
		t.Errorf("a list in Chinese: %q", got)
	}
	if got := Text(English, "event.alloc.prechecked", checks); got != "node n1 passed the precheck for rank a-1-0: driver exec, devices 4 | disk" {
		t.Errorf("a list in English: %q", got)
	}
	if got := fill(English, "{a} and {b} and {c", map[string]string{"a": "{b}", "b": "2"}); got != "{b} and 2 and {c" {
		t.Errorf("fill: %q", got)
	}
}

// TestNumbersAgree renders every text with 0, 1 and many in all its parameters: no
// brace is left, and what is counted agrees with its number. A word that has two
// forms in one text has them in all.
func TestNumbersAgree(t *testing.T) {
	place := regexp.MustCompile(`\{([a-z0-9_]+)(?::words?|\|([^{}|]*)\|([^{}|]*))?\}`)
	bounds := map[string]bool{"max": true, "least": true, "most": true, "best": true} // constants, never 1
	for _, language := range []Language{English, Chinese} {
		plural := map[string]bool{}
		for _, text := range load(t, language) {
			for _, found := range place.FindAllStringSubmatch(text, -1) {
				if found[3] != "" && strings.HasSuffix(found[3], "s") {
					plural[found[3]] = true
				}
			}
		}
		if language == English && len(plural) < 10 {
			t.Errorf("only %d counted words were found", len(plural))
		}
		counted := regexp.MustCompile(`\{([a-z0-9_]+)\} (?:more |further |ended )?([a-z-]+)\b`)
		for id, text := range load(t, language) {
			for _, found := range counted.FindAllStringSubmatch(text, -1) {
				if plural[found[2]] && !bounds[found[1]] {
					t.Errorf("%s (%s): %q does not agree with 1: write {%s|…|%s}", id, language, found[0], found[1], found[2])
				}
			}
			for _, number := range []string{"0", "1", "12"} {
				params := map[string]string{}
				for _, found := range place.FindAllStringSubmatch(text, -1) {
					params[found[1]] = number
				}
				if got := fill(language, text, params); strings.ContainsAny(got, "{}|") && !strings.ContainsAny(place.ReplaceAllString(text, ""), "{}|") {
					t.Errorf("%s (%s) with %s: %s", id, language, number, got)
				}
			}
		}
	}
	for number, want := range map[string]string{"0": "0 jobs wait", "1": "1 job waits", "2": "2 jobs wait"} {
		if got := fill(English, "{n} {n|job waits|jobs wait}", map[string]string{"n": number}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := fill(English, "{n|job|jobs}", nil); got != "{n|job|jobs}" {
		t.Errorf("without its number: %q", got)
	}
}

func TestDetect(t *testing.T) {
	cases := []struct {
		all, messages, lang string
		want                Language
	}{
		{"", "", "zh_CN.UTF-8", Chinese},
		{"C", "", "zh_CN.UTF-8", English},
		{"", "zh_TW", "en_US.UTF-8", Chinese},
		{"", "", "", English},
	}
	for _, c := range cases {
		if got := Detect(c.all, c.messages, c.lang); got != c.want {
			t.Errorf("Detect(%q, %q, %q) = %s, want %s", c.all, c.messages, c.lang, got, c.want)
		}
	}
}
