package metrics

import (
	"regexp"
	"strconv"
	"strings"
)

// LineMax is how much of a line counts, in bytes.
const LineMax = 8 << 10

// perLineMax bounds the observations of one line.
const perLineMax = 32

// scanner finds figures in lines. The zero value knows the common forms.
type scanner struct{ patterns []*regexp.Regexp }

// newScanner leaves out patterns that cannot be read: submission refuses them,
// and a node of another version must not fail.
func newScanner(patterns []string) scanner {
	var s scanner
	for _, text := range patterns {
		if compiled, err := regexp.Compile(text); err == nil {
			s.patterns = append(s.patterns, compiled)
		}
	}
	return s
}

// scan returns the figures of one line.
func (s scanner) scan(line string) []observation {
	line = line[:min(len(line), LineMax)]
	if len(s.patterns) > 0 {
		for _, pattern := range s.patterns {
			if found := matched(pattern, line); len(found) > 0 {
				return found
			}
		}
		return nil
	}
	return common(line)
}

// matched returns the figures of the named groups of a pattern.
func matched(pattern *regexp.Regexp, line string) []observation {
	var found []observation
	for _, groups := range pattern.FindAllStringSubmatch(line, perLineMax) {
		step, name := int64(-1), ""
		for i, group := range pattern.SubexpNames() {
			switch group {
			case "step":
				if n, err := strconv.ParseFloat(groups[i], 64); err == nil && n >= 0 && n < 1<<62 {
					step = int64(n)
				}
			case "name":
				name = groups[i]
			}
		}
		for i, group := range pattern.SubexpNames() {
			if group == "" || group == "step" || group == "name" || groups[i] == "" || len(found) == perLineMax {
				continue
			}
			value, err := strconv.ParseFloat(groups[i], 64)
			if err != nil {
				continue
			}
			if group == "value" && name != "" {
				group = name
			}
			found = append(found, observation{group, step, value})
		}
	}
	return found
}

// role is what a common name stands for.
type role int

const (
	unknown role = iota
	figure
	counter // numbers the observations of its line
	epoch   // both
)

// roleOf reports what a name in lower case stands for.
func roleOf(name string) role {
	switch name {
	case "step", "steps", "global_step", "iter", "iteration", "iterations", "num_updates":
		return counter
	case "epoch":
		return epoch
	case "loss", "losses", "accuracy", "acc", "top1", "top5", "acc1", "acc5", "lr", "learning_rate", "ppl", "perplexity", "grad_norm", "gnorm",
		"reward", "return", "f1", "auc", "bleu", "rouge", "wer", "cer", "miou", "map", "psnr", "ssim", "error", "precision", "recall",
		"throughput", "tokens_per_second", "samples_per_second", "tflops", "mfu", "train_runtime", "score", "rmse", "mae", "mse", "r2":
		return figure
	}
	// val_loss, loss_scale, train/loss, eval_accuracy, Accuracy@1
	for _, part := range strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("_/.-@", c) }) {
		switch part {
		case "loss", "acc", "accuracy", "ppl", "perplexity", "reward", "f1", "auc", "bleu", "miou", "lr":
			return figure
		}
	}
	return unknown
}

// common finds what trainers commonly print: name=value, name: value, "name is
// value" and "name value". Of a line that has a figure with a known name, every
// name=value counts.
func common(line string) []observation {
	if !strings.ContainsAny(line, "0123456789nN") {
		return nil
	}
	var found []observation
	step, known, before, beforeEnd := int64(-1), false, "", -1
	for at := 0; at < len(line) && len(found) < perLineMax; {
		if !nameStart(line[at]) || at > 0 && namePart(line[at-1]) {
			at++
			continue
		}
		end := at + 1
		for end < len(line) && namePart(line[end]) {
			end++
		}
		word := strings.TrimRight(line[at:end], ".-/@")
		lower := strings.ToLower(word)
		if at > 0 && beforeEnd == at-1 && line[at-1] == ' ' && roleOf(before+"_"+lower) != unknown && qualifies(before) {
			word, lower = before+"_"+lower, before+"_"+lower
		}
		before, beforeEnd = lower, end
		value, sign, next, ok := valueAfter(line, at+len(line[at:end]))
		at = end
		what := roleOf(lower)
		if !ok || what == unknown && sign != '=' || sign == ' ' && what == figure && !fractional(line[end:next]) {
			continue
		}
		at, beforeEnd = next, -1
		switch what {
		case counter:
			if value >= 0 && value < 1<<62 {
				step = int64(value)
			}
			continue
		case epoch:
			if within := stepWithin(line[next:], value); within >= 0 && step < 0 {
				step = within
			}
			word = lower
		case figure:
			known, word = true, lower
		}
		found = append(found, observation{Name: word, Value: value})
	}
	if !known {
		return nil
	}
	for i := range found {
		found[i].Step = step
	}
	return found
}

// qualifies reports whether a word is one name with the next, as in "val loss".
func qualifies(before string) bool {
	switch before {
	case "lm", "val", "valid", "validation", "train", "training", "test", "eval", "total", "avg", "mean", "global", "grad", "learning", "moe", "mtp":
		return true
	}
	return false
}

func nameStart(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func namePart(c byte) bool {
	return nameStart(c) || c >= '0' && c <= '9' || c == '.' || c == '/' || c == '-' || c == '@'
}

// valueAfter reads the sign and the number behind a name: '=', ':', 'i' for
// "is", or ' '. next is behind the number.
func valueAfter(line string, at int) (value float64, sign byte, next int, ok bool) {
	skip := func(chars string) {
		for at < len(line) && strings.IndexByte(chars, line[at]) >= 0 {
			at++
		}
	}
	begin := at
	skip("'\"")
	skip(" \t")
	sign = ' '
	switch {
	case at >= len(line):
		return 0, 0, at, false
	case line[at] == '=' || line[at] == ':':
		sign = line[at]
		at++
	case strings.HasPrefix(line[at:], "is "):
		sign, at = 'i', at+3
	case at == begin:
		return 0, 0, at, false
	}
	skip(" \t")
	skip("'\"[(")
	if rest, found := strings.CutPrefix(line[at:], "tensor("); found {
		at = len(line) - len(rest)
	}
	end := at
	for end < len(line) && strings.IndexByte("+-.0123456789eEnaNAifIF", line[end]) >= 0 {
		end++
	}
	text := strings.TrimRight(line[at:end], ".")
	if text == "" || end < len(line) && (namePart(line[end]) && line[end] != '/' && line[end] != '.') {
		return 0, 0, at, false
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || nameStart(text[0]) && !strings.EqualFold(text, "nan") && !strings.EqualFold(text, "inf") {
		return 0, 0, at, false
	}
	return value, sign, end, true
}

// fractional reports whether a number is written as measurements are: figures
// without a sign before them are not counts.
func fractional(text string) bool { return strings.ContainsAny(text, ".naN") }

// stepWithin reads the place in an epoch, as in "Epoch: 2 [640/60000 (1%)]", and
// returns the place in the training; -1 when there is none.
func stepWithin(rest string, epoch float64) int64 {
	rest, ok := strings.CutPrefix(strings.TrimLeft(rest, " "), "[")
	if !ok || epoch < 0 || epoch > 1<<30 {
		return -1
	}
	done, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return -1
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(strings.TrimSpace(done), 10, 32)
	of, errOf := strconv.ParseInt(rest[:end], 10, 32)
	if err != nil || errOf != nil || n < 0 {
		return -1
	}
	return max(int64(epoch)-1, 0)*of + n
}
