/*
 * What the two programs that write the golden files have in common: how a
 * structure is printed, and the values that go in. The values are those of
 * golden_test.go.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A section of the file. */
static void section(const char *name) { printf("-- %s --\n", name); }

/* A row of a structure: what the compiler says of a member. */
static void row(const char *st, size_t off, size_t size, const char *member)
{
	printf("# %s %zu %zu %s\n", st, off, size, member);
}
#define ROW(st, m) row(#st, offsetof(struct st, m), sizeof(((struct st *)0)->m), #m)
#define SIZE(st) printf("# %s %zu\n", #st, sizeof(struct st))

static void hex(const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		printf("%02x%s", b[i], i % 16 == 15 || i == n - 1 ? "\n" : " ");
}

/* A command: its header, and the first in bytes of its structure. */
static void command(const char *name, uint32_t cmd, uint16_t in, uint16_t out, const void *p)
{
	struct { uint32_t cmd; uint16_t in, out; } hdr = { cmd, in, out };

	section(name);
	hex(&hdr, sizeof hdr);
	hex(p, in);
}

static void response(const char *name, const void *p, size_t n)
{
	section(name);
	hex(p, n);
}

#define ID 0x01020304u
#define UID 0x1112131415161718ull
#define TIMEOUT 2000
#define PORT 7174

static const unsigned char gid1[16] = { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x12, 0x01 };
static const unsigned char gid2[16] = { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x12, 0x02 };

/* Fields of a path record. dlid and so on are numbers; how they are stored, the caller knows. */
#define DLID 0x0203
#define SLID 0x0405
#define FLOW 0x000abcdeu
#define PKEY 0xfffe

/* n bytes 0xb0, 0xb1... */
static void fill(void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((unsigned char *)p)[i] = 0xb0 + i;
}

/* The members that both systems' structures have, by the same names. */
#define CONN_PARAM(p, len) do { \
	(p).qp_num = 0x00123456; \
	fill((p).private_data, len); (p).private_data_len = len; \
	(p).srq = 1; (p).responder_resources = 3; (p).initiator_depth = 4; (p).flow_control = 1; \
	(p).retry_count = 7; (p).rnr_retry_count = 6; (p).valid = 1; \
} while (0)

#define AH_ATTR(a) do { \
	memcpy((a).grh.dgid, gid2, 16); (a).grh.flow_label = FLOW; \
	(a).grh.sgid_index = 5; (a).grh.hop_limit = 64; (a).grh.traffic_class = 0x20; \
	(a).dlid = DLID; (a).sl = 2; (a).src_path_bits = 1; (a).static_rate = 3; (a).is_global = 1; (a).port_num = 1; \
} while (0)

#define UD_PARAM(p) do { \
	(p).qp_num = 0x00123456; (p).qkey = 0x01234567; AH_ATTR((p).ah_attr); \
	fill((p).private_data, 180); (p).private_data_len = 180; \
} while (0)

/* All but what has an order of its own: gids, lids, flow_label, pkey. */
#define USER_PATH_REC(p) do { \
	(p).raw_traffic = 1; (p).reversible = 1; (p).mtu = 4; (p).hop_limit = 64; (p).traffic_class = 0x20; \
	(p).numb_path = 3; (p).sl = 2; (p).mtu_selector = 2; (p).rate_selector = 1; (p).rate = 7; \
	(p).packet_life_time_selector = 3; (p).packet_life_time = 18; (p).preference = 9; \
} while (0)

#define QP_ATTR(q) do { \
	(q).qp_attr_mask = 0x00123456; (q).qp_state = 2; (q).cur_qp_state = 1; (q).path_mtu = 4; (q).path_mig_state = 1; \
	(q).qkey = 0x01234567; (q).rq_psn = 0x00abcdef; (q).sq_psn = 0x00fedcba; (q).dest_qp_num = 0x00123456; (q).qp_access_flags = 0x0e; \
	AH_ATTR((q).ah_attr); AH_ATTR((q).alt_ah_attr); (q).alt_ah_attr.dlid = SLID; \
	(q).max_send_wr = 11; (q).max_recv_wr = 12; (q).max_send_sge = 13; (q).max_recv_sge = 14; (q).max_inline_data = 15; \
	(q).pkey_index = 16; (q).alt_pkey_index = 17; (q).en_sqd_async_notify = 1; (q).sq_draining = 1; \
	(q).max_rd_atomic = 20; (q).max_dest_rd_atomic = 21; (q).min_rnr_timer = 22; (q).port_num = 1; \
	(q).timeout = 24; (q).retry_cnt = 7; (q).rnr_retry = 6; (q).alt_port_num = 2; (q).alt_timeout = 28; \
} while (0)

#define GLOBAL_ROUTE_ROWS(st) do { SIZE(st); ROW(st, dgid); ROW(st, flow_label); ROW(st, sgid_index); ROW(st, hop_limit); ROW(st, traffic_class); ROW(st, reserved); } while (0)
#define AH_ATTR_ROWS(st) do { SIZE(st); ROW(st, grh); ROW(st, dlid); ROW(st, sl); ROW(st, src_path_bits); ROW(st, static_rate); ROW(st, is_global); ROW(st, port_num); ROW(st, reserved); } while (0)
#define QP_ATTR_ROWS(st) do { SIZE(st); \
	ROW(st, qp_attr_mask); ROW(st, qp_state); ROW(st, cur_qp_state); ROW(st, path_mtu); ROW(st, path_mig_state); ROW(st, qkey); ROW(st, rq_psn); \
	ROW(st, sq_psn); ROW(st, dest_qp_num); ROW(st, qp_access_flags); ROW(st, ah_attr); ROW(st, alt_ah_attr); ROW(st, max_send_wr); ROW(st, max_recv_wr); \
	ROW(st, max_send_sge); ROW(st, max_recv_sge); ROW(st, max_inline_data); ROW(st, pkey_index); ROW(st, alt_pkey_index); ROW(st, en_sqd_async_notify); \
	ROW(st, sq_draining); ROW(st, max_rd_atomic); ROW(st, max_dest_rd_atomic); ROW(st, min_rnr_timer); ROW(st, port_num); ROW(st, timeout); \
	ROW(st, retry_cnt); ROW(st, rnr_retry); ROW(st, alt_port_num); ROW(st, alt_timeout); ROW(st, reserved); } while (0)
#define USER_PATH_REC_ROWS(st) do { SIZE(st); \
	ROW(st, dgid); ROW(st, sgid); ROW(st, dlid); ROW(st, slid); ROW(st, raw_traffic); ROW(st, flow_label); ROW(st, reversible); ROW(st, mtu); ROW(st, pkey); \
	ROW(st, hop_limit); ROW(st, traffic_class); ROW(st, numb_path); ROW(st, sl); ROW(st, mtu_selector); ROW(st, rate_selector); ROW(st, rate); \
	ROW(st, packet_life_time_selector); ROW(st, packet_life_time); ROW(st, preference); } while (0)
#define CONN_PARAM_ROWS(st, second) do { SIZE(st); \
	ROW(st, qp_num); ROW(st, second); ROW(st, private_data); ROW(st, private_data_len); ROW(st, srq); ROW(st, responder_resources); \
	ROW(st, initiator_depth); ROW(st, flow_control); ROW(st, retry_count); ROW(st, rnr_retry_count); ROW(st, valid); } while (0)
