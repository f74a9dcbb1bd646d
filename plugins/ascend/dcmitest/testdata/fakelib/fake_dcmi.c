// A libdcmi.so for tests, driven by a text file. Its structures are those of
// the vendor's public interface description.
//
// FAKE_DCMI_SCRIPT names a file that is read anew whenever it has changed:
//
//   driver 24.1.rc2
//   init -8005                       dcmi_init returns -8005
//   chip card=0 chip=0 phy=0 name=910B3 hbm=65536 used=3400 health=0 …   sizes in MiB
//   chip card=1 … sdid=5 pod=2       in a super pod
//   code card=0 chip=0 80E01801      a fault that holds
//   process card=0 chip=0 pid=77 mem=1024
//   link 0 1                         chips on cards 0 and 1 are joined by HCCS
//   and what script.h says

#define SCRIPT "FAKE_DCMI_SCRIPT"
#include "script.h"

#define CHIPS 128
#define CODES 16
#define PROCESSES 32
#define LINKS 512

struct dcmi_ip_addr { union { unsigned char ip6[16]; unsigned char ip4[4]; } u_addr; int ip_type; };
struct dcmi_chip_info_v2 { unsigned char chip_type[32], chip_name[32], chip_ver[32]; unsigned int aicore_cnt; unsigned char npu_name[32]; };
struct dcmi_pcie_info_all { unsigned int venderid, subvenderid, deviceid, subdeviceid; int domain; unsigned int bdf_busid, bdf_deviceid, bdf_funcid; unsigned char reserve[32]; };
struct dcmi_hbm_info { unsigned long long memory_size; unsigned int freq; unsigned long long memory_usage; int temp; unsigned int bandwith_util_rate; };
struct dcmi_ecc_info { int enable_flag; unsigned int single_bit_error_cnt, double_bit_error_cnt, total_single_bit_error_cnt, total_double_bit_error_cnt, single_bit_isolated_pages_cnt, double_bit_isolated_pages_cnt; };
struct dcmi_proc_mem_info { int proc_id; unsigned long proc_mem_usage; };
struct dcmi_spod_info { unsigned int sdid, scale_type, super_pod_id, server_id, reserve[8]; };
struct dcmi_die_id { unsigned int soc_die[5]; };

struct chip {
	int present, silent;
	long long card, chip, phy, logic, hbm, used, health, util, power, temp, network, bus, ecc, die, sdid, pod;
	char name[32], ip[48];
	int ncodes;
	unsigned codes[CODES];
	int nprocesses;
	struct dcmi_proc_mem_info process[PROCESSES];
};

static struct chip chips[CHIPS];
static int nchips, init_code, nlinks;
static struct { int a, b; } links[LINKS];
static char driver[64] = "24.1.rc2";

static struct chip *find(int card, int chip) {
	for (int i = 0; i < nchips; i++)
		if (chips[i].card == card && chips[i].chip == chip) return &chips[i];
	return NULL;
}

static void field(struct chip *c, const char *key, const char *value) {
	long long n = strtoll(value, NULL, 0);
	if (!strcmp(key, "name")) snprintf(c->name, sizeof c->name, "%s", value);
	else if (!strcmp(key, "ip")) snprintf(c->ip, sizeof c->ip, "%s", value);
#define NUMBER(f) else if (!strcmp(key, #f)) c->f = n;
	NUMBER(card) NUMBER(chip) NUMBER(phy) NUMBER(logic) NUMBER(hbm) NUMBER(used) NUMBER(health) NUMBER(util) NUMBER(power) NUMBER(temp)
	NUMBER(network) NUMBER(bus) NUMBER(ecc) NUMBER(die) NUMBER(silent) NUMBER(sdid) NUMBER(pod)
}

static void parse(FILE *f) {
	char line[1024];
	nchips = init_code = nlinks = 0;
	while (fgets(line, sizeof line, f)) {
		char *save = NULL, *first = strtok_r(line, " \n", &save);
		if (!first || *first == '#') continue;
		if (!strcmp(first, "chip") && nchips < CHIPS) {
			struct chip *c = &chips[nchips++];
			memset(c, 0, sizeof *c);
			c->power = 900, c->temp = 40, c->present = 1, c->sdid = -1;
			while ((first = strtok_r(NULL, " \n", &save))) {
				char *equals = strchr(first, '=');
				if (!equals) continue;
				*equals = 0;
				field(c, first, equals + 1);
			}
		} else if (!strcmp(first, "code") || !strcmp(first, "process")) {
			int process = first[0] == 'p', card = 0, chip = 0, pid = 0;
			unsigned long mem = 0;
			unsigned code = 0;
			while ((first = strtok_r(NULL, " \n", &save))) {
				if (sscanf(first, "card=%d", &card) == 1 || sscanf(first, "chip=%d", &chip) == 1 || sscanf(first, "pid=%d", &pid) == 1 || sscanf(first, "mem=%lu", &mem) == 1) continue;
				code = (unsigned)strtoul(first, NULL, 16);
			}
			struct chip *c = find(card, chip);
			if (c && process && c->nprocesses < PROCESSES) {
				c->process[c->nprocesses].proc_id = pid;
				c->process[c->nprocesses++].proc_mem_usage = mem << 20;
			} else if (c && !process && c->ncodes < CODES) c->codes[c->ncodes++] = code;
		} else if (!strcmp(first, "link") && nlinks < LINKS) {
			char *a = strtok_r(NULL, " \n", &save), *b = strtok_r(NULL, " \n", &save);
			if (a && b) links[nlinks].a = atoi(a), links[nlinks++].b = atoi(b);
		} else if (!strcmp(first, "driver")) {
			if ((first = strtok_r(NULL, " \n", &save))) snprintf(driver, sizeof driver, "%s", first);
		} else if (!strcmp(first, "init")) {
			if ((first = strtok_r(NULL, " \n", &save))) init_code = atoi(first);
		} else instruct(first, save);
	}
}

#define CHIP ENTER; struct chip *c = find(card, dev); if (!c) return leave(-8007); if (c->silent) return leave(-8012)

int dcmi_init(void) { ENTER; return leave(init_code); }
int dcmi_get_driver_version(char *v, unsigned n) { ENTER; snprintf(v, n, "%s", driver); return leave(0); }
int dcmi_get_dcmi_version(char *v, unsigned n) { ENTER; snprintf(v, n, "24.1"); return leave(0); }
int dcmi_get_card_list(int *n, int *list, int len) {
	ENTER;
	*n = 0;
	for (int i = 0; i < nchips; i++) {
		int seen = 0;
		for (int k = 0; k < *n; k++) seen = seen || list[k] == chips[i].card;
		if (!seen && *n < len) list[(*n)++] = (int)chips[i].card;
	}
	return leave(0);
}
int dcmi_get_device_id_in_card(int card, int *max, int *mcu, int *cpu) {
	ENTER;
	*max = 0, *mcu = -1, *cpu = -1;
	for (int i = 0; i < nchips; i++)
		if (chips[i].card == card) (*max)++;
	return leave(0);
}
int dcmi_get_device_type(int card, int dev, int *type) { (void)card, (void)dev; ENTER; *type = 0; return leave(0); }
int dcmi_get_device_logic_id(int *logic, int card, int dev) { CHIP; *logic = (int)c->phy; return leave(0); }
int dcmi_get_device_phyid_from_logicid(unsigned logic, unsigned *phy) { ENTER; *phy = logic; return leave(0); }
int dcmi_get_device_die_v2(int card, int dev, int type, struct dcmi_die_id *id) {
	CHIP;
	if (type != 1) return leave(-8001);
	memset(id, 0, sizeof *id);
	if (c->die) id->soc_die[0] = 0xA1B2C3D4u, id->soc_die[4] = (unsigned)c->die;
	return leave(0);
}
int dcmi_get_device_chip_info_v2(int card, int dev, struct dcmi_chip_info_v2 *info) {
	CHIP;
	memset(info, 0, sizeof *info);
	snprintf((char *)info->chip_type, 32, "Ascend");
	snprintf((char *)info->chip_name, 32, "%s", c->name);
	snprintf((char *)info->npu_name, 32, "NA");
	return leave(0);
}
int dcmi_get_device_pcie_info_v2(int card, int dev, struct dcmi_pcie_info_all *p) {
	CHIP;
	memset(p, 0, sizeof *p);
	p->venderid = 0x19e5, p->deviceid = 0xd802, p->bdf_busid = (unsigned)c->bus;
	return leave(0);
}
int dcmi_get_device_info(int card, int dev, int main_cmd, unsigned int sub_cmd, void *buf, unsigned int *size) {
	CHIP;
	if (main_cmd != 12 || sub_cmd != 1 || c->sdid < 0) return leave(-8255);
	struct dcmi_spod_info place = {.sdid = (unsigned)c->sdid, .scale_type = 384, .super_pod_id = (unsigned)c->pod, .server_id = 1};
	if (*size < sizeof place) return leave(-8001);
	memcpy(buf, &place, *size = sizeof place);
	return leave(0);
}
int dcmi_get_device_hbm_info(int card, int dev, struct dcmi_hbm_info *h) {
	CHIP;
	*h = (struct dcmi_hbm_info){.memory_size = (unsigned long long)c->hbm, .freq = 1600, .memory_usage = (unsigned long long)c->used, .temp = (int)c->temp + 5};
	return leave(0);
}
int dcmi_get_device_ip(int card, int dev, int type, int port, struct dcmi_ip_addr *ip, struct dcmi_ip_addr *mask) {
	(void)port;
	CHIP;
	unsigned a, b, d, e;
	if (type != 1 || sscanf(c->ip, "%u.%u.%u.%u", &a, &b, &d, &e) != 4) return leave(-8255);
	memset(ip, 0, sizeof *ip), memset(mask, 0, sizeof *mask);
	ip->u_addr.ip4[0] = (unsigned char)a, ip->u_addr.ip4[1] = (unsigned char)b, ip->u_addr.ip4[2] = (unsigned char)d, ip->u_addr.ip4[3] = (unsigned char)e;
	memset(mask->u_addr.ip4, 255, 3);
	return leave(0);
}
int dcmi_get_device_health(int card, int dev, unsigned *health) { CHIP; *health = (unsigned)c->health; return leave(0); }
int dcmi_get_device_errorcode_v2(int card, int dev, int *n, unsigned *list, unsigned len) {
	CHIP;
	*n = c->ncodes < (int)len ? c->ncodes : (int)len;
	memcpy(list, c->codes, (unsigned)*n * sizeof *list);
	return leave(0);
}
int dcmi_get_device_network_health(int card, int dev, int *state) { CHIP; *state = (int)c->network; return leave(0); }
int dcmi_get_device_utilization_rate(int card, int dev, int type, unsigned *rate) {
	CHIP;
	if (type != 2 && type != 3) return leave(-8255);
	*rate = type == 2 ? (unsigned)c->util : 7;
	return leave(0);
}
int dcmi_get_device_power_info(int card, int dev, int *power) { CHIP; *power = (int)c->power; return leave(0); }
int dcmi_get_device_temperature(int card, int dev, int *t) { CHIP; *t = (int)c->temp; return leave(0); }
int dcmi_get_device_ecc_info(int card, int dev, int type, struct dcmi_ecc_info *e) {
	CHIP;
	if (type != 2) return leave(-8255);
	*e = (struct dcmi_ecc_info){.enable_flag = 1, .single_bit_error_cnt = 1, .double_bit_error_cnt = (unsigned)c->ecc, .single_bit_isolated_pages_cnt = 2};
	return leave(0);
}
int dcmi_get_device_resource_info(int card, int dev, struct dcmi_proc_mem_info *list, int *n) {
	CHIP;
	*n = c->nprocesses;
	memcpy(list, c->process, (unsigned)c->nprocesses * sizeof *list);
	return leave(0);
}
int dcmi_get_topo_info_by_device_id(int card, int dev, int card2, int dev2, int *kind) {
	(void)dev2;
	CHIP;
	*kind = 1;
	for (int i = 0; i < nlinks; i++)
		if ((links[i].a == card && links[i].b == card2) || (links[i].a == card2 && links[i].b == card)) *kind = 3;
	return leave(0);
}
