package httpapi

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Bounds of asking nodes about images.
const (
	imagesPatience = 5 * time.Second // with all nodes of one request together
	imagesAsked    = 64              // nodes at one time
	imagesJobAsked = 32              // nodes that a submission asks
	labelsPatience = time.Second     // that a submission waits for them at most
	imageActWait   = 90 * time.Second
	imageWorkEvery = 500 * time.Millisecond
)

// imageHandlers answers about images, and has nodes move them.
type imageHandlers struct {
	*core
	calls *nodeCalls
	open  OpenImageSecret
}

// OpenImageSecret opens a secret that is to sign a node in to a registry, and records
// that the node got it.
type OpenImageSecret func(nodeID, image string, ref structs.SecretRef) ([]byte, error)

// holding is what a node answered.
type holding struct {
	node   *structs.Node
	images []structs.NodeImage
}

// list answers images.list.
func (h *imageHandlers) list(r *front.Request) (*api.ImageList, error) {
	q := front.Query{R: r}
	filter := api.ImageFilter{Image: q.Text("image"), Node: q.Text("node"), Pool: q.Text("pool")}
	if q.Err != nil {
		return nil, q.Err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	name, ok := structs.ParseImageName(filter.Image)
	if filter.Image != "" && !ok {
		return nil, structs.NewError(structs.CodeInvalid, "job.image_name", "image", filter.Image)
	}
	snapshot := h.store.Snapshot()
	var nodes []*structs.Node
	for node := range snapshot.Nodes() {
		fits := (filter.Node == "" || node.ID == filter.Node || node.Name == filter.Node) && (filter.Pool == "" || node.PoolName() == filter.Pool)
		if fits && node.HasDriver(structs.DriverDocker) && node.Speaks() >= wire.ProtocolImages && node.Status != structs.NodeLost && node.Status != structs.NodeLeft {
			nodes = append(nodes, node)
		}
	}
	ask := structs.ImagesAsk{}
	if ok {
		ask.Name = name.Completed().String()
	}
	holdings, away := h.askNodes(r.Context(), nodes, ask, nil)
	for i := range holdings {
		holdings[i].images = shownImages(r, holdings[i].images)
	}
	out := &api.ImageList{Asked: len(nodes), Away: []string{}}
	for _, node := range away {
		out.Away = append(out.Away, node.Name)
	}
	slices.Sort(out.Away)
	declared := slices.Collect(snapshot.ImageRecords())
	if filter.Node != "" || filter.Pool != "" {
		declared = nil // what none of these nodes has is not asked for
	}
	out.Images = catalogueOf(holdings, declared, snapshot.ImageRecordFor, ask.Name)
	if out.Left = max(0, len(out.Images)-api.ImagesMax); out.Left > 0 {
		out.Images = out.Images[:api.ImagesMax]
	}
	return out, nil
}

// askNodes asks nodes for images, several at a time; those that did not answer are away.
// Where an answer is enough the others are not waited for; nil: none is.
func (h *imageHandlers) askNodes(ctx context.Context, nodes []*structs.Node, ask structs.ImagesAsk, enough func(*holding) bool) (holdings []holding, away []*structs.Node) {
	ctx, cancel := context.WithTimeout(ctx, imagesPatience)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	places := make(chan struct{}, imagesAsked)
	for _, node := range nodes {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			answer, err := askNode[structs.ImagesAsk, structs.NodeImages](ctx, h.calls, node, structs.MethodNodeImages, &ask)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				h.log.Debug("ask node for images", logkey.NodeID, node.ID, logkey.Error, err)
				away = append(away, node)
				return
			}
			held := holding{node: node, images: answer.Images}
			holdings = append(holdings, held)
			if enough != nil && enough(&held) {
				cancel()
			}
		})
	}
	asking.Wait()
	slices.SortFunc(holdings, func(a, b holding) int {
		return cmp.Or(structs.CompareNames(a.node.Name, b.node.Name), cmp.Compare(a.node.ID, b.node.ID))
	})
	return holdings, away
}

// shownImages is what the caller may see of a node's images: no names of other projects,
// and nothing of those that came with the credentials of a job unless the caller has the
// node do things.
func shownImages(r *front.Request, images []structs.NodeImage) []structs.NodeImage {
	wide := auth.Allowed(r.Caller.Principal, auth.VerbDrain, auth.Object{Kind: auth.ObjectNode}).Allow
	var shown []structs.NodeImage
	for _, image := range images {
		image.Names = slices.DeleteFunc(image.Names, func(name string) bool { return !seesImage(r, name) })
		if wide || len(image.Names) > 0 && !image.Private {
			shown = append(shown, image)
		}
	}
	return shown
}

// seesImage reports whether the caller may know of a name: those of containers that were
// saved are their projects'.
func seesImage(r *front.Request, text string) bool {
	name, ok := structs.ParseImageName(text)
	if !ok {
		return true
	}
	project := name.Project()
	return project == "" || auth.Allowed(r.Caller.Principal, auth.VerbRead, auth.Object{Kind: auth.ObjectProject, ID: project, Project: project}).Allow
}

// catalogueOf joins what nodes hold with what is declared, by name; only one name where
// that is asked for, and then with the nodes. Pure.
func catalogueOf(holdings []holding, declared []*structs.ImageRecord, recordFor func(string) *structs.ImageRecord, only string) []api.ImageEntry {
	found := make(map[string]*api.ImageEntry)
	traits := make(map[string]structs.ImageTraits) // by content
	for _, held := range holdings {
		for _, image := range held.images {
			for _, name := range image.Names {
				if only != "" && name != only {
					continue
				}
				entry := found[name]
				if entry == nil {
					entry = &api.ImageEntry{Name: name}
					found[name] = entry
				}
				traits[image.ID] = image.ImageTraits
				entry.Nodes = append(entry.Nodes, api.ImageOnNode{
					NodeID: held.node.ID, Node: held.node.Name, Pool: held.node.PoolName(), ID: image.ID, Digest: digestUnder(name, image.Digests),
					Bytes: image.Bytes, InUse: image.InUse, UsedAt: image.UsedAt,
				})
			}
		}
	}
	for _, record := range declared {
		if only == "" && found[record.Name] == nil {
			found[record.Name] = &api.ImageEntry{Name: record.Name}
		}
	}
	if only != "" && found[only] == nil && recordFor(only) != nil {
		found[only] = &api.ImageEntry{Name: only}
	}
	list := make([]api.ImageEntry, 0, len(found))
	for name, entry := range found {
		sumUp(entry)
		said := traits[entry.ID]
		if record := recordFor(name); record != nil {
			entry.ImageTraits, entry.From, entry.SetBy, entry.SetAt = record.ImageTraits, api.ImageDeclared, record.SetBy, record.SetAt
		} else if entry.ImageTraits = said; said.Says() || said.Description != "" {
			entry.From = api.ImageLabels
		}
		if only == "" {
			entry.Nodes = nil
		}
		list = append(list, *entry)
	}
	slices.SortFunc(list, func(a, b api.ImageEntry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// sumUp says of an image what most of its nodes have.
func sumUp(entry *api.ImageEntry) {
	nodes := make(map[string]int)
	for _, on := range entry.Nodes {
		nodes[on.ID]++
		entry.InUse = entry.InUse || on.InUse
	}
	most := 0
	for _, on := range entry.Nodes {
		if nodes[on.ID] > most {
			most = nodes[on.ID]
			entry.ID, entry.Digest, entry.Bytes = on.ID, on.Digest, on.Bytes
		}
	}
	entry.Count, entry.Variants = len(entry.Nodes), len(nodes)
}

// digestUnder finds under which digest the registry of a name has an image.
func digestUnder(name string, digests []string) string {
	wanted, _ := structs.ParseImageName(name)
	for _, text := range digests {
		if known, ok := structs.ParseImageName(text); ok && known.Repository == wanted.Repository {
			return known.Digest
		}
	}
	return ""
}

// put answers images.put.
func (h *imageHandlers) put(r *front.Request, body *api.ImageRequest) (*api.Changed, error) {
	name, ok := structs.ParseImageName(body.Name)
	if !ok {
		return nil, structs.NewError(structs.CodeInvalid, "job.image_name", "image", body.Name)
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	next := structs.ImageRecord{Name: name.String()}
	if known := h.store.Snapshot().ImageRecord(next.Name); known != nil {
		next.ImageTraits = known.ImageTraits
	}
	if body.Scope != nil {
		next.Scope = body.Scope
	}
	if body.Devices != nil {
		next.Devices = body.Devices
	}
	if body.Driver != nil {
		next.Driver = *body.Driver
	}
	if body.Description != nil {
		next.Description = *body.Description
	}
	if err := invalid("agent.image_invalid", next.Validate()); err != nil {
		return nil, err
	}
	r.Made(next.Name)
	return h.change(r, structs.CommandImagePut, structs.ImagePut{Image: next})
}

// forget answers images.delete.
func (h *imageHandlers) forget(r *front.Request) (*api.Changed, error) {
	q := front.Query{R: r}
	name, ok := structs.ParseImageName(q.Text("image"))
	switch {
	case q.Err != nil:
		return nil, q.Err
	case !ok:
		return nil, structs.NewError(structs.CodeInvalid, "job.image_name", "image", q.Text("image"))
	}
	r.Made(name.String())
	return h.change(r, structs.CommandImagePut, structs.ImagePut{Image: structs.ImageRecord{Name: name.String()}, Forget: true})
}

// ofNode answers nodes.images.
func (h *imageHandlers) ofNode(r *front.Request, node *structs.Node) (*structs.NodeImages, error) {
	q := front.Query{R: r}
	work := q.Bool("work")
	if q.Err != nil {
		return nil, q.Err
	}
	if err := movesImages(node); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), imagesPatience)
	defer cancel()
	out, err := h.ask(ctx, node, structs.ImagesAsk{Work: work})
	if err != nil {
		return nil, err
	}
	out.Images = shownImages(r, out.Images)
	out.Work = slices.DeleteFunc(out.Work, func(w structs.ImageWork) bool { return !seesImage(r, w.Image) || !seesImage(r, w.To) })
	for i := range out.Work {
		out.Work[i] = rendered(r, out.Work[i])
	}
	return out, nil
}

// rendered has the failure of a work in the caller's language.
func rendered(r *front.Request, work structs.ImageWork) structs.ImageWork {
	if work.Err != nil {
		work.Err = front.Render(work.Err, front.AcceptedLanguage(r.Header.Get("Accept-Language")))
	}
	return work
}

// movesImages refuses a node that cannot be asked.
func movesImages(node *structs.Node) error {
	switch {
	case node.RPCAddr == "" || node.Status == structs.NodeLost || node.Status == structs.NodeLeft:
		return structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", node.Name)
	case !node.HasDriver(structs.DriverDocker):
		return structs.NewError(structs.CodeConflict, "agent.images_none", "node", node.Name)
	case node.Speaks() < wire.ProtocolImages:
		return structs.NewError(structs.CodeNotAvailable, "agent.images_old", "node", node.Name)
	}
	return nil
}

func (h *imageHandlers) ask(ctx context.Context, node *structs.Node, ask structs.ImagesAsk) (*structs.NodeImages, error) {
	return askNode[structs.ImagesAsk, structs.NodeImages](ctx, h.calls, node, structs.MethodNodeImages, &ask)
}

// act answers nodes.image. The log learns first who asked for what, so that nothing is
// done unseen; then the node does it.
func (h *imageHandlers) act(r *front.Request, node *structs.Node, body *api.ImageActRequest) (*api.ImageActed, error) {
	needs := body.Act == structs.ImagePush || body.Act == structs.ImageTag
	switch {
	case !slices.Contains([]structs.ImageAct{structs.ImagePull, structs.ImagePush, structs.ImageTag, structs.ImageRemove}, body.Act):
		return nil, structs.NewError(structs.CodeInvalid, "client.image_act", "act", body.Act)
	case !plausibleImage(body.Image):
		return nil, structs.NewError(structs.CodeInvalid, "job.image_name", "image", body.Image)
	case needs && !plausibleImage(body.To), !needs && body.To != "":
		return nil, structs.NewError(structs.CodeInvalid, "job.image_name", "image", body.To)
	}
	if err := movesImages(node); err != nil {
		return nil, err
	}
	order := structs.ImageOrder{Act: body.Act, Image: body.Image, To: body.To, By: r.Caller.Principal.ID, Own: true}
	if body.Secret != "" {
		login, err := h.login(r, node, body.Image, r.Caller.Standing.Project, body.Secret, body.Mine)
		if err != nil {
			return nil, err
		}
		defer clear(login)
		order.Login = login
	}
	index, err := h.propose(r, structs.CommandImageTold, structs.ImageTold{Act: body.Act, NodeID: node.ID, Image: body.Image, To: body.To})
	if err != nil {
		return nil, err
	}
	r.Made(body.Image)
	work, err := h.order(r.Context(), node, &order)
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	return &api.ImageActed{Index: index, Work: rendered(r, *work)}, nil
}

// plausibleImage reports whether a text may be the name or the id of an image.
func plausibleImage(text string) bool {
	_, named := structs.ParseImageName(text)
	digest, id := strings.CutPrefix(text, "sha256:")
	return named || id && digest != "" && len(digest) <= 64 && strings.Trim(digest, "0123456789abcdef") == ""
}

func (h *imageHandlers) order(ctx context.Context, node *structs.Node, order *structs.ImageOrder) (*structs.ImageWork, error) {
	conn, err := h.calls.of(node)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, imageActWait)
	defer cancel()
	return rpc.Call[structs.ImageOrder, structs.ImageWork](ctx, conn, structs.MethodNodeImage, order)
}

// await asks a node until it has done what it has begun.
func (h *imageHandlers) await(ctx context.Context, node *structs.Node, begun *structs.ImageWork) (*structs.ImageWork, error) {
	timer := time.NewTicker(imageWorkEvery)
	defer timer.Stop()
	for work := begun; ; {
		switch {
		case work.Err != nil:
			return nil, work.Err
		case work.EndedAt != 0:
			return work, nil
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		known, err := h.ask(ctx, node, structs.ImagesAsk{Work: true})
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(known.Work, func(w structs.ImageWork) bool {
			return w.Act == begun.Act && w.Image == begun.Image && w.To == begun.To && w.StartedAt == begun.StartedAt
		})
		if at < 0 {
			return nil, structs.NewError(structs.CodeUnavailable, "agent.image_lost", "node", node.Name)
		}
		work = &known.Work[at]
	}
}

// login opens a secret of a project, or of the caller's own, for a node that is to sign
// in with it. The caller must be one whose jobs could name it.
func (h *imageHandlers) login(r *front.Request, node *structs.Node, image, project, name string, mine bool) ([]byte, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	ref := structs.SecretRef{Project: project, Name: name}
	if mine {
		ref = structs.SecretRef{User: r.Caller.Principal.ID, Name: name}
	}
	known := h.store.Snapshot().Secret(ref)
	object := auth.Object{Kind: auth.ObjectSecret, ID: name, Project: project, Owner: r.Caller.Principal.ID, Access: auth.AccessReadOnly}
	if known != nil && !mine {
		object.Owner = known.CreatedBy
	}
	if err := r.May(auth.VerbRead, object); err != nil {
		return nil, err
	}
	if known == nil {
		return nil, auth.NotFound(auth.ObjectSecret, name)
	}
	return h.open(node.ID, image, ref)
}

// labelProblems is what the labels of an undeclared image say against a job. A node that
// has the image and nothing against the job is enough to let it in, and so is that
// nobody has it.
func (h *submissionHandlers) labelProblems(ctx context.Context, snapshot *state.Snapshot, job *structs.Job) []structs.Problem {
	name, ok := structs.ParseImageName(job.Task.Image)
	if !ok || job.Task.Driver != structs.DriverDocker || snapshot.ImageRecordFor(job.Task.Image) != nil {
		return nil
	}
	var nodes []*structs.Node
	for node := range snapshot.Nodes() {
		if node.Status == structs.NodeReady && node.RPCAddr != "" && node.Speaks() >= wire.ProtocolImages && feasible.NodeProblem(job, node) == nil {
			nodes = append(nodes, node)
		}
		if len(nodes) == imagesJobAsked {
			break
		}
	}
	ctx, cancel := context.WithTimeout(ctx, labelsPatience)
	defer cancel()
	asker := imageHandlers{core: h.core, calls: h.calls}
	holdings, _ := asker.askNodes(ctx, nodes, structs.ImagesAsk{Name: name.Completed().String()}, func(held *holding) bool {
		return slices.ContainsFunc(held.images, func(image structs.NodeImage) bool { return !image.Private && len(image.Admit(job, "")) == 0 })
	})
	return problemsOf(holdings, job)
}

// problemsOf is what all nodes that have an image say against a job, in the words of one
// of them. What came with the credentials of a job says nothing: whoever names it must
// not learn that it is there. Pure.
func problemsOf(holdings []holding, job *structs.Job) (problems []structs.Problem) {
	for _, held := range holdings {
		for _, image := range held.images {
			if image.Private {
				continue
			}
			if problems = image.Admit(job, ""); len(problems) == 0 {
				return nil
			}
			for i := range problems {
				problems[i].Params["node"] = held.node.Name
			}
		}
	}
	return problems
}
