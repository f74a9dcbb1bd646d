package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
)

// listenFor is how long a stream is listened to for what it must not say.
const listenFor = 2 * time.Second

// elsewhere asks for another project's job in roundabout ways: through a node
// instead of a server, and by lists, searches and streams instead of its own id.
func (t *target) elsewhere(job, alloc string) {
	trust, err := auth.NewTrust("", t.ca)
	if err != nil {
		fmt.Println("BROKEN ", err)
		t.broken++
		return
	}
	through := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: auth.CLITLS(trust, time.Now), DisableKeepAlives: true}}
	node := net.JoinHostPort(hostOf(t.gossip[len(t.gossip)-1]), "4646")
	get := func(ctx context.Context, client *http.Client, host, path, token string) (int, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+path, nil)
		if err != nil {
			return 0, "", err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		data, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
		if ctx.Err() != nil {
			err = nil // a stream: what it said until then
		}
		return response.StatusCode, string(data), err
	}
	path := func(route api.Route) string {
		id := job
		if route.From == api.FromAllocation {
			id = alloc
		}
		return strings.NewReplacer("{id}", id, "{name}", id, "{device}", "0").Replace(route.Pattern)
	}
	t.line("6.4 every reading route on another project's job, through a node", "the administrator reads at least 5 of them there", func(ctx context.Context) error {
		seen := 0
		for _, route := range api.Routes() {
			if (route.From == api.FromJob || route.From == api.FromAllocation) && !route.Mutates() && route.Stream == api.StreamNone {
				if status, _, err := get(ctx, through, node, path(route), t.adminToken); err == nil && status == http.StatusOK {
					seen++
				}
			}
		}
		if seen < 5 {
			return fmt.Errorf("%d are read", seen)
		}
		return nil
	}, func(ctx context.Context) error {
		for _, route := range api.Routes() {
			if route.From != api.FromJob && route.From != api.FromAllocation || route.Mutates() {
				continue
			}
			for name, client := range map[string]*http.Client{"passed on": through, "at its own door": t.browser(nil)} {
				status, text, err := get(ctx, client, node, path(route), t.token)
				if err == nil && (status < 400 || strings.Contains(text, "theirs")) {
					return fmt.Errorf("%s, %s: status %d: %.80q", route.Name, name, status, text)
				}
			}
		}
		return nil
	})

	lists := func() (paths []string) {
		for _, route := range api.Routes() {
			if route.Mutates() || strings.Contains(route.Pattern, "{") || route.Stream == api.StreamWebsocket {
				continue
			}
			for _, query := range []string{"", "?project=*", "?project=victims", "?all=true", "?q=victim", "?follow=true&project=*", "?filter=victim"} {
				paths = append(paths, route.Pattern+query)
			}
		}
		return paths
	}
	tells := func(ctx context.Context, token string) (where []string, asked int, err error) {
		for _, path := range lists() {
			one, cancel := context.WithTimeout(ctx, listenFor)
			_, text, err := get(one, t.browser(nil), t.servers[0], path, token)
			cancel()
			asked++
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return nil, asked, fmt.Errorf("%s: %w", path, err)
			}
			if strings.Contains(text, job) || strings.Contains(text, alloc) {
				where = append(where, path)
			}
		}
		return where, asked, nil
	}
	t.line("6.3 another project's job in lists, searches and streams of everything", "the administrator finds it in at least 2 of them", func(ctx context.Context) error {
		where, asked, err := tells(ctx, t.adminToken)
		if err == nil && len(where) < 2 {
			err = fmt.Errorf("it is in %v, of %d", where, asked)
		}
		return err
	}, func(ctx context.Context) error {
		where, _, err := tells(ctx, t.token)
		if err == nil && len(where) > 0 {
			err = fmt.Errorf("it is in %v", where)
		}
		return err
	})
}
