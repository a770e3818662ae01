/*
 * Writes illumos.txtar: the RDMA CM's commands and responses of illumos.
 *
 *	cc -Wall illumos.c -o illumos && ./illumos > illumos.txtar
 *
 * on a little-endian machine. illumos' headers are not used: the structures below
 * were written from its sources' description of each member. The sources are in
 * illumos-gate, usr/src/uts/common/sys/ib/clients/of: rdma/rdma_user_cm.h,
 * sol_ucma/sol_rdma_user_cm.h, rdma/ib_user_verbs.h and rdma/ib_user_sa.h.
 */
#include "golden.h"

#pragma pack(1)

/* struct sockaddr_in6 of Solaris: 32 bytes. AF_INET6 is 26. */
struct sin6 {
	uint16_t family, port;
	uint32_t flowinfo;
	unsigned char addr[16];
	uint32_t scope_id, src_id;
};

struct rdma_ucm_cmd_hdr { uint32_t cmd; uint16_t in, out; };
struct rdma_ucm_create_id { uint64_t uid, response; uint16_t ps; uint8_t reserved[6]; };
struct rdma_ucm_create_id_resp { uint32_t id; };
struct rdma_ucm_destroy_id { uint64_t response; uint32_t id, reserved; };
struct rdma_ucm_destroy_id_resp { uint32_t events_reported; };
struct rdma_ucm_bind_addr { uint64_t response; struct sin6 addr; uint32_t id, reserved; };
struct rdma_ucm_resolve_addr { struct sin6 src_addr, dst_addr; uint32_t id, timeout_ms; };
struct rdma_ucm_resolve_route { uint32_t id, timeout_ms; };
struct rdma_ucm_query_route { uint64_t response; uint32_t id, reserved; };
struct ib_user_path_rec {
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint32_t raw_traffic, flow_label, reversible, mtu;
	uint16_t pkey;
	uint8_t hop_limit, traffic_class, numb_path, sl, mtu_selector, rate_selector, rate;
	uint8_t packet_life_time_selector, packet_life_time, preference;
};
struct rdma_ucm_query_route_resp {
	uint64_t node_guid;
	struct ib_user_path_rec ib_route[2];
	struct sin6 src_addr, dst_addr;
	uint32_t num_paths;
	uint8_t port_num, reserved[3];
};
struct rdma_ucm_conn_param {
	uint32_t qp_num, reserved;
	uint8_t private_data[256], private_data_len, srq, responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, valid;
};
struct ib_uverbs_global_route { uint8_t dgid[16]; uint32_t flow_label; uint8_t sgid_index, hop_limit, traffic_class, reserved; };
struct ib_uverbs_ah_attr {
	struct ib_uverbs_global_route grh;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port_num, reserved;
};
struct rdma_ucm_ud_param {
	uint32_t qp_num, qkey;
	struct ib_uverbs_ah_attr ah_attr;
	uint8_t private_data[256], private_data_len, reserved[7], reserved2[4];
};
struct rdma_ucm_connect { struct rdma_ucm_conn_param conn_param; uint32_t id, reserved; };
struct rdma_ucm_listen { uint32_t id, backlog; };
struct rdma_ucm_accept { uint64_t uid; struct rdma_ucm_conn_param conn_param; uint32_t id, reserved; };
struct rdma_ucm_reject { uint32_t id; uint8_t private_data_len, reserved[3], private_data[256]; };
struct rdma_ucm_disconnect { uint32_t id; };
struct rdma_ucm_init_qp_attr { uint64_t response; uint32_t id, qp_state; };
struct ib_uverbs_qp_attr {
	uint32_t qp_attr_mask, qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
	struct ib_uverbs_ah_attr ah_attr, alt_ah_attr;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
	uint8_t alt_port_num, alt_timeout, reserved[5];
};
struct rdma_ucm_notify { uint32_t id, event; };
struct rdma_ucm_join_mcast { uint64_t response, uid; struct sin6 addr; uint32_t id, reserved; };
struct rdma_ucm_get_event { uint64_t response; };
struct rdma_ucm_event_resp {
	uint64_t uid;
	uint32_t id, event;
	int32_t status;
	union { struct rdma_ucm_conn_param conn; struct rdma_ucm_ud_param ud; } param;
};
struct rdma_ucm_set_option { uint64_t optval; uint32_t id, level, optname, optlen; };
#pragma pack()

enum {
	CREATE_ID, DESTROY_ID, BIND_ADDR, RESOLVE_ADDR, RESOLVE_ROUTE, QUERY_ROUTE, CONNECT, LISTEN, ACCEPT, REJECT, DISCONNECT,
	INIT_QP_ATTR, GET_EVENT, GET_OPTION, SET_OPTION, NOTIFY, JOIN_MCAST, LEAVE_MCAST,
};

static void v6(struct sin6 *a, const char *ip, uint16_t port, uint32_t flow, uint32_t scope)
{
	a->family = 26;
	a->port = htons(port);
	a->flowinfo = htonl(flow);
	inet_pton(AF_INET6, ip, a->addr);
	a->scope_id = scope;
}

/* struct sockaddr_in is the same as elsewhere: family 2, port, address. */
static void v4(struct sin6 *a, const char *ip, uint16_t port)
{
	a->family = 2;
	a->port = htons(port);
	inet_pton(AF_INET, ip, &a->flowinfo);
}

/* A GID in host order: two numbers of 64 bits (sol_ib_cma.c, ibt_addsvect2sa_path). */
static void host_gid(uint8_t *p, const unsigned char *gid)
{
	for (int i = 0; i < 8; i++)
		p[i] = gid[7 - i], p[8 + i] = gid[15 - i];
}

static void user_path_rec(struct ib_user_path_rec *p)
{
	host_gid(p->dgid, gid2);
	host_gid(p->sgid, gid1);
	p->dlid = DLID;
	p->slid = SLID;
	p->flow_label = FLOW;
	p->pkey = htons(PKEY);
	USER_PATH_REC(*p);
}

static void rows(void)
{
	section("offsets");
	SIZE(rdma_ucm_cmd_hdr), ROW(rdma_ucm_cmd_hdr, cmd), ROW(rdma_ucm_cmd_hdr, in), ROW(rdma_ucm_cmd_hdr, out);
	SIZE(rdma_ucm_create_id), ROW(rdma_ucm_create_id, uid), ROW(rdma_ucm_create_id, response), ROW(rdma_ucm_create_id, ps), ROW(rdma_ucm_create_id, reserved);
	SIZE(rdma_ucm_create_id_resp), ROW(rdma_ucm_create_id_resp, id);
	SIZE(rdma_ucm_destroy_id), ROW(rdma_ucm_destroy_id, response), ROW(rdma_ucm_destroy_id, id), ROW(rdma_ucm_destroy_id, reserved);
	SIZE(rdma_ucm_destroy_id_resp), ROW(rdma_ucm_destroy_id_resp, events_reported);
	SIZE(rdma_ucm_bind_addr), ROW(rdma_ucm_bind_addr, response), ROW(rdma_ucm_bind_addr, addr), ROW(rdma_ucm_bind_addr, id), ROW(rdma_ucm_bind_addr, reserved);
	SIZE(rdma_ucm_resolve_addr), ROW(rdma_ucm_resolve_addr, src_addr), ROW(rdma_ucm_resolve_addr, dst_addr), ROW(rdma_ucm_resolve_addr, id), ROW(rdma_ucm_resolve_addr, timeout_ms);
	SIZE(rdma_ucm_resolve_route), ROW(rdma_ucm_resolve_route, id), ROW(rdma_ucm_resolve_route, timeout_ms);
	SIZE(rdma_ucm_query_route), ROW(rdma_ucm_query_route, response), ROW(rdma_ucm_query_route, id), ROW(rdma_ucm_query_route, reserved);
	SIZE(rdma_ucm_query_route_resp), ROW(rdma_ucm_query_route_resp, node_guid), ROW(rdma_ucm_query_route_resp, ib_route), ROW(rdma_ucm_query_route_resp, src_addr), ROW(rdma_ucm_query_route_resp, dst_addr), ROW(rdma_ucm_query_route_resp, num_paths), ROW(rdma_ucm_query_route_resp, port_num), ROW(rdma_ucm_query_route_resp, reserved);
	CONN_PARAM_ROWS(rdma_ucm_conn_param, reserved);
	SIZE(rdma_ucm_ud_param), ROW(rdma_ucm_ud_param, qp_num), ROW(rdma_ucm_ud_param, qkey), ROW(rdma_ucm_ud_param, ah_attr), ROW(rdma_ucm_ud_param, private_data), ROW(rdma_ucm_ud_param, private_data_len), ROW(rdma_ucm_ud_param, reserved), ROW(rdma_ucm_ud_param, reserved2);
	SIZE(rdma_ucm_connect), ROW(rdma_ucm_connect, conn_param), ROW(rdma_ucm_connect, id), ROW(rdma_ucm_connect, reserved);
	SIZE(rdma_ucm_listen), ROW(rdma_ucm_listen, id), ROW(rdma_ucm_listen, backlog);
	SIZE(rdma_ucm_accept), ROW(rdma_ucm_accept, uid), ROW(rdma_ucm_accept, conn_param), ROW(rdma_ucm_accept, id), ROW(rdma_ucm_accept, reserved);
	SIZE(rdma_ucm_reject), ROW(rdma_ucm_reject, id), ROW(rdma_ucm_reject, private_data_len), ROW(rdma_ucm_reject, reserved), ROW(rdma_ucm_reject, private_data);
	SIZE(rdma_ucm_disconnect), ROW(rdma_ucm_disconnect, id);
	SIZE(rdma_ucm_init_qp_attr), ROW(rdma_ucm_init_qp_attr, response), ROW(rdma_ucm_init_qp_attr, id), ROW(rdma_ucm_init_qp_attr, qp_state);
	SIZE(rdma_ucm_notify), ROW(rdma_ucm_notify, id), ROW(rdma_ucm_notify, event);
	SIZE(rdma_ucm_join_mcast), ROW(rdma_ucm_join_mcast, response), ROW(rdma_ucm_join_mcast, uid), ROW(rdma_ucm_join_mcast, addr), ROW(rdma_ucm_join_mcast, id), ROW(rdma_ucm_join_mcast, reserved);
	SIZE(rdma_ucm_get_event), ROW(rdma_ucm_get_event, response);
	SIZE(rdma_ucm_event_resp), ROW(rdma_ucm_event_resp, uid), ROW(rdma_ucm_event_resp, id), ROW(rdma_ucm_event_resp, event), ROW(rdma_ucm_event_resp, status), ROW(rdma_ucm_event_resp, param);
	SIZE(rdma_ucm_set_option), ROW(rdma_ucm_set_option, optval), ROW(rdma_ucm_set_option, id), ROW(rdma_ucm_set_option, level), ROW(rdma_ucm_set_option, optname), ROW(rdma_ucm_set_option, optlen);
	USER_PATH_REC_ROWS(ib_user_path_rec);
	GLOBAL_ROUTE_ROWS(ib_uverbs_global_route);
	AH_ATTR_ROWS(ib_uverbs_ah_attr);
	QP_ATTR_ROWS(ib_uverbs_qp_attr);
}

static void commands(void)
{
	static struct rdma_ucm_create_id create = { .uid = UID, .ps = 0x0106 };
	static struct rdma_ucm_destroy_id destroy = { .id = ID };
	static struct rdma_ucm_bind_addr bind = { .id = ID }, bind4 = { .id = ID };
	static struct rdma_ucm_resolve_addr resolve = { .id = ID, .timeout_ms = TIMEOUT }, resolve4 = { .id = ID, .timeout_ms = TIMEOUT };
	static struct rdma_ucm_resolve_route route = { .id = ID, .timeout_ms = TIMEOUT };
	static struct rdma_ucm_query_route query = { .id = ID };
	static struct rdma_ucm_connect connect = { .id = ID };
	static struct rdma_ucm_listen listen = { .id = ID, .backlog = 128 };
	static struct rdma_ucm_accept accept = { .uid = UID, .id = ID }, rtu = { .id = ID };
	static struct rdma_ucm_reject reject = { .id = ID, .private_data_len = 148 };
	static struct rdma_ucm_disconnect disconnect = { .id = ID };
	static struct rdma_ucm_init_qp_attr init = { .id = ID, .qp_state = 2 };
	static struct rdma_ucm_get_event get;
	static struct rdma_ucm_set_option option = { .id = ID, .level = 1, .optname = 1, .optlen = 72 };
	static struct rdma_ucm_notify notify = { .id = ID, .event = 4 };
	static struct rdma_ucm_join_mcast join = { .uid = UID, .id = ID };

	command("CREATE_ID", CREATE_ID, 24, 4, &create);
	command("DESTROY_ID", DESTROY_ID, 16, 4, &destroy);
	v6(&bind.addr, "fd00::1", PORT, FLOW, 0);
	command("BIND_IP", BIND_ADDR, 48, 0, &bind);
	v4(&bind4.addr, "192.0.2.1", PORT);
	command("BIND_IP IPv4", BIND_ADDR, 48, 0, &bind4);
	v6(&resolve.src_addr, "fe80::1", 0, 0, 3);
	v6(&resolve.dst_addr, "fe80::2", PORT, FLOW, 3);
	command("RESOLVE_IP", RESOLVE_ADDR, 72, 0, &resolve);
	v4(&resolve4.dst_addr, "192.0.2.2", PORT);
	command("RESOLVE_IP IPv4", RESOLVE_ADDR, 72, 0, &resolve4);
	command("RESOLVE_ROUTE", RESOLVE_ROUTE, 8, 0, &route);
	command("QUERY_ROUTE", QUERY_ROUTE, 16, 208, &query);
	CONN_PARAM(connect.conn_param, 56);
	command("CONNECT", CONNECT, 280, 0, &connect);
	command("LISTEN", LISTEN, 8, 0, &listen);
	CONN_PARAM(accept.conn_param, 196);
	command("ACCEPT", ACCEPT, 288, 0, &accept);
	command("ACCEPT RTU", ACCEPT, 288, 0, &rtu);
	fill(reject.private_data, 148);
	command("REJECT", REJECT, 264, 0, &reject);
	command("DISCONNECT", DISCONNECT, 4, 0, &disconnect);
	command("INIT_QP_ATTR", INIT_QP_ATTR, 16, 144, &init);
	command("GET_EVENT", GET_EVENT, 8, 328, &get);
	command("SET_OPTION", SET_OPTION, 24, 0, &option); /* which the driver always refuses */
	command("NOTIFY", NOTIFY, 8, 0, &notify);
	v4(&join.addr, "239.1.2.3", 0);
	command("JOIN_IP_MCAST", JOIN_MCAST, 56, 4, &join);
	command("LEAVE_MCAST", LEAVE_MCAST, 16, 4, &destroy);
}

static void responses(void)
{
	static struct rdma_ucm_create_id_resp create = { ID };
	static struct rdma_ucm_destroy_id_resp destroy = { 5 };
	static struct rdma_ucm_query_route_resp route = { .num_paths = 2, .port_num = 1 };
	static struct ib_uverbs_qp_attr qp;
	static struct rdma_ucm_event_resp conn = { .uid = UID, .id = ID, .event = 4 };
	static struct rdma_ucm_event_resp ud = { .uid = UID, .id = ID, .event = 9 };
	static struct rdma_ucm_event_resp err = { .uid = UID, .id = ID, .event = 7, .status = -145 };

	response("CREATE_ID response", &create, sizeof create);
	response("DESTROY_ID response", &destroy, sizeof destroy);
	route.node_guid = htobe64(0x0002c90300001200);
	user_path_rec(&route.ib_route[0]);
	user_path_rec(&route.ib_route[1]);
	route.ib_route[1].slid = 0x0607;
	v6(&route.src_addr, "fd00::1", 0x8001, 0, 0);
	v6(&route.dst_addr, "fd00::2", PORT, FLOW, 0);
	response("QUERY_ROUTE response", &route, sizeof route);
	QP_ATTR(qp);
	response("INIT_QP_ATTR response", &qp, sizeof qp);
	CONN_PARAM(conn.param.conn, 56);
	response("GET_EVENT connection response", &conn, sizeof conn);
	UD_PARAM(ud.param.ud);
	response("GET_EVENT UD response", &ud, sizeof ud);
	response("GET_EVENT error response", &err, sizeof err);
}

int main(void)
{
	printf("Written by illumos.c; see README.md. Offsets are: structure, offset, size, member.\n");
	rows();
	commands();
	responses();
	return 0;
}
