// Package words writes sizes, commands and causes as the messages of a node show them.
//
// Flow: rooms call it where they tell something to people.
//
// Limits: texts themselves stand in the message catalogue.
package words
