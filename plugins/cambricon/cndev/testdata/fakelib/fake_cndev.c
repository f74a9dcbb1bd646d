// A libcndev.so for tests, driven by a text file. Its structures are those of
// the vendor's public interface description.
//
// FAKE_CNDEV_SCRIPT names the file:
//
//   version 5                        speaks no newer structures
//   init 1                           cndevInit returns 1
//   card 0 uuid=… name=MLU370-X8 memory=24576 used=100 …   sizes in MiB
//   incident 0 15 "DBE detected"     the library finds something wrong
//   process 0 pid=77 mem=1024
//   link 0 1                         cards 0 and 1 are joined by MLU-Link
//   and what script.h says

#define SCRIPT "FAKE_CNDEV_SCRIPT"
#include "script.h"

#define CARDS 64
#define PORTS 8
#define MANY 16

struct card {
	long long present, memory, used, util, power, cap, temp, bus, width, ecc, state, driver, silent, sn;
	char uuid[64], name[64];
	int nincidents, nprocesses, nports, peer[PORTS];
	struct { int code; char text[96]; } incident[MANY];
	struct { unsigned pid; unsigned long kib; } process[MANY];
};

static struct card cards[CARDS];
static int order[CARDS], ncards, init_code, newest;

struct counted { int version; unsigned number; };
struct uuid { int version; unsigned char uuid[37]; unsigned long ncs; };
struct memory { int version; long total, used, vtotal, vused, channels, channel[20]; unsigned long global; };
struct memory2 { long total, used, reserved, vtotal, vused; unsigned long global, rest[16]; };
struct versions { int version; unsigned mcu[3], driver[3]; };
struct ecc { int version; unsigned long one, many_one, many, many_many, corrected, uncorrected, total, forbidden; };
struct power { int version, usage, cap, usage_decimal, machine, cap_decimal; unsigned short tdp, now, now_decimal; };
struct temperature { int version, board, cluster[20], memory_die[8], chip, inlet, outlet, memory, rest[3]; };
struct utilization { int version, average, core[80]; };
struct frequency { int version, board, ddr, rest[20]; };
struct process { int version; unsigned pid; unsigned long physical, virt; };
struct serial { int version; unsigned long sn, board; };
struct pcie { int version; unsigned subsystem, id; unsigned short vendor, subvendor; unsigned domain, bus, device, function; const char *slot; int slot_id; };
struct pci_now { int version, speed, width; };
struct status { int version, active, serdes, cable; };
struct remote { int version; unsigned long mc, ba; unsigned slot, port; unsigned char ip[16], uuid[37]; unsigned rest[80]; };
struct health { int version, health, device, driver; };
struct incident { int system, health; char text[512]; unsigned device, bdf; int code; unsigned category, severity; };
struct health2 { int health, device, driver, overall; unsigned count; struct incident all[64]; unsigned rest[8]; };

static void parse(FILE *f) {
	char line[1024], key[64], value[96], first[64], second[64];
	memset(cards, 0, sizeof cards);
	ncards = init_code = 0, newest = 6;
	while (fgets(line, sizeof line, f)) {
		char *at = line;
		if (!word(&at, key, value)) continue;
		if (!strcmp(key, "hang") || !strcmp(key, "crash") || !strcmp(key, "fail")) {
			instruct(key, at);
			continue;
		}
		if (!word(&at, first, value)) continue;
		int n = atoi(first);
		if (!strcmp(key, "version")) newest = n;
		else if (!strcmp(key, "init")) init_code = n;
		if (n < 0 || n >= CARDS) continue;
		struct card *c = &cards[n];
		if (!strcmp(key, "card")) {
			order[ncards++] = n;
			c->present = 1, c->power = 75, c->cap = 150, c->temp = 40, c->width = 16, c->state = 1, c->driver = 4, c->bus = n + 0x40, c->sn = 0x1000 + n;
			while (word(&at, key, value)) {
				long long v = strtoll(value, NULL, 0);
				if (!strcmp(key, "uuid")) snprintf(c->uuid, sizeof c->uuid, "%s", value);
				else if (!strcmp(key, "name")) snprintf(c->name, sizeof c->name, "%s", value);
#define NUMBER(f) else if (!strcmp(key, #f)) c->f = v;
				NUMBER(memory) NUMBER(used) NUMBER(util) NUMBER(power) NUMBER(cap) NUMBER(temp) NUMBER(bus) NUMBER(width) NUMBER(ecc)
				NUMBER(state) NUMBER(driver) NUMBER(silent)
			}
		} else if (!strcmp(key, "incident") && c->nincidents < MANY && word(&at, second, value)) {
			c->incident[c->nincidents].code = atoi(second);
			char *quote = strchr(at, '"'), *end = quote ? strchr(quote + 1, '"') : NULL;
			if (end) snprintf(c->incident[c->nincidents].text, sizeof c->incident[0].text, "%.*s", (int)(end - quote - 1), quote + 1);
			c->nincidents++;
		} else if (!strcmp(key, "process") && c->nprocesses < MANY) {
			while (word(&at, key, value)) {
				if (!strcmp(key, "pid")) c->process[c->nprocesses].pid = (unsigned)atoi(value);
				if (!strcmp(key, "mem")) c->process[c->nprocesses].kib = strtoul(value, NULL, 10) << 10;
			}
			c->nprocesses++;
		} else if (!strcmp(key, "link") && word(&at, second, value)) {
			int m = atoi(second);
			if (c->nports < PORTS) c->peer[c->nports++] = m;
			if (cards[m].nports < PORTS) cards[m].peer[cards[m].nports++] = n;
		}
	}
}

#define VERSION(p) ENTER; if ((p)->version > newest || (p)->version < 5) return leave(3)
#define FIND(h) if ((h) < 100 || (h) >= 100 + CARDS || !cards[(h) - 100].present) return leave(6); struct card *c = &cards[(h) - 100]; if (c->silent) return leave(17)
#define CARD(p, h) VERSION(p); FIND(h)
#define GIVE(...) do { __VA_ARGS__; return leave(0); } while (0)

int cndevInit(int flags) { ENTER; return leave(init_code); }
int cndevRelease(void) { ENTER; return leave(0); }
int cndevGetLibVersion(struct versions *v) { VERSION(v); GIVE(v->mcu[0] = 3, v->mcu[1] = 10, v->mcu[2] = 2); }
int cndevGetDeviceCount(struct counted *v) { VERSION(v); GIVE(v->number = (unsigned)ncards); }
int cndevGetDeviceHandleByIndex(int index, int *h) { ENTER; if (index >= ncards) return leave(6); GIVE(*h = 100 + order[index]); }
int cndevGetUUID(struct uuid *v, int h) { CARD(v, h); GIVE(memcpy(v->uuid, c->uuid, 37)); }
int cndevGetVersionInfo(struct versions *v, int h) { CARD(v, h); GIVE(v->mcu[0] = 1, v->mcu[1] = 1, v->mcu[2] = 4, v->driver[0] = 5, v->driver[1] = 10, v->driver[2] = 22); }
int cndevGetCardSN(struct serial *v, int h) { CARD(v, h); GIVE(v->sn = (unsigned long)c->sn); }
int cndevGetPCIeInfo(struct pcie *v, int h) { CARD(v, h); GIVE(v->vendor = 0xcabc, v->bus = (unsigned)c->bus, v->domain = v->device = v->function = 0); }
int cndevGetMemoryUsage(struct memory *v, int h) { CARD(v, h); GIVE(v->total = c->memory, v->used = c->used); }
int cndevGetMemoryUsageV2(struct memory2 *v, int h) { ENTER; FIND(h); GIVE(v->total = c->memory, v->used = c->used); }
int cndevGetECCInfo(struct ecc *v, int h) { CARD(v, h); GIVE(v->corrected = 2, v->uncorrected = (unsigned long)c->ecc); }
int cndevGetPowerInfo(struct power *v, int h) { CARD(v, h); GIVE(v->usage = (int)c->power, v->cap = (int)c->cap); }
int cndevGetTemperatureInfo(struct temperature *v, int h) { CARD(v, h); GIVE(v->board = (int)c->temp - 5, v->chip = (int)c->temp, v->memory = (int)c->temp + 3); }
int cndevGetDeviceUtilizationInfo(struct utilization *v, int h) { CARD(v, h); GIVE(v->average = (int)c->util); }
int cndevGetFrequencyInfo(struct frequency *v, int h) { CARD(v, h); GIVE(v->board = 1000, v->ddr = 1600); }
int cndevGetCurrentPCIInfo(struct pci_now *v, int h) { CARD(v, h); GIVE(v->speed = 4, v->width = (int)c->width); }
const char *cndevGetCardNameStringByDevId(int h) { return h >= 100 && h < 100 + CARDS ? cards[h - 100].name : "unknown"; }
int cndevGetMLULinkPortNumber(int h) { pthread_mutex_lock(&lock); return leave(h >= 100 && h < 100 + CARDS ? PORTS : 0); }
int cndevGetMLULinkStatus(struct status *v, int h, int port) { CARD(v, h); GIVE(v->active = port < c->nports); }
int cndevGetMLULinkRemoteInfo(struct remote *v, int h, int port) {
	CARD(v, h);
	if (port >= c->nports) return leave(11);
	GIVE(memcpy(v->uuid, cards[c->peer[port]].uuid, 37));
}
int cndevGetProcessInfo(unsigned *n, struct process *list, int h) {
	CARD(list, h);
	if (*n < (unsigned)c->nprocesses) return leave(9);
	*n = (unsigned)c->nprocesses;
	for (int i = 0; i < c->nprocesses; i++) list[i].pid = c->process[i].pid, list[i].physical = c->process[i].kib;
	return leave(0);
}
int cndevGetCardHealthState(struct health *v, int h) { CARD(v, h); GIVE(v->health = c->state == 1, v->device = (int)c->state, v->driver = (int)c->driver); }
int cndevGetCardHealthStateV2(struct health2 *v, int h) {
	ENTER;
	FIND(h);
	memset(v, 0, sizeof *v);
	v->device = (int)c->state, v->driver = (int)c->driver, v->count = (unsigned)c->nincidents;
	for (int i = 0; i < c->nincidents; i++) {
		v->all[i].code = c->incident[i].code;
		snprintf(v->all[i].text, 512, "%s", c->incident[i].text);
	}
	return leave(0);
}
