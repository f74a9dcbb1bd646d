// A libnvidia-ml.so.1 for tests, driven by text files. It is compiled against
// the header that the binding brings, so its functions have the form of the
// real ones.
//
// FAKE_NVML_SCRIPT names a file that is read anew whenever it has changed:
//
//   driver 550.54.15
//   cuda 12040
//   init 9                           nvmlInit returns 9
//   gpu uuid=GPU-a name="NVIDIA H100" bus=00000000:17:00.0 total=81920 …   sizes in MiB
//   link GPU-a up=1 remote=00000000:18:00.0 switch=0
//   instance GPU-a uuid=MIG-a gi=1 ci=0 name="NVIDIA H100 MIG 1g.10gb" total=9728
//   process GPU-a pid=77 mem=1024
//   and what script.h says
//
// FAKE_NVML_EVENTS names a file to which events are appended, one a line:
//
//   GPU-a xid=79 gi=-1 ci=-1
//   GPU-a type=256

#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include "nvml.h"

#define SCRIPT "FAKE_NVML_SCRIPT"
#include "script.h"

#include <poll.h>
#include <sys/inotify.h>
#include <time.h>

// The binding's header wraps handles in structs, which are passed alike.

#define DEVICES 512
#define LINKS 36
#define PROCESSES 64
#define MIB (1024ULL * 1024ULL)

struct process { unsigned pid; unsigned long long mem; };

struct nvmlDevice_st {
	char uuid[96], name[96], bus[32], serial[32];
	int present, lost, instance; // instance: it is a MIG device
	int gi, ci;
	struct nvmlDevice_st *parent;
	long long minor, total, used, arch, util, memutil, power, limit, temp, sm, mem, width, gen, recovery, ecc, eccc, throttle, mig, pending, failed, retired, fabric, status, clique, replays, nvtx, nvrx, nvcrc, nvreplay, nvrecover;
	int links;
	struct { int up, sw; char remote[32]; } link[LINKS];
	int processes;
	struct process process[PROCESSES];
};

static struct nvmlDevice_st slots[DEVICES];
static int nslots;
static struct nvmlDevice_st *order[DEVICES];
static int count;
static char driver[80] = "550.54.15";
static int cuda = 12040, init_code;

static struct nvmlDevice_st *slot(const char *uuid) {
	for (int i = 0; i < nslots; i++)
		if (strcmp(slots[i].uuid, uuid) == 0) return &slots[i];
	if (nslots == DEVICES) abort();
	snprintf(slots[nslots].uuid, sizeof slots[nslots].uuid, "%s", uuid);
	return &slots[nslots++];
}

static void fields(struct nvmlDevice_st *d, char *at) {
	char key[64], value[96];
	while (word(&at, key, value)) {
		long long n = strtoll(value, NULL, 10);
		if (!strcmp(key, "name")) snprintf(d->name, sizeof d->name, "%s", value);
		else if (!strcmp(key, "bus")) snprintf(d->bus, sizeof d->bus, "%s", value);
		else if (!strcmp(key, "serial")) snprintf(d->serial, sizeof d->serial, "%s", value);
#define NUMBER(f) else if (!strcmp(key, #f)) d->f = n;
		NUMBER(minor) NUMBER(total) NUMBER(used) NUMBER(arch) NUMBER(util) NUMBER(memutil) NUMBER(power) NUMBER(limit) NUMBER(temp)
		NUMBER(sm) NUMBER(mem) NUMBER(width) NUMBER(gen) NUMBER(recovery) NUMBER(ecc) NUMBER(eccc) NUMBER(throttle) NUMBER(mig)
		NUMBER(pending) NUMBER(failed) NUMBER(retired) NUMBER(fabric) NUMBER(status) NUMBER(clique) NUMBER(replays) NUMBER(nvtx)
		NUMBER(nvrx) NUMBER(nvcrc) NUMBER(nvreplay) NUMBER(nvrecover) NUMBER(lost) NUMBER(gi) NUMBER(ci)
	}
}

static void parse(FILE *f) {
	char line[1024], key[64], value[96];
	for (int i = 0; i < nslots; i++) slots[i].present = 0;
	count = init_code = 0;
	while (fgets(line, sizeof line, f)) {
		char *at = line;
		if (!word(&at, key, value)) continue;
		char first[64];
		if (!strcmp(key, "gpu")) {
			char *rest = at;
			if (!word(&rest, first, value) || strcmp(first, "uuid")) continue;
			struct nvmlDevice_st *d = slot(value);
			char uuid[96];
			snprintf(uuid, sizeof uuid, "%s", value);
			memset(d, 0, sizeof *d);
			snprintf(d->uuid, sizeof d->uuid, "%s", uuid);
			d->present = 1, d->recovery = -1, d->fabric = 0, d->minor = count, d->limit = 700000, d->width = 16, d->gen = 5, d->nvcrc = 3, d->nvrecover = 1;
			fields(d, rest);
			order[count++] = d;
		} else if (!strcmp(key, "link") && word(&at, first, value)) {
			struct nvmlDevice_st *d = slot(first);
			if (d->links == LINKS) continue;
			while (word(&at, key, value)) {
				if (!strcmp(key, "up")) d->link[d->links].up = atoi(value);
				if (!strcmp(key, "switch")) d->link[d->links].sw = atoi(value);
				if (!strcmp(key, "remote")) snprintf(d->link[d->links].remote, 32, "%s", value);
			}
			d->links++;
		} else if (!strcmp(key, "instance") && word(&at, first, value)) {
			struct nvmlDevice_st *parent = slot(first);
			if (!word(&at, key, value) || strcmp(key, "uuid")) continue;
			struct nvmlDevice_st *d = slot(value);
			char uuid[96];
			snprintf(uuid, sizeof uuid, "%s", value);
			memset(d, 0, sizeof *d);
			snprintf(d->uuid, sizeof d->uuid, "%s", uuid);
			d->present = d->instance = 1, d->parent = parent;
			fields(d, at);
		} else if (!strcmp(key, "process") && word(&at, first, value)) {
			struct nvmlDevice_st *d = slot(first);
			if (d->processes == PROCESSES) continue;
			struct process *p = &d->process[d->processes++];
			p->pid = 0, p->mem = 0;
			while (word(&at, key, value)) {
				if (!strcmp(key, "pid")) p->pid = atoi(value);
				if (!strcmp(key, "mem")) p->mem = strtoull(value, NULL, 10) * MIB;
			}
		} else if (!strcmp(key, "driver") && word(&at, first, value)) snprintf(driver, sizeof driver, "%s", first);
		else if (!strcmp(key, "cuda") && word(&at, first, value)) cuda = atoi(first);
		else if (!strcmp(key, "init") && word(&at, first, value)) init_code = atoi(first);
		else instruct(key, at);
	}
}

// HANDLE is for what a dead card still answers, DEVICE for the rest.
#define HANDLE ENTER; struct nvmlDevice_st *d = h.handle
#define DEVICE HANDLE; if (!d->present || d->lost) return leave(NVML_ERROR_GPU_IS_LOST)
#define GIVE(expression) do { expression; return leave(NVML_SUCCESS); } while (0)

nvmlReturn_t nvmlInit_v2(void) { ENTER; return leave((nvmlReturn_t)init_code); }
nvmlReturn_t nvmlShutdown(void) { ENTER; return leave(NVML_SUCCESS); }
const char *nvmlErrorString(nvmlReturn_t r) { return r == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : r == NVML_SUCCESS ? "Success" : "Fake error"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *v, unsigned n) { ENTER; GIVE(snprintf(v, n, "%s", driver)); }
nvmlReturn_t nvmlSystemGetNVMLVersion(char *v, unsigned n) { ENTER; GIVE(snprintf(v, n, "12.%s", driver)); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *v) { ENTER; GIVE(*v = cuda); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { ENTER; GIVE(*n = (unsigned)count); }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) {
	ENTER;
	if (i >= (unsigned)count) return leave(NVML_ERROR_INVALID_ARGUMENT);
	if (order[i]->lost == 2) return leave(NVML_ERROR_GPU_IS_LOST);
	GIVE(d->handle = order[i]);
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t h, char *v, unsigned n) { HANDLE; GIVE(snprintf(v, n, "%s", d->uuid)); }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t h, char *v, unsigned n) { HANDLE; GIVE(snprintf(v, n, "%s", d->name)); }
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t h, char *v, unsigned n) {
	DEVICE;
	if (!d->serial[0]) return leave(NVML_ERROR_NOT_SUPPORTED);
	GIVE(snprintf(v, n, "%s", d->serial));
}
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t h, char *v, unsigned n) { DEVICE; GIVE(snprintf(v, n, "96.00.74.00.01")); }
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t h, unsigned *v) { HANDLE; GIVE(*v = (unsigned)d->minor); }
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t h, nvmlPciInfo_t *p) {
	HANDLE;
	memset(p, 0, sizeof *p);
	GIVE(snprintf(p->busId, sizeof p->busId, "%s", d->bus));
}
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t h, nvmlDeviceArchitecture_t *a) { DEVICE; GIVE(*a = (nvmlDeviceArchitecture_t)d->arch); }
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t h, nvmlMemory_v2_t *m) {
	DEVICE;
	if (m->version != nvmlMemory_v2) return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	m->total = d->total * MIB, m->reserved = 300 * MIB, m->used = d->used * MIB;
	GIVE(m->free = m->total - m->used - m->reserved);
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t h, nvmlMemory_t *m) {
	DEVICE;
	m->total = d->total * MIB, m->used = d->used * MIB;
	GIVE(m->free = m->total - m->used);
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t h, unsigned *current, unsigned *pending) { DEVICE; GIVE(*current = *pending = (unsigned)d->mig); }
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = d->mig ? 7 : 0); }
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t h, unsigned index, nvmlDevice_t *mig) {
	DEVICE;
	for (int i = 0; i < nslots; i++)
		if (slots[i].present && slots[i].instance && slots[i].parent == d && index-- == 0) GIVE(mig->handle = &slots[i]);
	return leave(NVML_ERROR_NOT_FOUND);
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = (unsigned)d->gi); }
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = (unsigned)d->ci); }
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t h, nvmlDeviceAttributes_t *a) {
	DEVICE;
	memset(a, 0, sizeof *a);
	a->gpuInstanceSliceCount = 1;
	GIVE(a->memorySizeMB = d->total);
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t h, unsigned link, nvmlEnableState_t *s) {
	DEVICE;
	if (link >= (unsigned)d->links) return leave(NVML_ERROR_INVALID_ARGUMENT);
	GIVE(*s = d->link[link].up ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED);
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t h, unsigned link, nvmlPciInfo_t *p) {
	DEVICE;
	if (link >= (unsigned)d->links) return leave(NVML_ERROR_INVALID_ARGUMENT);
	memset(p, 0, sizeof *p);
	GIVE(snprintf(p->busId, sizeof p->busId, "%s", d->link[link].remote));
}
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t h, unsigned link, nvmlIntNvLinkDeviceType_t *t) {
	DEVICE;
	if (link >= (unsigned)d->links) return leave(NVML_ERROR_INVALID_ARGUMENT);
	GIVE(*t = d->link[link].sw ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU);
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t h, nvmlGpuFabricInfoV_t *f) {
	DEVICE;
	nvmlGpuFabricInfo_v2_t *v2 = (nvmlGpuFabricInfo_v2_t *)f;
	if (v2->version != nvmlGpuFabricInfo_v2) return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	memset(v2->clusterUuid, 0, sizeof v2->clusterUuid);
	if (d->clique) memcpy(v2->clusterUuid, "\x01\x23\x45\x67", 4);
	v2->state = (nvmlGpuFabricState_t)d->fabric, v2->status = (nvmlReturn_t)d->status;
	GIVE(v2->cliqueId = (unsigned)d->clique);
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t h, unsigned *c, unsigned *u, unsigned *p, unsigned *f) {
	DEVICE;
	*c = 1, *u = 2, *p = (unsigned)d->pending;
	GIVE(*f = (unsigned)d->failed);
}
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t h, nvmlEnableState_t *s) { DEVICE; GIVE(*s = d->retired ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED); }
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t h, nvmlMemoryErrorType_t t, nvmlEccCounterType_t c, unsigned long long *n) {
	DEVICE;
	(void)c;
	GIVE(*n = (unsigned long long)(t == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? d->ecc : d->eccc));
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t h, unsigned long long *r) { DEVICE; GIVE(*r = (unsigned long long)d->throttle); }
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t h, nvmlTemperatureSensors_t s, unsigned *t) { DEVICE; (void)s; GIVE(*t = (unsigned)d->temp); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = (unsigned)d->width); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = (unsigned)d->gen); }
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = (unsigned)d->replays); }
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t h, nvmlPcieUtilCounter_t c, unsigned *n) { DEVICE; GIVE(*n = c == NVML_PCIE_UTIL_TX_BYTES ? 100 : 200); }
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t h, nvmlUtilization_t *u) { DEVICE; u->gpu = (unsigned)d->util; GIVE(u->memory = (unsigned)d->memutil); }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = (unsigned)d->power); }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t h, unsigned *n) { DEVICE; GIVE(*n = (unsigned)d->limit); }
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t h, unsigned *n) { (void)n; DEVICE; return leave(NVML_ERROR_NOT_SUPPORTED); }
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t h, nvmlClockType_t t, unsigned *n) { DEVICE; GIVE(*n = (unsigned)(t == NVML_CLOCK_MEM ? d->mem : d->sm)); }
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t h, int n, nvmlFieldValue_t *v) {
	DEVICE;
	for (int i = 0; i < n; i++) {
		v[i].nvmlReturn = NVML_SUCCESS, v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		switch (v[i].fieldId) {
		case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION:
			v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT, v[i].value.uiVal = (unsigned)d->recovery;
			if (d->recovery < 0) v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
			break;
		case NVML_FI_DEV_MEMORY_TEMP: v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT, v[i].value.uiVal = (unsigned)d->temp + 10; break;
		case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION: v[i].value.ullVal = 1234567; break;
		case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
			v[i].value.ullVal = (unsigned long long)d->nvtx;
			if (v[i].scopeId != 0xFFFFFFFFu) v[i].nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
			break;
		case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX: v[i].value.ullVal = (unsigned long long)d->nvrx; break;
		case NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL: v[i].value.ullVal = (unsigned long long)d->nvcrc; break;
		case NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL: v[i].value.ullVal = (unsigned long long)d->nvreplay; break;
		case NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL: v[i].value.ullVal = (unsigned long long)d->nvrecover; break;
		default: v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		}
	}
	return leave(NVML_SUCCESS);
}

static nvmlReturn_t list(struct nvmlDevice_st *d, unsigned *n, nvmlProcessInfo_t *infos) {
	if (*n < (unsigned)d->processes) {
		*n = (unsigned)d->processes;
		return leave(NVML_ERROR_INSUFFICIENT_SIZE);
	}
	*n = (unsigned)d->processes;
	for (int i = 0; i < d->processes; i++)
		infos[i] = (nvmlProcessInfo_t){.pid = d->process[i].pid, .usedGpuMemory = d->process[i].mem, .gpuInstanceId = 0xFFFFFFFF, .computeInstanceId = 0xFFFFFFFF};
	return leave(NVML_SUCCESS);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t h, unsigned *n, nvmlProcessInfo_t *infos) { DEVICE; return list(d, n, infos); }
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t h, unsigned *n, nvmlProcessInfo_t *infos) { (void)infos; DEVICE; GIVE(*n = 0); }

struct nvmlEventSet_st { long offset; int registered[DEVICES]; };

static long events_size(void) {
	const char *path = getenv("FAKE_NVML_EVENTS");
	struct stat s;
	return path && !stat(path, &s) ? (long)s.st_size : 0;
}
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	ENTER;
	struct nvmlEventSet_st *s = calloc(1, sizeof *s);
	if (!s) return leave(NVML_ERROR_MEMORY);
	s->offset = events_size();
	GIVE(set->handle = s);
}
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { ENTER; GIVE(free(set.handle)); }
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t h, unsigned long long *types) { DEVICE; GIVE(*types = 0x1FF); }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t h, unsigned long long types, nvmlEventSet_t set) {
	DEVICE;
	if (types & ~0x1FFULL) return leave(NVML_ERROR_NOT_SUPPORTED);
	GIVE(set.handle->registered[d - slots] = 1);
}

// next takes an event from the file; 1: there was one.
static int next(struct nvmlEventSet_st *set, nvmlEventData_t *data) {
	const char *path = getenv("FAKE_NVML_EVENTS");
	FILE *f = path ? fopen(path, "r") : NULL;
	if (!f) return 0;
	char line[256], key[64], value[96];
	int found = 0;
	fseek(f, set->offset, SEEK_SET);
	while (!found && fgets(line, sizeof line, f) && strchr(line, '\n')) {
		set->offset = ftell(f);
		char *at = line;
		if (!word(&at, key, value)) continue;
		struct nvmlDevice_st *d = slot(key);
		memset(data, 0, sizeof *data);
		data->device.handle = d, data->gpuInstanceId = data->computeInstanceId = 0xFFFFFFFF;
		while (word(&at, key, value)) {
			if (!strcmp(key, "xid")) data->eventType = nvmlEventTypeXidCriticalError, data->eventData = strtoull(value, NULL, 10);
			if (!strcmp(key, "type")) data->eventType = strtoull(value, NULL, 10);
			if (!strcmp(key, "gi")) data->gpuInstanceId = (unsigned)atoi(value);
			if (!strcmp(key, "ci")) data->computeInstanceId = (unsigned)atoi(value);
		}
		found = set->registered[d - slots];
	}
	fclose(f);
	return found;
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout) {
	const char *path = getenv("FAKE_NVML_EVENTS");
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch < 0 || !path || inotify_add_watch(watch, path, IN_MODIFY) < 0) {
		if (watch >= 0) close(watch);
		return NVML_ERROR_UNKNOWN;
	}
	for (int last = 0;;) {
		int code = enter(__func__);
		int found = !code && next(set.handle, data);
		leave(NVML_SUCCESS);
		if (code || found || last) {
			close(watch);
			return code ? (nvmlReturn_t)code : found ? NVML_SUCCESS : NVML_ERROR_TIMEOUT;
		}
		struct pollfd fd = {.fd = watch, .events = POLLIN};
		char changes[4096];
		if (poll(&fd, 1, (int)timeout) <= 0) last = 1;
		else if (read(watch, changes, sizeof changes) < 0) last = 1;
	}
}
