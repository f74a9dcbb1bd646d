// Command release builds what people download: an archive for each platform, a
// .deb and an .rpm for Linux, sums, a bill of materials, and the section of the
// changelog.
//
// Flow: main reads the version and the time of the commit; each platform is built
// by the project's own makefile, its parts are listed from what the linker wrote
// into the program, and everything goes into archives with times, owners and
// order that hang on nothing but the commit. Two runs give the same bytes.
//
// Limits: a module of its own, so that the packager's libraries are none of the
// project's. It signs nothing and uploads nothing: SHA256SUMS is what a person
// signs. A Linux program for another processor carries the NVIDIA plugin only
// where a C compiler for it is installed, and says so.
package main
