package jobspec

// Options is what a job file may draw on besides its own text. The zero value
// is what a server uses: no variables, no files, no environment.
type Options struct {
	// Vars are the -var flags in order, each "name=value"; a later one wins.
	// They win over VarFiles, which win over Env.
	Vars []string
	// VarFiles are the -var-file files in order; a later one wins.
	VarFiles []VarFile
	// Env is the environment as "NAME=value". NOMADLIKE_VAR_<name> sets a
	// variable, and the function env() reads any name. When nil, env() is
	// refused: only the command line sets its environment.
	Env []string
	// ReadFile is what the function file() reads with. When nil, file() is
	// refused: only the command line sets it.
	ReadFile func(path string) ([]byte, error)
	// Name, if not empty, is the job's name in place of the file's, and
	// NameEnding is put behind the name and a hyphen.
	Name, NameEnding string
	// Limits bounds the work; zero fields mean the defaults.
	Limits Limits
}

// VarFile is one -var-file: assignments such as lr = 0.1.
type VarFile struct {
	Name   string
	Source []byte
}

// EnvPrefix starts the names of environment variables that set variables of
// job files.
const EnvPrefix = "NOMADLIKE_VAR_"

// Limits bounds what one job file may cost. A zero field means its default.
type Limits struct {
	Source      int // bytes of the file
	Depth       int // brackets, quotes and interpolations inside one another
	Tokens      int // words, numbers and signs of the file
	Steps       int // expressions evaluated and elements made
	Text        int // bytes of text made while evaluating
	Diagnostics int // problems reported; the rest is counted
}

// The defaults of Limits. With them a hostile file costs less than 100 ms and
// 64 MB before it is refused.
const (
	SourceSizeMax  = 1 << 20
	DepthMax       = 64
	TokensMax      = 32_000
	StepsMax       = 25_000
	TextMax        = 4 << 20
	DiagnosticsMax = 100
)

// withDefaults fills the zero fields.
func (l Limits) withDefaults() Limits {
	for _, field := range []struct {
		value    *int
		fallback int
	}{
		{&l.Source, SourceSizeMax},
		{&l.Depth, DepthMax},
		{&l.Tokens, TokensMax},
		{&l.Steps, StepsMax},
		{&l.Text, TextMax},
		{&l.Diagnostics, DiagnosticsMax},
	} {
		if *field.value <= 0 {
			*field.value = field.fallback
		}
	}
	return l
}
