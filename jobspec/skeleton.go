package jobspec

import (
	"embed"
	"slices"
	"strings"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

//go:embed skeleton
var skeletons embed.FS

// SkeletonKinds lists the examples that Skeleton returns, the simplest first.
func SkeletonKinds() []string { return []string{"hello", "pytorch", "mpi", "batch"} }

// Skeleton returns a commented example job file to start from, for `job init`.
// An unknown kind is a CodeNotFound error.
func Skeleton(kind string, language messages.Language) ([]byte, error) {
	if !slices.Contains(SkeletonKinds(), kind) {
		return nil, structs.NewError(structs.CodeNotFound, "jobspec.skeleton",
			"name", kind, "choices", strings.Join(SkeletonKinds(), ", "))
	}
	if language != messages.Chinese {
		language = messages.English
	}
	text, err := skeletons.ReadFile("skeleton/" + string(language) + "/" + kind + ".hcl")
	if err != nil {
		return nil, structs.NewError(structs.CodeInternal, "jobspec.skeleton", "name", kind).Because(err)
	}
	return text, nil
}
