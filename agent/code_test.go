package agent

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client"
	"nomadlike/nomadlike/codestore"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// codeOfTexts is a directory with a file for each text.
func codeOfTexts(texts ...string) (tree.Manifest, []api.CodePiece) {
	var manifest tree.Manifest
	var pieces []api.CodePiece
	for i, text := range texts {
		chunk := tree.Chunk{Digest: tree.DigestOf([]byte(text)), Size: int64(len(text))}
		pieces = append(pieces, api.CodePiece{Chunk: chunk, Data: []byte(text)})
		manifest.Entries = append(manifest.Entries, tree.Entry{Path: fmt.Sprintf("f%04d.py", i), Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{chunk}})
	}
	return manifest, pieces
}

// sendCode sends a directory as the command line would.
func sendCode(t testing.TB, client *api.Client, texts ...string) tree.Digest {
	t.Helper()
	manifest, pieces := codeOfTexts(texts...)
	known, missing, err := client.CodeMissing(t.Context(), manifest.Digest(), manifest.Chunks())
	if err != nil {
		t.Fatal(err)
	}
	if known {
		return manifest.Digest()
	}
	lacking := slices.DeleteFunc(pieces, func(piece api.CodePiece) bool { return !slices.Contains(missing, piece.Chunk.Digest) })
	if len(lacking) > 0 {
		if _, err := client.SendCodeChunks(t.Context(), lacking); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.CommitCode(t.Context(), manifest.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if made.Tree != string(manifest.Digest()) || made.Files != len(texts) || made.Bytes != manifest.Bytes() {
		t.Fatalf("made %+v", made)
	}
	return manifest.Digest()
}

// submitCode has a job run whose code was sent. It goes to the log as an admitted one.
func submitCode(t testing.TB, agent *Agent, name, project, user string, digest tree.Digest) string {
	t.Helper()
	return submitShared(t, agent, name, project, user, "read-only", digest)
}

func submitShared(t testing.TB, agent *Agent, name, project, user, access string, digest tree.Digest) string {
	t.Helper()
	job := &structs.Job{
		Name: name, Project: project, User: user, Access: access, Resources: []structs.Resources{{CPU: 0.01, Memory: 16 * structs.MiB}},
		Task: structs.Task{Driver: "exec", Command: "sleep 600"},
	}
	server.Complete(agent.store.Snapshot(), job)
	job.ID = fmt.Sprintf("%032x", time.Now().UnixNano())
	job.Workdir = &structs.Workdir{Source: ".", Tree: string(digest)}
	if _, _, err := agent.server.Submit(t.Context(), structs.CommandJobSubmit, user, &structs.JobSubmit{Job: job}); err != nil {
		t.Fatal(err)
	}
	return job.ID
}

func failureID(err error) string {
	if failure := new(structs.Error); errors.As(err, &failure) {
		return failure.ID
	}
	return fmt.Sprint(err)
}

// askedCode is what a server answers an agent that asks for code.
func askedCode(t testing.TB, from *Agent, of *Agent, ask structs.CodeAsk) (*codestore.Source, error) {
	t.Helper()
	k := &codeKeeper{pool: from.pool}
	source, err := k.source(t.Context(), server.Agent{ID: of.ID(), Addr: of.Addr(), Role: auth.RoleServer}, ask)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	_, err = source.Manifest()
	return source, err
}

// archived sends a directory as an archive: it becomes the tree that it is, without what
// its own rules leave out, and is there for jobs.
func archived(t testing.TB, client *api.Client) {
	t.Helper()
	var out bytes.Buffer
	write := tar.NewWriter(&out)
	for _, file := range [][2]string{{"train.py", "print(1)"}, {".gitignore", "*.pt\n"}, {"old.pt", "weights"}, {"__pycache__/train.pyc", "x"}} {
		if err := write.WriteHeader(&tar.Header{Name: file[0], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(file[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := write.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	made, err := client.SendCodeArchive(t.Context(), out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := tree.Manifest{Entries: []tree.Entry{
		{Path: ".gitignore", Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{{Digest: tree.DigestOf([]byte("*.pt\n")), Size: 5}}},
		{Path: "train.py", Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{{Digest: tree.DigestOf([]byte("print(1)")), Size: 8}}},
	}}
	if made.Tree != string(want.Digest()) || made.Files != 2 || made.Left != 2 || made.LeftOut[1] != (api.CodeLeftOut{Path: "old.pt", Rule: "*.pt", File: ".gitignore", Line: 1}) {
		t.Errorf("made %+v", made)
	}
	if known, _, err := client.CodeMissing(t.Context(), want.Digest(), nil); err != nil || !known {
		t.Errorf("known %v, %v", known, err)
	}
	if _, err := client.SendCodeArchive(t.Context(), out.Bytes()[:1000]); failureID(err) != "tree.archive_broken" {
		t.Errorf("half an archive: %v", err)
	}
}

// What was acknowledged is on more than half of the servers, then on all: on one that
// joined later, and on one whose disk changed bytes.
func TestServersKeepCode(t *testing.T) {
	c := startCluster(t, 3, 0)
	client := c.at(t, c.servers[1], c.token)
	digest := sendCode(t, client, "import torch", "print('epoch')", strings.Repeat("weights ", 100_000))
	archived(t, client)
	ref := structs.CodeRef{Project: structs.DefaultProject, Digest: string(digest)}
	have := 0
	for _, s := range c.servers {
		if s.code.disk.Has(ref) {
			have++
		}
	}
	if have < 2 {
		t.Errorf("acknowledged on %d of 3 servers", have)
	}
	everywhere := func(agents ...*Agent) func() bool {
		return func() bool {
			return !slices.ContainsFunc(agents, func(s *Agent) bool { return !s.code.disk.Has(ref) })
		}
	}
	eventually.Within(t, time.Minute, "all servers have it", everywhere(c.servers...))
	token, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "server"})
	if err != nil {
		t.Fatal(err)
	}
	later := startAgent(t, serverSettings(t.TempDir(), "server-3", 3, &token.Join), testOptions(t))
	eventually.Within(t, time.Minute, "a server that joined later has it", everywhere(later))

	// Unchanged code sends nothing; one other file sends one chunk, to another server.
	other := c.at(t, c.servers[2], c.token)
	manifest, _ := codeOfTexts("import torch", "print('another')", strings.Repeat("weights ", 100_000))
	if known, _, err := other.CodeMissing(t.Context(), digest, nil); err != nil || !known {
		t.Errorf("unchanged: %v, %v", known, err)
	}
	known, missing, err := other.CodeMissing(t.Context(), manifest.Digest(), manifest.Chunks())
	if err != nil || known || !slices.Equal(missing, []tree.Digest{manifest.Entries[1].Chunks[0].Digest}) {
		t.Errorf("changed: %v, %q, %v", known, missing, err)
	}

	// A disk that changes bytes is found out, and has them from another.
	submitCode(t, c.servers[0], "reads", structs.DefaultProject, "li", digest)
	weights := manifest.Entries[2].Chunks[0]
	path := filepath.Join(later.config.DataDir, codeDir, structs.DefaultProject, "chunks", strings.TrimPrefix(string(weights.Digest), "sha256:"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	reader := c.at(t, later, c.token)
	got, err := reader.CodeChunk(t.Context(), digest, weights)
	if err == nil && tree.DigestOf(got) == weights.Digest {
		t.Error("changed bytes were read as whole ones")
	}
	eventually.Within(t, time.Minute, "the chunk is whole again", func() bool {
		got, err := reader.CodeChunk(t.Context(), digest, weights)
		return err == nil && tree.DigestOf(got) == weights.Digest
	})
	if got, err := reader.CodeManifest(t.Context(), digest); err != nil || tree.DigestOf(got) != digest {
		t.Errorf("manifest: %d bytes, %v", len(got), err)
	}
}

// A server that is away holds nothing up, and has it when it is back. Chunks that went
// to several servers are gathered by the one that commits.
func TestCodeWhileAServerIsAway(t *testing.T) {
	c := startCluster(t, 3, 0)
	away := c.servers[2]
	if away.raft.IsLeader() {
		away = c.servers[1]
	}
	settings := away.configured
	stopAgent(t, away)
	var here []*Agent
	for _, s := range c.servers {
		if s != away {
			here = append(here, s)
		}
	}
	manifest, pieces := codeOfTexts("one", "two", "three")
	for i, piece := range pieces {
		if _, err := c.at(t, here[i%2], c.token).SendCodeChunks(t.Context(), []api.CodePiece{piece}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.at(t, here[0], c.token).CommitCode(t.Context(), manifest.Encode()); err != nil {
		t.Fatal(err)
	}
	ref := structs.CodeRef{Project: structs.DefaultProject, Digest: string(manifest.Digest())}
	for _, s := range here {
		if !s.code.disk.Has(ref) {
			t.Errorf("%s of two servers of three does not have it", s.config.Name)
		}
	}
	again, err := Start(t.Context(), settings, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopAgent(t, again) })
	eventually.Within(t, time.Minute, "the server that was away has it", func() bool { return again.code.disk.Has(ref) })
}

// A node gets the code of the allocations that it runs; that of another node, of one
// that is not there, of a job without code, and a tree by its name are refused alike.
func TestNodesGetTheirOwnCodeAlone(t *testing.T) {
	c := startCluster(t, 1, 2)
	digest := sendCode(t, c.api, "import torch", "print()")
	sendCode(t, c.api, "of nobody's job")
	id := submitCode(t, c.servers[0], "runs", structs.DefaultProject, "li", digest)
	eventually.Within(t, time.Minute, "the job is placed", func() bool {
		list, _, err := c.api.Allocations(t.Context(), id, api.AllocationFilter{}, nil)
		return err == nil && len(list.Allocations) > 0
	})
	alloc := allocOf(t, c.api, id)
	plain := runJob(t, c.api, sleeper("plain", structs.DefaultProject, "none"), structs.JobRunning)
	owner, other := c.clients[0], c.clients[1]
	if owner.ID() != alloc.NodeID {
		owner, other = other, owner
	}
	source, err := client.CodeOver(owner.pool)(t.Context(), c.servers[0].Addr(), alloc.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if _, err := source.Manifest(); err != nil || source.Digest() != digest {
		t.Fatalf("the node that runs it: %v", err)
	}
	manifest, _ := codeOfTexts("import torch", "print()")
	came := 0
	if err := source.Chunks(manifest.Chunks(), func(chunk tree.Chunk, data []byte) error {
		came++
		return nil
	}); err != nil || came != 2 {
		t.Errorf("%d chunks, %v", came, err)
	}
	foreign, _ := codeOfTexts("of nobody's job")
	if err := source.Chunks(foreign.Chunks(), func(tree.Chunk, []byte) error { return nil }); failureID(err) != "code.not_of_tree" {
		t.Errorf("a chunk of another tree: %v", err)
	}
	tail := allocOf(t, c.api, plain.Job.ID)
	ran := c.clients[0]
	if ran.ID() != tail.NodeID {
		ran = c.clients[1]
	}
	whole := structs.CodeRef{Project: structs.DefaultProject, Digest: string(digest)}
	for name, ask := range map[string]struct {
		from *Agent
		ask  structs.CodeAsk
	}{
		"another node's":   {other, structs.CodeAsk{AllocID: alloc.ID}},
		"nobody's":         {owner, structs.CodeAsk{AllocID: structs.AllocID(id, 7, 7, 7)}},
		"without code":     {ran, structs.CodeAsk{AllocID: tail.ID}},
		"a tree by name":   {owner, structs.CodeAsk{Tree: whole}},
		"a whole project":  {owner, structs.CodeAsk{Tree: structs.CodeRef{Project: structs.DefaultProject}}},
		"of both":          {other, structs.CodeAsk{AllocID: alloc.ID, Tree: whole}},
		"nothing at all":   {owner, structs.CodeAsk{}},
		"another's prefix": {other, structs.CodeAsk{AllocID: alloc.ID[:8]}},
	} {
		if _, err := askedCode(t, ask.from, c.servers[0], ask.ask); failureID(err) != "agent.code_not_yours" {
			t.Errorf("%s: %v", name, err)
		}
	}
	record, err := c.api.Audit(t.Context(), api.AuditQuery{Action: audit.ActionCodeUse})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, line := range record.Records {
		told[string(line.Outcome)+" "+line.Object.ID]++
	}
	if told["allowed "+string(digest)] == 0 || told["refused "] < 8 {
		t.Errorf("recorded: %v", told)
	}
	if _, err := c.api.StopJob(t.Context(), id, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "what has ended is refused", func() bool {
		_, err := askedCode(t, owner, c.servers[0], structs.CodeAsk{AllocID: alloc.ID})
		return structs.CodeOf(err) == structs.CodeForbidden
	})
}

// What a hostile sender tries.
func TestHostileCode(t *testing.T) {
	w := newWorld(t)
	ann, eve := w.admin.WithToken(w.tokens["user"]), w.admin.WithToken(w.tokens["stranger"])
	digest := sendCode(t, ann, "a's secret algorithm")
	submitCode(t, w.agent, "annes", "one", "ann", digest)
	manifest, pieces := codeOfTexts("a's secret algorithm")

	// A member of project two names the digests of project one's code.
	known, missing, err := eve.CodeMissing(t.Context(), digest, manifest.Chunks())
	if err != nil || known || len(missing) != 1 {
		t.Errorf("eve asks: %v, %q, %v", known, missing, err)
	}
	if _, err := eve.CommitCode(t.Context(), manifest.Encode()); failureID(err) != "code.incomplete" {
		t.Errorf("eve commits: %v", err)
	}
	for name, asks := range map[string]*api.Client{"in her project": eve, "in his": eve.In("one")} {
		if _, err := asks.CodeManifest(t.Context(), digest); structs.CodeOf(err) != structs.CodeNotFound && structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("eve reads the manifest %s: %v", name, err)
		}
		if _, err := asks.CodeChunk(t.Context(), digest, pieces[0].Chunk); structs.CodeOf(err) != structs.CodeNotFound && structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("eve reads a chunk %s: %v", name, err)
		}
	}
	if _, err := eve.In("one").CommitCode(t.Context(), manifest.Encode()); structs.CodeOf(err) != structs.CodeForbidden && structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("eve sends to project one: %v", err)
	}
	if _, err := w.admin.WithToken(w.tokens["viewer"]).CommitCode(t.Context(), manifest.Encode()); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a viewer sends: %v", err)
	}
	eve2 := structs.CodeRef{Project: "two", Digest: string(digest)}
	if w.agent.store.Snapshot().Code(eve2) != nil || w.agent.code.disk.Has(eve2) {
		t.Error("project two has project one's code")
	}

	// Bodies that are not what they say.
	_, three := codeOfTexts("x1", "x2", "x3")
	three[1].Data = []byte("xx")
	if _, err := eve.SendCodeChunks(t.Context(), three); failureID(err) != "code.wrong_digest" {
		t.Errorf("a wrong digest in the middle: %v", err)
	}
	good, err := api.EncodeCodeChunks(pieces)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(path string, body []byte) string {
		t.Helper()
		request := httptest.NewRequest(http.MethodPost, "https://127.0.0.1"+path, bytes.NewReader(body))
		request.RemoteAddr = "192.0.2.7:1234"
		request.Header.Set("Authorization", "Bearer "+w.tokens["stranger"])
		answer := w.answer(t, request)
		return fmt.Sprint(answer.Code, " ", answer.Body.String())
	}
	huge := append(bytes.Repeat([]byte{1}, 32), 0xff, 0xff, 0xff, 0xff)
	for name, test := range map[string]struct {
		path, want string
		body       []byte
	}{
		"cut off in a head":   {"/v1/code/chunks", "code.body_broken", good[:20]},
		"cut off in a chunk":  {"/v1/code/chunks", "code.body_broken", good[:len(good)-1]},
		"a chunk of 4 GiB":    {"/v1/code/chunks", "code.body_too_large", huge},
		"an empty chunk":      {"/v1/code/chunks", "code.wrong_digest", make([]byte, 36)},
		"too many":            {"/v1/code/chunks", "code.body_too_large", make([]byte, 36*(api.CodeChunksMax+1))},
		"no manifest":         {"/v1/code", "tree.manifest_unreadable", []byte("{}")},
		"a manifest and more": {"/v1/code", "tree.", append(manifest.Encode(), 0)},
		"too long a manifest": {"/v1/code", "tree.manifest_too_large", make([]byte, tree.ManifestSizeMax+2)},
		"leads out": {"/v1/code", "tree.", tree.Manifest{Entries: []tree.Entry{
			{Path: "../../etc/cron.d/x", Kind: tree.KindFile, Mode: 0o644},
		}}.Encode()},
		"a link out": {"/v1/code", "tree.", tree.Manifest{Entries: []tree.Entry{{Path: "x", Kind: tree.KindLink, Target: "/etc/shadow"}}}.Encode()},
		"over the bound": {"/v1/code", "code.too_large", func() []byte {
			var m tree.Manifest // a bomb: the same chunk again and again
			for i := range 65 {
				m.Entries = append(m.Entries, tree.Entry{Path: fmt.Sprintf("f%03d", i), Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{{Digest: digest, Size: tree.ChunkSizeMax}}})
			}
			return m.Encode()
		}()},
	} {
		if got := raw(test.path, test.body); !strings.Contains(got, test.want) {
			t.Errorf("%s: %.300s, want %s", name, got, test.want)
		}
	}
	if projects, err := w.agent.code.disk.Projects(); err != nil || slices.Contains(projects, "two") {
		t.Errorf("what was refused is on the disk: %v, %v", projects, err)
	}

	// A job cannot name what its project does not have, nor what was not sent.
	for source, want := range map[string]string{string(digest): "server.code_unknown", ".": "agent.code_unsent"} {
		job := &structs.Job{
			Name: "names", Project: "two", Resources: []structs.Resources{{CPU: 0.01, Memory: 16 * structs.MiB}}, Task: structs.Task{Driver: "exec", Command: "true"},
			Workdir: &structs.Workdir{Source: source},
		}
		if structs.IsTreeDigest(source) {
			job.Workdir.Tree = source
		}
		_, err := eve.SubmitJob(t.Context(), api.JobRequest{Job: job}, "")
		if failure := new(structs.Error); !errors.As(err, &failure) || !slices.ContainsFunc(failure.Details, func(d structs.Error) bool { return d.ID == want }) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// Two who send the same directory at once both have it, and the disk has it once.
func TestTheSameCodeIsSentTwiceAtOnce(t *testing.T) {
	_, client := devAgent(t)
	var texts []string
	for i := range 200 {
		texts = append(texts, fmt.Sprintf("file %d", i))
	}
	var sending sync.WaitGroup
	for range 6 { // more than are taken at once
		sending.Go(func() { sendCode(t, client, texts...) })
	}
	sending.Wait()
}

// Code that no job names goes after its grace, from the log and from the disk.
func TestCodeIsCollected(t *testing.T) {
	agent, client := devAgent(t)
	used, unused := sendCode(t, client, "used", "shared"), sendCode(t, client, "unused", "shared")
	submitCode(t, agent, "runs", structs.DefaultProject, "li", used)
	forget := func(refs ...structs.CodeRef) {
		t.Helper()
		if _, _, err := agent.server.Submit(t.Context(), structs.CommandCodeForget, "", &structs.CodeForget{Trees: refs}); err != nil {
			t.Fatal(err)
		}
	}
	of := func(digest tree.Digest) structs.CodeRef {
		return structs.CodeRef{Project: structs.DefaultProject, Digest: string(digest)}
	}
	forget(of(used), of(unused))
	if now := agent.store.Snapshot(); now.Code(of(used)) == nil || now.Code(of(unused)) == nil {
		t.Fatal("what was sent a moment ago is forgotten")
	}
	// As if the record were gone: a project that goes takes its records with it.
	if _, err := client.PutProject(t.Context(), &structs.Project{Name: "brief"}); err != nil {
		t.Fatal(err)
	}
	brief := structs.CodeRef{Project: "brief", Digest: string(sendCode(t, client.In("brief"), "brief"))}
	if _, err := client.DeleteProject(t.Context(), "brief"); err != nil {
		t.Fatal(err)
	}
	agent.code.sweep(context.Background(), structs.CodeGrace.Std())
	if !agent.code.disk.Has(brief) {
		t.Error("what was sent a moment ago is swept")
	}
	agent.code.sweep(context.Background(), -time.Hour) // as if all were old
	if agent.code.disk.Has(brief) || !agent.code.disk.Has(of(used)) || !agent.code.disk.Has(of(unused)) {
		t.Errorf("swept: brief %v, used %v, unused %v", agent.code.disk.Has(brief), agent.code.disk.Has(of(used)), agent.code.disk.Has(of(unused)))
	}
	reader, err := client.CodeManifest(t.Context(), used)
	if err != nil || tree.DigestOf(reader) != used {
		t.Errorf("what a job names: %v", err)
	}
}

// TestCodeIsBoundByItsProject: what a project takes is told before anything is sent, and
// holds when it is committed.
func TestCodeIsBoundByItsProject(t *testing.T) {
	_, client := devAgent(t)
	told := func(client *api.Client, want int64) {
		t.Helper()
		if most, err := client.CodeMost(t.Context()); err != nil || most != want {
			t.Errorf("at most %d, %v; want %d", most, err, want)
		}
	}
	told(client, structs.CodeMaxDefault)
	project := &structs.Project{Name: "small", CodeMax: structs.CodeMaxLeast}
	if _, err := client.PutProject(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	small := client.In("small")
	told(small, structs.CodeMaxLeast)
	manifest, pieces := codeOfTexts(strings.Repeat("a", structs.CodeMaxLeast), "b")
	if _, err := small.SendCodeChunks(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	if _, err := small.CommitCode(t.Context(), manifest.Encode()); failureID(err) != "code.too_large" {
		t.Errorf("too much: %v", err)
	}
	project.CodeMax = structs.CodeMaxLeast + 1
	if _, err := client.PutProject(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if _, err := small.CommitCode(t.Context(), manifest.Encode()); err != nil {
		t.Errorf("as much as is taken: %v", err)
	}
	for _, max := range []int64{1, -1, structs.CodeMaxMost + 1} {
		if _, err := client.PutProject(t.Context(), &structs.Project{Name: "small", CodeMax: max}); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%d bytes: %v", max, err)
		}
	}
}

// TestAProjectOfTheSameNameHasNothing: who gets the name of a deleted project has its
// code neither by a digest nor by a manifest, on any server; and keeps their own.
func TestAProjectOfTheSameNameHasNothing(t *testing.T) {
	c := startCluster(t, 3, 0)
	admin := c.at(t, c.servers[0], c.token)
	create := func() {
		t.Helper()
		if _, err := admin.PutProject(t.Context(), &structs.Project{Name: "heir"}); err != nil {
			t.Fatal(err)
		}
	}
	create()
	manifest, pieces := codeOfTexts("secret weights", "print(1)")
	digest := sendCode(t, admin.In("heir"), "secret weights", "print(1)")
	if _, err := admin.DeleteProject(t.Context(), "heir"); err != nil {
		t.Fatal(err)
	}
	create()
	for i, s := range c.servers {
		client := c.at(t, s, c.token).In("heir")
		known, missing, err := client.CodeMissing(t.Context(), digest, manifest.Chunks())
		if err != nil || known || len(missing) != len(manifest.Chunks()) {
			t.Errorf("server %d: known %t, missing %v, %v", i, known, missing, err)
		}
		if _, err := client.CommitCode(t.Context(), manifest.Encode()); failureID(err) != "code.incomplete" {
			t.Errorf("server %d committed what nobody sent: %v", i, err)
		}
	}
	client := c.at(t, c.servers[1], c.token).In("heir")
	if _, err := client.SendCodeChunks(t.Context(), pieces); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CommitCode(t.Context(), manifest.Encode()); err != nil {
		t.Fatal(err)
	}
	ref := structs.CodeRef{Project: "heir", Digest: string(digest)}
	eventually.Within(t, time.Minute, "all servers have it", func() bool {
		return !slices.ContainsFunc(c.servers, func(s *Agent) bool { return !s.code.Known(ref) })
	})
	submitCode(t, c.servers[0], "runs", "heir", "li", digest)
	for i, s := range c.servers {
		s.code.sweep(t.Context(), -time.Hour) // as if all were old
		if s.code.disk.Has(ref) || !s.code.Known(ref) {
			t.Errorf("server %d: before %t, now %t", i, s.code.disk.Has(ref), s.code.Known(ref))
		}
		if known, _, err := c.at(t, s, c.token).In("heir").CodeMissing(t.Context(), digest, nil); err != nil || !known {
			t.Errorf("server %d does not know it: %v", i, err)
		}
		data, err := c.at(t, s, c.token).In("heir").CodeManifest(t.Context(), digest)
		if err != nil || tree.DigestOf(data) != digest {
			t.Errorf("server %d: %v", i, err)
		}
	}
}
