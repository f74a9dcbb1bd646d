// What the libraries of vendors that tests compile have in common: a text file
// drives them, which is read anew whenever it has changed. Besides a library's
// own lines it has
//
//   hang vendorGetMemory        that function does not return while the line is there
//   crash vendorGetName         that function ends the process
//   fail vendorGetCount 999     that function returns 999
//
// A library defines SCRIPT, the variable that names the file, before it includes
// this, and parse, which reads the file and hands lines that it does not know to
// instruct.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORDERS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char kind[8], function[64]; int code; } orders[ORDERS];
static int norders;
static struct stat script_seen;

static void parse(FILE *f);

// word splits the next word off: key alone, or key=value, where value may be in
// quotes.
static int word(char **at, char key[64], char value[96]) {
	char *p = *at, *k = key, *v = value;
	while (*p == ' ' || *p == '\n') p++;
	if (!*p || *p == '#') return 0;
	while (*p && *p != ' ' && *p != '=' && *p != '\n') {
		if (k < key + 63) *k++ = *p;
		p++;
	}
	*k = 0;
	if (*p == '=') {
		char end = ' ';
		if (*++p == '"') end = '"', p++;
		while (*p && *p != end && *p != '\n') {
			if (v < value + 95) *v++ = *p;
			p++;
		}
		if (*p == '"') p++;
	}
	*v = 0;
	*at = p;
	return 1;
}

// instruct takes a line that says what a function does; at is what follows kind.
static void instruct(const char *kind, char *at) {
	char first[64], value[96];
	if (norders >= ORDERS || (strcmp(kind, "hang") && strcmp(kind, "crash") && strcmp(kind, "fail")) || !word(&at, first, value)) return;
	snprintf(orders[norders].kind, 8, "%s", kind);
	snprintf(orders[norders].function, 64, "%s", first);
	orders[norders++].code = word(&at, first, value) ? atoi(first) : 0;
}

// refresh reads the script when it has changed. The lock is held.
static void refresh(void) {
	const char *path = getenv(SCRIPT);
	struct stat s;
	if (!path || stat(path, &s)) return;
	if (s.st_size == script_seen.st_size && s.st_ino == script_seen.st_ino && s.st_mtim.tv_sec == script_seen.st_mtim.tv_sec && s.st_mtim.tv_nsec == script_seen.st_mtim.tv_nsec) return;
	FILE *f = fopen(path, "r");
	if (!f) return;
	script_seen = s;
	norders = 0;
	parse(f);
	fclose(f);
}

static int ordered(const char *kind, const char *function, int *code) {
	for (int i = 0; i < norders; i++)
		if (!strcmp(orders[i].kind, kind) && !strcmp(orders[i].function, function)) {
			if (code) *code = orders[i].code;
			return 1;
		}
	return 0;
}

// enter is the beginning of every function; it returns with the lock held.
static int enter(const char *function) {
	pthread_mutex_lock(&lock);
	refresh();
	if (ordered("crash", function, NULL)) {
		char *nowhere = NULL;
		*(volatile char *)nowhere = 1;
	}
	while (ordered("hang", function, NULL)) {
		pthread_mutex_unlock(&lock);
		usleep(5000);
		pthread_mutex_lock(&lock);
		refresh();
	}
	int code = 0;
	return ordered("fail", function, &code) ? code : 0;
}

static int leave(int ret) {
	pthread_mutex_unlock(&lock);
	return ret;
}

#define ENTER int ordered_code = enter(__func__); if (ordered_code) return leave(ordered_code)
