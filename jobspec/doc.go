// Package jobspec reads job files: HCL in, structs.Job and a source map out,
// and everything that is wrong with them as diagnostics that show the place,
// the cause and a way out, in English or Chinese.
//
// Flow: a survey bounds the text before any parser sees it, hclsyntax parses
// it, variables and locals are evaluated on a meter, readers fill the job and
// note where each field came from, and structs validates the result; its
// problems find their lines through the source map. Format and Skeleton serve
// `job fmt` and `job init`.
//
// What may stand in a file is said once for each noun, in walkJob, walkPool and
// walkProject. A reader, the writer of Write and the describer of hints are
// visitors of these walks, so a new field is one line there.
//
// Limits: pure but for Options.ReadFile, which only the command line sets:
// there is no clock, no environment and no disk here, so a server may parse
// what strangers send. Source, nesting, tokens, evaluation steps, text and
// diagnostics are bounded (see Limits). Texts are normalized to Unicode NFC,
// as HCL does.
package jobspec
