package command

import (
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// codeBound tells how much code a project takes. The zero value knows of no cluster.
type codeBound struct {
	// ask asks the cluster; "" is the project that whoever asks acts in.
	ask func(project string) (int64, error)
	// first: before anything is read. Otherwise only where a directory has more than most
	// projects take, since what is only looked at needs no cluster.
	first bool
}

// boundOf asks a cluster before anything is read.
func (env *Env) boundOf(client *api.Client) codeBound {
	return codeBound{first: true, ask: func(project string) (int64, error) {
		if project != "" {
			return client.In(project).CodeMost(env.Context)
		}
		return client.CodeMost(env.Context)
	}}
}

// laterBoundOf asks the cluster that would be sent to, where it matters.
func (env *Env) laterBoundOf(connection connectionFlags) codeBound {
	return codeBound{ask: func(project string) (int64, error) {
		client, err := env.connect(connection)
		if err != nil {
			return 0, err
		}
		defer client.Close()
		return env.boundOf(client).ask(project)
	}}
}

// later reports whether a directory that was found too large is to be looked at again,
// by what its project takes.
func (b codeBound) later(project string, options *tree.Options, large *tree.TooLargeError) bool {
	if b.first || b.ask == nil || large.Bytes > structs.CodeMaxMost {
		return false
	}
	most, err := b.ask(project)
	if err != nil || most <= large.Max {
		return false // what is known without a cluster holds
	}
	options.BytesMax = most
	return true
}
