package workspace

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Place is something that a task finds in its workspace.
type Place struct {
	Kind     string
	Name     string // as the job has it, for messages
	Storage  string
	TaskPath string // absolute, where a task with a view of its own sees it
	// Root is the directory that the administrator has given, all placeholders
	// filled in except for what the job itself names below it: no link in Path
	// may lead out of it.
	Root string
	Path string // Root, or a path below it
	// Given is the part of Root without placeholders: it is there, or the
	// storage is not.
	Given    string
	ReadOnly bool
	Make     bool   // made when it is missing, for the task's user
	Own      bool   // lies in a directory of the user's or the project's own
	Prepare  bool   // copied to fast storage of the node first
	DataName string // of what is prepared, by structs.CopyName
	// Remote says that Path is below a server, in the storage's own words, and
	// that a copy of it takes its place. Root and Given mean nothing then.
	Remote bool
	Single bool   // one file of the server, which lies in TaskPath
	SHA256 string // of that, if the job tells it
	Part   string // the directory of the copy that is shown; "" is all of it
	// Version is what is prepared, where it is a version of named data with a digest.
	Version *structs.DataPlace

	below   string // what stands for {name}; "" is Name
	project string // what stands for {project}; "" is the job's
	user    string // what stands for {user}; "" is the job's
}

// Plan lists what a subjob of a job finds, in the order of the job file. Errors
// are *structs.Error: the node has no such storage, which another may have, or
// the job's user or project cannot be part of a path.
func Plan(storages []Storage, job *structs.Job, subjob int) ([]Place, error) {
	p := planner{storages: storages, job: job}
	for _, ref := range job.Algorithms {
		p.data(structs.StorageAlgorithm, ref, Dir+"/algorithm")
	}
	for _, ref := range job.Datasets {
		p.data(structs.StorageDataset, ref, Dir+"/dataset/"+collected(ref))
		if ref.Annotations && p.err == nil {
			p.annotations(ref.Name)
		}
	}
	for _, ref := range job.Models {
		ref.ReadOnly = true
		p.data(structs.StorageModel, ref, Dir+"/model/"+collected(ref))
	}
	for _, ref := range job.Volumes {
		p.data(structs.StorageVolume, ref, Dir+"/volume/"+ref.Name)
	}
	for _, mount := range job.Mounts {
		if mount.Storage != "" {
			p.add(Place{Kind: structs.StorageMount, Name: mount.Source, Storage: mount.Storage, TaskPath: path.Clean(mount.Target), ReadOnly: mount.ReadOnly}, 0, structs.FromPrivate)
		}
	}
	if job.Output != "" {
		p.add(Place{Kind: structs.StorageOutput, Name: job.OutputOf(subjob), Storage: job.OutputStorage, TaskPath: Dir + "/outputs", Make: true}, 0, structs.FromPrivate)
	}
	return p.places, p.err
}

// collected is the part of a place that tells the collection, the name and the
// version: private/cifar10, favorite/cifar10/3.
func collected(ref structs.DataRef) string {
	from := ref.From
	if from == "" {
		from = structs.FromPrivate
	}
	if from == structs.FromFavorite {
		return path.Join(from, ref.Name, strconv.Itoa(ref.Version))
	}
	return path.Join(from, ref.Name)
}

type planner struct {
	storages []Storage
	job      *structs.Job
	places   []Place
	err      error
}

func (p *planner) data(kind string, ref structs.DataRef, taskPath string) {
	from := ref.From
	if from == "" {
		from = structs.FromPrivate
	}
	version, source, project, user := ref.Version, ref.Source, "", ""
	var named *structs.DataPlace
	if pick := ref.Object; pick != nil { // it lies where its own project and owner have it
		from, source, project, user = structs.FromPrivate, pick.Source, pick.Project, pick.Owner
		if source != "" {
			version = 0 // a directory that was there before it had a number
		} else if pick.Digest != "" {
			named = &structs.DataPlace{Project: pick.Project, Owner: pick.Owner, Kind: kind, Name: ref.Name, Storage: ref.Storage, Version: ref.Version, Digest: pick.Digest}
		}
	}
	p.add(Place{
		Kind: kind, Name: ref.Name, Storage: ref.Storage, TaskPath: taskPath,
		ReadOnly: ref.ReadOnly, Make: kind == structs.StorageVolume && !ref.ReadOnly, Prepare: ref.Prepare,
		DataName: p.job.DataName(kind, &ref), SHA256: ref.SHA256, Single: ref.Source != "" && !strings.HasSuffix(ref.Source, "/"),
		below: strings.TrimSuffix(source, "/"), project: project, user: user, Version: named,
	}, version, from)
}

// annotations shows the annotation files of the dataset that was planned last.
func (p *planner) annotations(name string) {
	place := p.places[len(p.places)-1]
	place.TaskPath = path.Join(Dir, "anno_dataset", name, "annotation")
	if place.Remote {
		place.Part = "annotation"
	} else {
		place.Path, place.Prepare = path.Join(place.Path, "annotation"), false // it lies in what is prepared
	}
	p.places = append(p.places, place)
}

// add completes a place by its storage.
func (p *planner) add(place Place, version int, from string) {
	if p.err != nil {
		return
	}
	storage := p.storage(place.Storage, place.Kind)
	if storage == nil {
		p.err = missing(place.Storage, place.Kind)
		return
	}
	place.Storage = storage.Name
	place.ReadOnly = place.ReadOnly || storage.ReadOnly
	place.Make = place.Make && !place.ReadOnly
	if place.Remote = storage.Remote; place.Remote {
		place.ReadOnly, place.Prepare = true, true
	} else if place.SHA256 != "" {
		p.err = structs.NewError(structs.CodeInvalid, "client.data_sha256", "kind", place.Kind, "name", place.Name, "storage", place.Storage)
		return
	} else {
		place.Single = false
	}
	place.Own = strings.Contains(storage.Path, "{user}") || strings.Contains(storage.Path, "{project}")
	owner := ""
	if strings.Contains(storage.Path, "{user}") {
		owner = cmp.Or(place.user, p.job.User)
	}
	place.DataName = structs.CopyName(place.DataName, place.Remote, owner)
	if err := p.fill(&place, storage.Path, version, from); err != nil {
		p.err = err
		return
	}
	p.places = append(p.places, place)
}

// storage finds the storage that is named, or else the first of the kind.
func (p *planner) storage(name, kind string) *Storage {
	for i := range p.storages {
		s := &p.storages[i]
		named := name == "" && kind != structs.StorageMount || s.Name == name
		if named && s.serves(kind) && !(s.ReadOnly && kind == structs.StorageOutput) {
			return s
		}
	}
	return nil
}

func missing(name, kind string) error {
	if name == "" {
		return structs.NewError(structs.CodeUnavailable, "client.storage_none", "kind", kind)
	}
	return structs.NewError(structs.CodeUnavailable, "client.storage_missing", "storage", name, "kind", kind)
}

// fill makes paths of a template. What comes before the name belongs to the
// administrator; from there on, whoever writes to the storage decides.
func (p *planner) fill(place *Place, template string, version int, from string) error {
	number, name := "", place.below
	if name == "" {
		name = place.Name
	}
	if version > 0 {
		number = strconv.Itoa(version)
	}
	words := map[string]string{"{user}": cmp.Or(place.user, p.job.User), "{project}": cmp.Or(place.project, p.job.Project), "{kind}": place.Kind, "{from}": from, "{version}": number}
	given, root, below := "/", "/", ""
	fixed, rooted := true, true
	for element := range strings.SplitSeq(strings.TrimPrefix(template, "/"), "/") {
		if element == "{name}" {
			rooted, fixed = false, false
			below = path.Join(below, name)
			continue
		}
		filled := element
		for _, word := range []string{"{user}", "{project}", "{kind}", "{from}", "{version}"} {
			if !strings.Contains(filled, word) {
				continue
			}
			fixed = false
			if words[word] == "" && word == "{version}" {
				filled = ""
				break
			}
			if !elementName(words[word]) {
				return structs.NewError(structs.CodeInvalid, "client.storage_word", "storage", place.Storage, "word", strings.Trim(word, "{}"), "value", words[word])
			}
			filled = strings.ReplaceAll(filled, word, words[word])
		}
		switch {
		case filled == "": // a version that the job does not have
		case !rooted || strings.Contains(element, "{version}"):
			rooted = false
			below = path.Join(below, filled)
		default:
			root = path.Join(root, filled)
			if fixed {
				given = root
			}
		}
	}
	if !strings.Contains(template, "{name}") {
		below = path.Join(below, name)
	}
	if number != "" && !strings.Contains(template, "{version}") {
		below = path.Join(below, number)
	}
	place.Given, place.Root, place.Path = given, root, path.Join(root, below)
	if place.Path != root && !strings.HasPrefix(place.Path, strings.TrimSuffix(root, "/")+"/") {
		return structs.NewError(structs.CodeInvalid, "client.storage_word", "storage", place.Storage, "word", "name", "value", name)
	}
	return nil
}

// elementName reports whether text can be one element of a path, and no other.
func elementName(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/\x00")
}
