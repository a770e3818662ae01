/*
 * Writes linux.txtar: the RDMA CM's commands and responses of Linux as a C
 * compiler lays them out by the kernel's own headers.
 *
 *	cc -Wall -I RDMA-CORE/kernel-headers linux.c -o linux && ./linux > linux.txtar
 *
 * with the headers of rdma-core 65, on a little-endian machine.
 */
#include <rdma/rdma_user_cm.h>
#include "golden.h"

/* struct sockaddr_ib, include/rdma/ib.h of the kernel, which is not in its uapi headers. */
struct sib {
	uint16_t family, pkey;
	uint32_t flowinfo;
	unsigned char addr[16];
	uint64_t sid, sid_mask, scope_id;
};

static void v6(void *p, const char *ip, uint16_t port, uint32_t flow, uint32_t scope)
{
	struct sockaddr_in6 a = { .sin6_family = 10, .sin6_port = htons(port), .sin6_flowinfo = htonl(flow), .sin6_scope_id = scope };

	inet_pton(AF_INET6, ip, &a.sin6_addr);
	memcpy(p, &a, sizeof a);
}

static void v4(void *p, const char *ip, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = 2, .sin_port = htons(port) };

	inet_pton(AF_INET, ip, &a.sin_addr);
	memcpy(p, &a, sizeof a);
}

static void ib(void *p, const unsigned char *gid)
{
	struct sib a = { .family = 27, .pkey = htons(PKEY), .flowinfo = htonl(FLOW), .sid = htobe64(0x0000000001061c06),
			 .sid_mask = htobe64(0xffffffffffff0000), .scope_id = 0x2122232425262728 };

	memcpy(a.addr, gid, 16);
	memcpy(p, &a, sizeof a);
}

static void user_path_rec(struct ib_user_path_rec *p)
{
	memcpy(p->dgid, gid2, 16);
	memcpy(p->sgid, gid1, 16);
	p->dlid = htons(DLID);
	p->slid = htons(SLID);
	p->flow_label = htonl(FLOW);
	p->pkey = htons(PKEY);
	USER_PATH_REC(*p);
}

/* The PathRecord of the SA, IBA 15.2.5.16, by hand. */
static void path_rec_data(struct ib_path_rec_data *p, uint32_t flags)
{
	unsigned char *w = (unsigned char *)p->path_rec;
	uint64_t sid = htobe64(0x0000000001061c06);
	uint16_t n;

	p->flags = flags;
	memcpy(w, &sid, 8);
	memcpy(w + 8, gid2, 16);
	memcpy(w + 24, gid1, 16);
	n = htons(DLID), memcpy(w + 40, &n, 2);
	n = htons(SLID), memcpy(w + 42, &n, 2);
	w[44] = 0x80 | FLOW >> 16, w[45] = FLOW >> 8 & 0xff, w[46] = FLOW & 0xff; /* raw traffic, flow label */
	w[47] = 64;            /* hop limit */
	w[48] = 0x20;          /* traffic class */
	w[49] = 0x80 | 3;      /* reversible, number of paths */
	n = htons(PKEY), memcpy(w + 50, &n, 2);
	n = htons(0x123 << 4 | 2), memcpy(w + 52, &n, 2); /* QoS class, SL */
	w[54] = 2 << 6 | 4;    /* MTU */
	w[55] = 1 << 6 | 7;    /* rate */
	w[56] = 3 << 6 | 18;   /* packet life time */
	w[57] = 9;             /* preference */
}

static void rows(void)
{
	section("offsets");
	SIZE(rdma_ucm_cmd_hdr), ROW(rdma_ucm_cmd_hdr, cmd), ROW(rdma_ucm_cmd_hdr, in), ROW(rdma_ucm_cmd_hdr, out);
	SIZE(rdma_ucm_create_id), ROW(rdma_ucm_create_id, uid), ROW(rdma_ucm_create_id, response), ROW(rdma_ucm_create_id, ps), ROW(rdma_ucm_create_id, qp_type), ROW(rdma_ucm_create_id, reserved);
	SIZE(rdma_ucm_create_id_resp), ROW(rdma_ucm_create_id_resp, id);
	SIZE(rdma_ucm_destroy_id), ROW(rdma_ucm_destroy_id, response), ROW(rdma_ucm_destroy_id, id), ROW(rdma_ucm_destroy_id, reserved);
	SIZE(rdma_ucm_destroy_id_resp), ROW(rdma_ucm_destroy_id_resp, events_reported);
	SIZE(rdma_ucm_bind_ip), ROW(rdma_ucm_bind_ip, response), ROW(rdma_ucm_bind_ip, addr), ROW(rdma_ucm_bind_ip, id);
	SIZE(rdma_ucm_bind), ROW(rdma_ucm_bind, id), ROW(rdma_ucm_bind, addr_size), ROW(rdma_ucm_bind, reserved), ROW(rdma_ucm_bind, addr);
	SIZE(rdma_ucm_resolve_ip), ROW(rdma_ucm_resolve_ip, src_addr), ROW(rdma_ucm_resolve_ip, dst_addr), ROW(rdma_ucm_resolve_ip, id), ROW(rdma_ucm_resolve_ip, timeout_ms);
	SIZE(rdma_ucm_resolve_addr), ROW(rdma_ucm_resolve_addr, id), ROW(rdma_ucm_resolve_addr, timeout_ms), ROW(rdma_ucm_resolve_addr, src_size), ROW(rdma_ucm_resolve_addr, dst_size), ROW(rdma_ucm_resolve_addr, reserved), ROW(rdma_ucm_resolve_addr, src_addr), ROW(rdma_ucm_resolve_addr, dst_addr);
	SIZE(rdma_ucm_resolve_route), ROW(rdma_ucm_resolve_route, id), ROW(rdma_ucm_resolve_route, timeout_ms);
	SIZE(rdma_ucm_query), ROW(rdma_ucm_query, response), ROW(rdma_ucm_query, id), ROW(rdma_ucm_query, option);
	SIZE(rdma_ucm_query_route_resp), ROW(rdma_ucm_query_route_resp, node_guid), ROW(rdma_ucm_query_route_resp, ib_route), ROW(rdma_ucm_query_route_resp, src_addr), ROW(rdma_ucm_query_route_resp, dst_addr), ROW(rdma_ucm_query_route_resp, num_paths), ROW(rdma_ucm_query_route_resp, port_num), ROW(rdma_ucm_query_route_resp, reserved), ROW(rdma_ucm_query_route_resp, ibdev_index), ROW(rdma_ucm_query_route_resp, reserved1);
	SIZE(rdma_ucm_query_addr_resp), ROW(rdma_ucm_query_addr_resp, node_guid), ROW(rdma_ucm_query_addr_resp, port_num), ROW(rdma_ucm_query_addr_resp, reserved), ROW(rdma_ucm_query_addr_resp, pkey), ROW(rdma_ucm_query_addr_resp, src_size), ROW(rdma_ucm_query_addr_resp, dst_size), ROW(rdma_ucm_query_addr_resp, src_addr), ROW(rdma_ucm_query_addr_resp, dst_addr), ROW(rdma_ucm_query_addr_resp, ibdev_index), ROW(rdma_ucm_query_addr_resp, reserved1);
	SIZE(rdma_ucm_query_path_resp), ROW(rdma_ucm_query_path_resp, num_paths), ROW(rdma_ucm_query_path_resp, reserved);
	SIZE(rdma_ucm_query_ib_service_resp), ROW(rdma_ucm_query_ib_service_resp, num_service_recs), ROW(rdma_ucm_query_ib_service_resp, reserved);
	CONN_PARAM_ROWS(rdma_ucm_conn_param, qkey);
	SIZE(rdma_ucm_ud_param), ROW(rdma_ucm_ud_param, qp_num), ROW(rdma_ucm_ud_param, qkey), ROW(rdma_ucm_ud_param, ah_attr), ROW(rdma_ucm_ud_param, private_data), ROW(rdma_ucm_ud_param, private_data_len), ROW(rdma_ucm_ud_param, reserved);
	SIZE(rdma_ucm_ece), ROW(rdma_ucm_ece, vendor_id), ROW(rdma_ucm_ece, attr_mod);
	SIZE(rdma_ucm_connect), ROW(rdma_ucm_connect, conn_param), ROW(rdma_ucm_connect, id), ROW(rdma_ucm_connect, reserved), ROW(rdma_ucm_connect, ece);
	SIZE(rdma_ucm_listen), ROW(rdma_ucm_listen, id), ROW(rdma_ucm_listen, backlog);
	SIZE(rdma_ucm_accept), ROW(rdma_ucm_accept, uid), ROW(rdma_ucm_accept, conn_param), ROW(rdma_ucm_accept, id), ROW(rdma_ucm_accept, reserved), ROW(rdma_ucm_accept, ece);
	SIZE(rdma_ucm_reject), ROW(rdma_ucm_reject, id), ROW(rdma_ucm_reject, private_data_len), ROW(rdma_ucm_reject, reason), ROW(rdma_ucm_reject, reserved), ROW(rdma_ucm_reject, private_data);
	SIZE(rdma_ucm_disconnect), ROW(rdma_ucm_disconnect, id);
	SIZE(rdma_ucm_init_qp_attr), ROW(rdma_ucm_init_qp_attr, response), ROW(rdma_ucm_init_qp_attr, id), ROW(rdma_ucm_init_qp_attr, qp_state);
	SIZE(rdma_ucm_notify), ROW(rdma_ucm_notify, id), ROW(rdma_ucm_notify, event);
	SIZE(rdma_ucm_join_ip_mcast), ROW(rdma_ucm_join_ip_mcast, response), ROW(rdma_ucm_join_ip_mcast, uid), ROW(rdma_ucm_join_ip_mcast, addr), ROW(rdma_ucm_join_ip_mcast, id);
	SIZE(rdma_ucm_join_mcast), ROW(rdma_ucm_join_mcast, response), ROW(rdma_ucm_join_mcast, uid), ROW(rdma_ucm_join_mcast, id), ROW(rdma_ucm_join_mcast, addr_size), ROW(rdma_ucm_join_mcast, join_flags), ROW(rdma_ucm_join_mcast, addr);
	SIZE(rdma_ucm_get_event), ROW(rdma_ucm_get_event, response);
	SIZE(rdma_ucm_event_resp), ROW(rdma_ucm_event_resp, uid), ROW(rdma_ucm_event_resp, id), ROW(rdma_ucm_event_resp, event), ROW(rdma_ucm_event_resp, status), ROW(rdma_ucm_event_resp, param), ROW(rdma_ucm_event_resp, reserved), ROW(rdma_ucm_event_resp, ece);
	SIZE(rdma_ucm_set_option), ROW(rdma_ucm_set_option, optval), ROW(rdma_ucm_set_option, id), ROW(rdma_ucm_set_option, level), ROW(rdma_ucm_set_option, optname), ROW(rdma_ucm_set_option, optlen);
	SIZE(rdma_ucm_migrate_id), ROW(rdma_ucm_migrate_id, response), ROW(rdma_ucm_migrate_id, id), ROW(rdma_ucm_migrate_id, fd);
	SIZE(rdma_ucm_ib_service), ROW(rdma_ucm_ib_service, service_id), ROW(rdma_ucm_ib_service, service_name), ROW(rdma_ucm_ib_service, flags), ROW(rdma_ucm_ib_service, reserved);
	SIZE(rdma_ucm_resolve_ib_service), ROW(rdma_ucm_resolve_ib_service, id), ROW(rdma_ucm_resolve_ib_service, reserved), ROW(rdma_ucm_resolve_ib_service, ibs);
	SIZE(rdma_ucm_write_cm_event), ROW(rdma_ucm_write_cm_event, id), ROW(rdma_ucm_write_cm_event, reserved), ROW(rdma_ucm_write_cm_event, event), ROW(rdma_ucm_write_cm_event, status), ROW(rdma_ucm_write_cm_event, param);
	USER_PATH_REC_ROWS(ib_user_path_rec);
	SIZE(ib_path_rec_data), ROW(ib_path_rec_data, flags), ROW(ib_path_rec_data, reserved), ROW(ib_path_rec_data, path_rec);
	SIZE(ib_user_service_rec), ROW(ib_user_service_rec, id), ROW(ib_user_service_rec, gid), ROW(ib_user_service_rec, pkey), ROW(ib_user_service_rec, reserved), ROW(ib_user_service_rec, lease), ROW(ib_user_service_rec, key), ROW(ib_user_service_rec, name), ROW(ib_user_service_rec, data_8), ROW(ib_user_service_rec, data_16), ROW(ib_user_service_rec, data_32), ROW(ib_user_service_rec, data_64);
	GLOBAL_ROUTE_ROWS(ib_uverbs_global_route);
	AH_ATTR_ROWS(ib_uverbs_ah_attr);
	QP_ATTR_ROWS(ib_uverbs_qp_attr);
}

/* Structures are static, so that they start as zeros, padding included. */
static void commands(void)
{
	static struct rdma_ucm_create_id create = { .uid = UID, .ps = RDMA_PS_IB, .qp_type = 2 };
	static struct rdma_ucm_destroy_id destroy = { .id = ID };
	static struct rdma_ucm_bind_ip bind_ip = { .id = ID }, bind_ip4 = { .id = ID };
	static struct rdma_ucm_bind bind = { .id = ID, .addr_size = 28 }, bind_ib = { .id = ID, .addr_size = 48 };
	static struct rdma_ucm_resolve_ip resolve_ip = { .id = ID, .timeout_ms = TIMEOUT }, resolve_ip4 = { .id = ID, .timeout_ms = TIMEOUT };
	static struct rdma_ucm_resolve_addr resolve_addr = { .id = ID, .timeout_ms = TIMEOUT, .src_size = 48, .dst_size = 48 };
	static struct rdma_ucm_resolve_addr resolve_addr4 = { .id = ID, .timeout_ms = TIMEOUT, .dst_size = 16 };
	static struct rdma_ucm_resolve_route resolve_route = { .id = ID, .timeout_ms = TIMEOUT };
	static struct rdma_ucm_query query = { .id = ID };
	static struct rdma_ucm_connect connect = { .id = ID };
	static struct rdma_ucm_listen listen = { .id = ID, .backlog = 128 };
	static struct rdma_ucm_accept accept = { .uid = UID, .id = ID }, rtu = { .id = ID };
	static struct rdma_ucm_reject reject = { .id = ID, .private_data_len = 148, .reason = 35 };
	static struct rdma_ucm_disconnect disconnect = { .id = ID };
	static struct rdma_ucm_init_qp_attr init = { .id = ID, .qp_state = 2 };
	static struct rdma_ucm_get_event get;
	static struct rdma_ucm_set_option option = { .id = ID, .level = RDMA_OPTION_IB, .optname = RDMA_OPTION_IB_PATH, .optlen = 72 };
	static struct rdma_ucm_notify notify = { .id = ID, .event = 4 };
	static struct rdma_ucm_join_ip_mcast join_ip = { .uid = UID, .id = ID };
	static struct rdma_ucm_join_mcast join = { .uid = UID, .id = ID, .addr_size = 48, .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER };
	static struct rdma_ucm_migrate_id migrate = { .id = ID, .fd = 9 };
	static struct rdma_ucm_resolve_ib_service service = { .id = ID, .ibs = { .service_id = 0x3132333435363738, .service_name = "storage", .flags = 3 } };
	static struct rdma_ucm_write_cm_event event = { .id = ID, .event = 18, .status = -110 };
	static struct ib_path_rec_data path;

	command("CREATE_ID", RDMA_USER_CM_CMD_CREATE_ID, sizeof create, 4, &create);
	command("DESTROY_ID", RDMA_USER_CM_CMD_DESTROY_ID, sizeof destroy, 4, &destroy);
	v6(&bind_ip.addr, "fd00::1", PORT, FLOW, 0);
	command("BIND_IP", RDMA_USER_CM_CMD_BIND_IP, sizeof bind_ip, 0, &bind_ip);
	v4(&bind_ip4.addr, "192.0.2.1", PORT);
	command("BIND_IP IPv4", RDMA_USER_CM_CMD_BIND_IP, sizeof bind_ip4, 0, &bind_ip4);
	v6(&resolve_ip.src_addr, "fe80::1", 0, 0, 3);
	v6(&resolve_ip.dst_addr, "fe80::2", PORT, FLOW, 3);
	command("RESOLVE_IP", RDMA_USER_CM_CMD_RESOLVE_IP, sizeof resolve_ip, 0, &resolve_ip);
	v4(&resolve_ip4.dst_addr, "192.0.2.2", PORT);
	command("RESOLVE_IP IPv4", RDMA_USER_CM_CMD_RESOLVE_IP, sizeof resolve_ip4, 0, &resolve_ip4);
	command("RESOLVE_ROUTE", RDMA_USER_CM_CMD_RESOLVE_ROUTE, sizeof resolve_route, 0, &resolve_route);
	command("QUERY_ROUTE", RDMA_USER_CM_CMD_QUERY_ROUTE, sizeof query, sizeof(struct rdma_ucm_query_route_resp), &query);
	CONN_PARAM(connect.conn_param, 56);
	connect.conn_param.qkey = 0x01234567;
	command("CONNECT", RDMA_USER_CM_CMD_CONNECT, offsetof(struct rdma_ucm_connect, ece), 0, &connect);
	connect.ece.vendor_id = 0x41424344, connect.ece.attr_mod = 0x51525354;
	command("CONNECT ECE", RDMA_USER_CM_CMD_CONNECT, sizeof connect, 0, &connect);
	command("LISTEN", RDMA_USER_CM_CMD_LISTEN, sizeof listen, 0, &listen);
	CONN_PARAM(accept.conn_param, 196);
	accept.conn_param.qkey = 0x01234567;
	command("ACCEPT", RDMA_USER_CM_CMD_ACCEPT, offsetof(struct rdma_ucm_accept, ece), 0, &accept);
	accept.ece.vendor_id = 0x41424344, accept.ece.attr_mod = 0x51525354;
	command("ACCEPT ECE", RDMA_USER_CM_CMD_ACCEPT, sizeof accept, 0, &accept);
	command("ACCEPT RTU", RDMA_USER_CM_CMD_ACCEPT, offsetof(struct rdma_ucm_accept, ece), 0, &rtu);
	fill(reject.private_data, 148);
	command("REJECT", RDMA_USER_CM_CMD_REJECT, sizeof reject, 0, &reject);
	command("DISCONNECT", RDMA_USER_CM_CMD_DISCONNECT, sizeof disconnect, 0, &disconnect);
	command("INIT_QP_ATTR", RDMA_USER_CM_CMD_INIT_QP_ATTR, sizeof init, sizeof(struct ib_uverbs_qp_attr), &init);
	command("GET_EVENT", RDMA_USER_CM_CMD_GET_EVENT, sizeof get, sizeof(struct rdma_ucm_event_resp), &get);
	command("SET_OPTION", RDMA_USER_CM_CMD_SET_OPTION, sizeof option, 0, &option);
	path_rec_data(&path, 0x2b);
	response("SET_OPTION value", &path, sizeof path);
	command("NOTIFY", RDMA_USER_CM_CMD_NOTIFY, sizeof notify, 0, &notify);
	v4(&join_ip.addr, "239.1.2.3", 0);
	command("JOIN_IP_MCAST", RDMA_USER_CM_CMD_JOIN_IP_MCAST, sizeof join_ip, 4, &join_ip);
	command("LEAVE_MCAST", RDMA_USER_CM_CMD_LEAVE_MCAST, sizeof destroy, 4, &destroy);
	command("MIGRATE_ID", RDMA_USER_CM_CMD_MIGRATE_ID, sizeof migrate, 4, &migrate);
	command("QUERY ADDR", RDMA_USER_CM_CMD_QUERY, sizeof query, sizeof(struct rdma_ucm_query_addr_resp), &query);
	query.option = RDMA_USER_CM_QUERY_PATH;
	command("QUERY PATH", RDMA_USER_CM_CMD_QUERY, sizeof query, 8 + 2 * sizeof(struct ib_path_rec_data), &query);
	query.option = RDMA_USER_CM_QUERY_GID;
	command("QUERY GID", RDMA_USER_CM_CMD_QUERY, sizeof query, sizeof(struct rdma_ucm_query_addr_resp), &query);
	query.option = RDMA_USER_CM_QUERY_IB_SERVICE;
	command("QUERY IB_SERVICE", RDMA_USER_CM_CMD_QUERY, sizeof query, 8 + sizeof(struct ib_user_service_rec), &query);
	v6(&bind.addr, "fd00::1", PORT, FLOW, 0);
	command("BIND", RDMA_USER_CM_CMD_BIND, sizeof bind, 0, &bind);
	ib(&bind_ib.addr, gid1);
	command("BIND AF_IB", RDMA_USER_CM_CMD_BIND, sizeof bind_ib, 0, &bind_ib);
	ib(&resolve_addr.src_addr, gid1);
	ib(&resolve_addr.dst_addr, gid2);
	command("RESOLVE_ADDR", RDMA_USER_CM_CMD_RESOLVE_ADDR, sizeof resolve_addr, 0, &resolve_addr);
	v4(&resolve_addr4.dst_addr, "192.0.2.2", PORT);
	command("RESOLVE_ADDR IPv4", RDMA_USER_CM_CMD_RESOLVE_ADDR, sizeof resolve_addr4, 0, &resolve_addr4);
	ib(&join.addr, gid2);
	command("JOIN_MCAST", RDMA_USER_CM_CMD_JOIN_MCAST, sizeof join, 4, &join);
	command("RESOLVE_IB_SERVICE", RDMA_USER_CM_CMD_RESOLVE_IB_SERVICE, sizeof service, 0, &service);
	event.param.arg = 0x6162636465666768;
	command("WRITE_CM_EVENT", RDMA_USER_CM_CMD_WRITE_CM_EVENT, sizeof event, 0, &event);
}

static void responses(void)
{
	static struct rdma_ucm_create_id_resp create = { ID };
	static struct rdma_ucm_destroy_id_resp destroy = { 5 };
	static struct rdma_ucm_migrate_resp migrate = { 5 };
	static struct rdma_ucm_query_route_resp route = { .node_guid = 0, .num_paths = 2, .port_num = 1, .ibdev_index = 7 };
	static struct rdma_ucm_query_route_resp route_ib = { .num_paths = 1, .port_num = 1 };
	static struct rdma_ucm_query_addr_resp addr = { .port_num = 1, .src_size = 28, .dst_size = 16, .ibdev_index = 7 }, gid = { .port_num = 1, .src_size = 48, .dst_size = 48, .ibdev_index = 7 };
	static struct { struct rdma_ucm_query_path_resp r; struct ib_path_rec_data p[2]; } paths = { .r = { .num_paths = 2 } };
	static struct { struct rdma_ucm_query_ib_service_resp r; struct ib_user_service_rec s; } services = { .r = { .num_service_recs = 4 } };
	static struct ib_uverbs_qp_attr qp;
	static struct rdma_ucm_event_resp conn = { .uid = UID, .id = ID, .event = 4, .ece = { 0x41424344, 0x51525354 } };
	static struct rdma_ucm_event_resp ud = { .uid = UID, .id = ID, .event = 9 };
	static struct rdma_ucm_event_resp err = { .uid = UID, .id = ID, .event = 7, .status = -110 };
	struct ib_user_service_rec *s = &services.s;
	unsigned char *small = (unsigned char *)&route_ib;
	static unsigned char whole[48];

	response("CREATE_ID response", &create, sizeof create);
	response("DESTROY_ID response", &destroy, sizeof destroy);
	response("MIGRATE_ID response", &migrate, sizeof migrate);
	route.node_guid = htobe64(0x0002c90300001200);
	user_path_rec(&route.ib_route[0]);
	user_path_rec(&route.ib_route[1]);
	route.ib_route[1].slid = htons(0x0607);
	v6(&route.src_addr, "fd00::1", 0x8001, 0, 0);
	v6(&route.dst_addr, "fd00::2", PORT, FLOW, 0);
	response("QUERY_ROUTE response", &route, sizeof route);
	/* ucma_query_route copies as many bytes of an AF_IB address as a sockaddr_in6 has. */
	user_path_rec(&route_ib.ib_route[0]);
	ib(whole, gid1), memcpy(small + offsetof(struct rdma_ucm_query_route_resp, src_addr), whole, 28);
	ib(whole, gid2), memcpy(small + offsetof(struct rdma_ucm_query_route_resp, dst_addr), whole, 28);
	response("QUERY_ROUTE AF_IB response", &route_ib, sizeof route_ib);
	addr.node_guid = gid.node_guid = htobe64(0x0002c90300001200);
	addr.pkey = gid.pkey = htons(PKEY);
	v6(&addr.src_addr, "fe80::1", 0x8001, FLOW, 3);
	v4(&addr.dst_addr, "192.0.2.2", PORT);
	response("QUERY ADDR response", &addr, sizeof addr);
	ib(&gid.src_addr, gid1);
	ib(&gid.dst_addr, gid2);
	response("QUERY GID response", &gid, sizeof gid);
	path_rec_data(&paths.p[0], 0x2b);
	path_rec_data(&paths.p[1], 0x2b);
	response("QUERY PATH response", &paths, sizeof paths);
	s->id = htobe64(0x3132333435363738), memcpy(s->gid, gid1, 16), s->pkey = htons(PKEY), s->lease = htonl(0x01020304);
	fill(s->key, 16), strcpy((char *)s->name, "storage"), fill(s->data_8, 16);
	for (int i = 0; i < 8; i++)
		s->data_16[i] = htons(0x1600 + i);
	for (int i = 0; i < 4; i++)
		s->data_32[i] = htonl(0x32000000 + i);
	for (int i = 0; i < 2; i++)
		s->data_64[i] = htobe64(0x6400000000000000 + i);
	response("QUERY IB_SERVICE response", &services, sizeof services);
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
	printf("Written by linux.c; see README.md. Offsets are: structure, offset, size, member.\n");
	rows();
	commands();
	responses();
	return 0;
}
