// Package render makes the pages of the guides out of their Markdown.
//
// Flow: Site reads guide/LANGUAGE, reference/LANGUAGE, design and examples, adds
// the list of error messages out of the catalogue, and returns the files that
// package website embeds: for each page its HTML and its Markdown, for each
// language the topics and what is searched, and the style and scripts that they
// share. The order of the pages is that of the links in a language's index.md.
//
// Limits: HTML inside of Markdown is left out, and code is not coloured. Links
// between pages are checked; links to elsewhere are not.
package render
