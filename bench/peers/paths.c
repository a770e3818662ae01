// Asks the SA for paths over libibumad, by GID, some of them in flight at a time:
// what BenchmarkOpenSM does over package sa.
//
//	paths FILE IN-FLIGHT QUERIES
//
// FILE has GIDs, one a line; the own is the first. It prints how many queries were
// answered in a second.
#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	max_gids = 1 << 16,
	// Components of a PathRecord (IBA 15.2.5.16).
	comp_dgid = 1 << 2,
	comp_sgid = 1 << 3,
	comp_reversible = 1 << 11,
	comp_numb_path = 1 << 12,
};

// path_record is the front of a PathRecord.
struct path_record {
	uint64_t service_id;
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint32_t hop_flow_raw;
	uint8_t tclass, numb_path; // the highest bit is Reversible
};

static uint8_t gids[max_gids][16];
static int gid_count;

static void die(const char *what)
{
	fprintf(stderr, "paths: %s\n", what);
	exit(1);
}

static void read_gids(const char *name)
{
	FILE *f = fopen(name, "r");
	if (!f)
		die("cannot read the GIDs");
	for (char line[64]; gid_count < max_gids && fscanf(f, "%63s", line) == 1; gid_count++)
		if (inet_pton(AF_INET6, line, gids[gid_count]) != 1)
			die("not a GID");
	fclose(f);
	if (gid_count < 2)
		die("fewer than two GIDs");
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// ask sends query number n.
static void ask(int port, int agent, void *umad, uint32_t n)
{
	struct umad_sa_packet *sa = umad_get_mad(umad);
	struct path_record *p = (void *)sa->data;
	sa->mad_hdr.tid = htobe64(n);
	memcpy(p->dgid, gids[1 + n % (gid_count - 1)], sizeof p->dgid);
	if (umad_send(port, agent, umad, sizeof *sa, 1000, 0) < 0)
		die("send failed");
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: paths FILE IN-FLIGHT QUERIES\n");
		return 2;
	}
	read_gids(argv[1]);
	const uint32_t in_flight = atoi(argv[2]);
	const uint32_t queries = atoi(argv[3]);

	umad_port_t info;
	if (umad_init() < 0 || umad_get_port(NULL, 0, &info) < 0)
		die("no port");
	int port = umad_open_port(NULL, 0);
	int agent = port < 0 ? -1 : umad_register(port, UMAD_CLASS_SUBN_ADM, UMAD_SA_CLASS_VERSION, 0, NULL);
	if (agent < 0)
		die("cannot register");
	void *out = umad_alloc(1, umad_size() + sizeof(struct umad_sa_packet));
	void *in = umad_alloc(1, umad_size() + sizeof(struct umad_sa_packet));
	if (!out || !in)
		die("no memory");
	umad_set_addr(out, info.sm_lid, 1, info.sm_sl, UMAD_QKEY);

	struct umad_sa_packet *sa = umad_get_mad(out);
	struct path_record *p = (void *)sa->data;
	sa->mad_hdr.base_version = UMAD_BASE_VERSION;
	sa->mad_hdr.mgmt_class = UMAD_CLASS_SUBN_ADM;
	sa->mad_hdr.class_version = UMAD_SA_CLASS_VERSION;
	sa->mad_hdr.method = UMAD_SA_METHOD_GET_TABLE;
	sa->mad_hdr.attr_id = htobe16(UMAD_SA_ATTR_PATH_REC);
	sa->comp_mask = htobe64(comp_dgid | comp_sgid | comp_reversible | comp_numb_path);
	memcpy(p->sgid, gids[0], sizeof p->sgid);
	p->numb_path = 0x80 | 1;

	uint32_t asked = 0, answered = 0;
	double begin = now();
	while (asked < in_flight && asked < queries)
		ask(port, agent, out, asked++);
	for (; answered < queries; answered++) {
		int length = sizeof(struct umad_sa_packet);
		if (umad_recv(port, in, &length, 10000) < 0 || umad_status(in) != 0)
			die("no answer");
		const struct umad_sa_packet *r = umad_get_mad(in);
		const struct path_record *path = (const void *)r->data;
		uint32_t n = be64toh(r->mad_hdr.tid);
		if (r->mad_hdr.status != 0 || n >= asked || path->dlid == 0 ||
		    memcmp(path->dgid, gids[1 + n % (gid_count - 1)], sizeof path->dgid) != 0)
			die("not the answer");
		if (asked < queries)
			ask(port, agent, out, asked++);
	}
	printf("%.6g\n", answered / (now() - begin));
	umad_unregister(port, agent);
	umad_close_port(port);
	umad_done();
	return 0;
}
