// A libamd_smi.so for tests, driven by a text file. What it fills has the form
// that the vendor's public header gives it.
//
// FAKE_AMDSMI_SCRIPT names the file:
//
//   init 6                           amdsmi_init returns 6
//   gpu 0 bus=0xc1 name="AMD Instinct MI300X" memory=196592 used=280 …   sizes in MiB
//   and what script.h says

#define SCRIPT "FAKE_AMDSMI_SCRIPT"
#include "script.h"
#include <stdint.h>

#define GPUS 32
#define MIB (1024ULL * 1024ULL)

struct gpu {
	long long present, bus, memory, used, util, temp, hot, ecc, pending, failed, xgmi, silent;
	char name[64];
};

static struct gpu gpus[GPUS];
static int init_code, order[GPUS], count;

struct usage { uint32_t gfx, umc, mm[8], reserved[6]; };
struct errors { uint64_t correctable, uncorrectable, reserved[6]; };
struct page { uint64_t address, size; uint32_t status; };
struct asic { char name[64]; uint32_t family, vendor, subvendor; uint64_t device; };

static void parse(FILE *f) {
	char line[1024], key[64], value[96], first[64];
	memset(gpus, 0, sizeof gpus);
	count = init_code = 0;
	while (fgets(line, sizeof line, f)) {
		char *at = line;
		if (!word(&at, key, value)) continue;
		if (!strcmp(key, "hang") || !strcmp(key, "crash") || !strcmp(key, "fail")) {
			instruct(key, at);
			continue;
		}
		if (!word(&at, first, value)) continue;
		int n = atoi(first);
		if (!strcmp(key, "init")) init_code = n;
		if (strcmp(key, "gpu") || n < 0 || n >= GPUS) continue;
		struct gpu *g = &gpus[n];
		order[count++] = n;
		g->present = 1, g->temp = 40, g->hot = 110;
		while (word(&at, key, value)) {
			long long v = strtoll(value, NULL, 0);
			if (!strcmp(key, "name")) snprintf(g->name, sizeof g->name, "%s", value);
#define NUMBER(f) else if (!strcmp(key, #f)) g->f = v;
			NUMBER(bus) NUMBER(memory) NUMBER(used) NUMBER(util) NUMBER(temp) NUMBER(hot) NUMBER(ecc) NUMBER(pending) NUMBER(failed) NUMBER(xgmi) NUMBER(silent)
		}
	}
}

#define CARD ENTER; struct gpu *g = h; if (!g->present) return leave(31); if (g->silent) return leave(8)
#define GIVE(...) do { __VA_ARGS__; return leave(0); } while (0)

int amdsmi_init(uint64_t flags) { ENTER; return leave(flags == 2 ? init_code : 1); }
int amdsmi_shut_down(void) { ENTER; return leave(0); }
int amdsmi_get_lib_version(uint32_t *v) { ENTER; GIVE(v[0] = 26, v[1] = 0, v[2] = 2); }
int amdsmi_get_socket_handles(uint32_t *n, void **list) {
	ENTER;
	if (*n < (uint32_t)count) return leave(41);
	*n = (uint32_t)count;
	for (int i = 0; i < count; i++) list[i] = &order[i];
	return leave(0);
}
int amdsmi_get_processor_handles(void *socket, uint32_t *n, void **list) { ENTER; GIVE(*n = 1, list[0] = &gpus[*(int *)socket]); }
int amdsmi_get_gpu_device_bdf(void *h, uint64_t *bdf) { ENTER; struct gpu *g = h; GIVE(*bdf = (uint64_t)g->bus << 8); }
int amdsmi_get_gpu_device_uuid(void *h, unsigned *n, char *uuid) { CARD; GIVE(snprintf(uuid, *n, "%02llxff74a1-0000-1000-80e9-000000000000", g->bus)); }
int amdsmi_get_gpu_asic_info(void *h, struct asic *a) { CARD; GIVE(snprintf(a->name, sizeof a->name, "%s", g->name)); }
int amdsmi_get_gpu_memory_total(void *h, int type, uint64_t *v) { CARD; GIVE(*v = type ? 0 : (uint64_t)g->memory * MIB); }
int amdsmi_get_gpu_memory_usage(void *h, int type, uint64_t *v) { CARD; GIVE(*v = type ? 0 : (uint64_t)g->used * MIB); }
int amdsmi_get_gpu_activity(void *h, struct usage *u) { CARD; GIVE(u->gfx = (uint32_t)g->util, u->umc = 7); }
int amdsmi_get_gpu_total_ecc_count(void *h, struct errors *e) { CARD; GIVE(e->correctable = 2, e->uncorrectable = (uint64_t)g->ecc); }
int amdsmi_gpu_xgmi_error_status(void *h, int *v) { CARD; GIVE(*v = (int)g->xgmi); }
int amdsmi_get_temp_metric(void *h, int sensor, int metric, int64_t *v) {
	CARD;
	if (sensor != 1 && sensor != 2) return leave(2);
	GIVE(*v = metric == 5 ? g->hot : g->temp + (sensor == 2 ? 3 : 0));
}
int amdsmi_get_gpu_bad_page_info(void *h, uint32_t *n, struct page *list) {
	CARD;
	uint32_t all = (uint32_t)(g->pending + g->failed);
	if (*n < all) return leave(41);
	*n = all;
	for (uint32_t i = 0; i < all; i++) list[i] = (struct page){.address = i << 12, .size = 4096, .status = i < g->pending ? 1 : 2};
	return leave(0);
}
