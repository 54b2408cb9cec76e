/* SPDX-License-Identifier: MIT
 *
 * Network and nbd in the guest. Debian's nbd-client needs GnuTLS and cannot give a device an
 * identity, so this speaks for itself: the NBD handshake (github.com/NetworkBlockDevice/nbd,
 * doc/proto.md, fixed newstyle, NBD_OPT_GO), then generic netlink (linux/nbd-netlink.h).
 */
#include "guest.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/nbd-netlink.h>
#include <linux/nbd.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/file.h"

static void set_sin(struct sockaddr *where, in_addr_t address)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = address };

	memcpy(where, &sin, sizeof(sin));
}

static int link_up(int fd, const char *name, in_addr_t address, in_addr_t mask)
{
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	set_sin(&r.ifr_addr, address);
	if (ioctl(fd, SIOCSIFADDR, &r))
		return -1;
	set_sin(&r.ifr_netmask, mask);
	if (ioctl(fd, SIOCSIFNETMASK, &r))
		return -1;
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &r);
}

int guest_network_up(const char *address, int prefix_bits, const char *gateway,
	struct pp_error *err)
{
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot make a socket");
	set_sin(&route.rt_dst, INADDR_ANY);
	set_sin(&route.rt_genmask, INADDR_ANY);
	set_sin(&route.rt_gateway, inet_addr(gateway));
	if (link_up(fd, "lo", htonl(INADDR_LOOPBACK), htonl(0xff000000)))
		rc = pp_fail_os(err, errno, "cannot bring up 'lo'");
	else if (link_up(fd, "eth0", inet_addr(address), htonl(~0u << (32 - prefix_bits))))
		rc = pp_fail_os(err, errno, "cannot bring up 'eth0'");
	else if (ioctl(fd, SIOCADDRT, &route))
		rc = pp_fail_os(err, errno, "cannot set the route by '%s'", gateway);
	close(fd);
	return rc;
}

/* ---- handshake -------------------------------------------------------------------------- */

#define NBD_MAGIC      0x4e42444d41474943ull
#define IHAVEOPT       0x49484156454f5054ull
#define OPT_REPLY      0x0003e889045565a9ull
#define OPT_GO         7
#define REP_ACK        1
#define REP_INFO       3
#define INFO_EXPORT    0
#define FIXED_NEWSTYLE 1
#define NO_ZEROES      2

struct export {
	uint64_t size_bytes;
	uint16_t flags;
};

static int get(int fd, void *data, size_t bytes)
{
	for (char *at = data; bytes;) {
		ssize_t n = recv(fd, at, bytes, MSG_WAITALL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : ECONNRESET;
			return -1;
		}
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

struct greeting { uint64_t magic, have_opt; uint16_t flags; } __attribute__((packed));
struct request { uint32_t client_flags; uint64_t have_opt; uint32_t option, bytes, name_bytes;
	uint16_t infos; } __attribute__((packed));
struct reply { uint64_t magic; uint32_t option, type, bytes; } __attribute__((packed));
struct export_info { uint16_t type; uint64_t size_bytes; uint16_t flags; } __attribute__((packed));

/* Asks for an export by name ("" is the drive). */
static int ask(int fd, const char *name)
{
	uint32_t bytes = (uint32_t)strlen(name);
	struct request go = { htobe32(FIXED_NEWSTYLE | NO_ZEROES), htobe64(IHAVEOPT), htobe32(OPT_GO),
		htobe32(6 + bytes), htobe32(bytes), 0 };
	char text[sizeof(go) + 64];
	size_t front = offsetof(struct request, infos);

	memcpy(text, &go, front);
	memcpy(text + front, name, bytes);
	memcpy(text + front + bytes, &go.infos, sizeof(go.infos));
	return pp_write_all(fd, text, sizeof(go) + bytes);
}

static int handshake(int fd, const char *name, struct export *out, struct pp_error *err)
{
	struct greeting hello;
	struct reply reply;
	char data[1024];

	out->size_bytes = 0;
	if (get(fd, &hello, sizeof(hello)))
		return pp_fail_os(err, errno, "cannot read the greeting of the drive");
	if (be64toh(hello.magic) != NBD_MAGIC || be64toh(hello.have_opt) != IHAVEOPT
	    || !(be16toh(hello.flags) & FIXED_NEWSTYLE))
		return pp_fail(err, PP_ERR_PEER, "the drive does not speak fixed newstyle NBD");
	if (ask(fd, name))
		return pp_fail_os(err, errno, "cannot ask the drive for its export");
	for (;;) {
		struct export_info info;

		if (get(fd, &reply, sizeof(reply)))
			return pp_fail_os(err, errno, "cannot read the answer of the drive");
		if (be64toh(reply.magic) != OPT_REPLY || be32toh(reply.bytes) > sizeof(data))
			return pp_fail(err, PP_ERR_PEER, "the drive's answer is not NBD");
		if (get(fd, data, be32toh(reply.bytes)))
			return pp_fail_os(err, errno, "cannot read the answer of the drive");
		if (be32toh(reply.type) == REP_ACK)
			break;
		if (be32toh(reply.type) != REP_INFO)
			return pp_fail(err, PP_ERR_PEER, "the drive refused its export (%#x)",
				be32toh(reply.type));
		memcpy(&info, data, sizeof(info));
		if (be32toh(reply.bytes) == sizeof(info) && be16toh(info.type) == INFO_EXPORT) {
			out->size_bytes = be64toh(info.size_bytes);
			out->flags = be16toh(info.flags);
		}
	}
	if (!out->size_bytes)
		return pp_fail(err, PP_ERR_PEER, "the drive did not say its size");
	return 0;
}

/* ---- generic netlink -------------------------------------------------------------------- */

struct message {
	struct nlmsghdr head;
	struct genlmsghdr genl;
	char attributes[512];
};

static struct nlattr *add(struct message *m, int type, const void *data, size_t bytes)
{
	struct nlattr *a = (struct nlattr *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + bytes);
	if (bytes)
		memcpy((char *)a + NLA_HDRLEN, data, bytes);
	m->head.nlmsg_len = (uint32_t)((char *)a - (char *)m) + NLA_ALIGN(a->nla_len);
	return a;
}

static void add_u32(struct message *m, int type, uint32_t value)
{
	add(m, type, &value, sizeof(value));
}

static void add_u64(struct message *m, int type, uint64_t value)
{
	add(m, type, &value, sizeof(value));
}

static void close_nest(struct message *m, struct nlattr *nest)
{
	nest->nla_type |= NLA_F_NESTED;
	nest->nla_len = (uint16_t)((char *)m + m->head.nlmsg_len - (char *)nest);
}

static void begin(struct message *m, int family, int command)
{
	memset(m, 0, sizeof(*m));
	m->head.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	m->head.nlmsg_type = (uint16_t)family;
	m->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	m->genl.cmd = (uint8_t)command;
	m->genl.version = 1;
}

/* Sends, then reads up to the acknowledgement. A reply that comes before it is handed to `see`. */
static int transact(int fd, struct message *m, void (*see)(const struct message *, void *),
	void *ctx)
{
	char data[4096] __attribute__((aligned(8)));

	if (send(fd, m, m->head.nlmsg_len, 0) < 0)
		return -1;
	for (;;) {
		ssize_t n = recv(fd, data, sizeof(data), 0);
		struct nlmsghdr *h = (struct nlmsghdr *)data;

		if (n < 0)
			return -1;
		for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
				return errno ? -1 : 0;
			}
			if (see)
				see((struct message *)h, ctx);
		}
	}
}

static void see_family(const struct message *m, void *ctx)
{
	size_t left = m->head.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN);
	const char *at = m->attributes;

	while (left >= NLA_HDRLEN) {
		const struct nlattr *a = (const struct nlattr *)at;
		size_t step = NLA_ALIGN(a->nla_len);

		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			memcpy(ctx, at + NLA_HDRLEN, sizeof(uint16_t));
		if (a->nla_len < NLA_HDRLEN || step > left)
			return;
		at += step;
		left -= step;
	}
}

/* A socket, and the number that this kernel gave to the family "nbd". */
static int open_family(uint16_t *family, struct pp_error *err)
{
	struct message m;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open generic netlink");
	*family = 0;
	begin(&m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	add(&m, CTRL_ATTR_FAMILY_NAME, NBD_GENL_FAMILY_NAME, sizeof(NBD_GENL_FAMILY_NAME));
	if (!transact(fd, &m, see_family, family) && *family)
		return fd;
	pp_fail_os(err, errno, "this kernel has no nbd (module nbd not loaded?)");
	close(fd);
	return -1;
}

static int connect_to(const char *ip, int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = inet_addr(ip) };
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
		return fd;
	close(fd);
	return -1;
}

static int hand_over(int index, int sock, const struct export *export, const char *serial,
	int block_bytes, struct pp_error *err)
{
	struct message m;
	struct nlattr *list, *item;
	uint16_t family;
	int rc, fd = open_family(&family, err);

	if (fd < 0)
		return -1;
	begin(&m, family, NBD_CMD_CONNECT);
	add_u32(&m, NBD_ATTR_INDEX, (uint32_t)index);
	add_u64(&m, NBD_ATTR_SIZE_BYTES, export->size_bytes);
	add_u64(&m, NBD_ATTR_BLOCK_SIZE_BYTES, (uint64_t)block_bytes);
	add_u64(&m, NBD_ATTR_SERVER_FLAGS, export->flags);
	add(&m, NBD_ATTR_BACKEND_IDENTIFIER, serial, strlen(serial) + 1);
	list = add(&m, NBD_ATTR_SOCKETS, NULL, 0);
	item = add(&m, NBD_SOCK_ITEM, NULL, 0);
	add_u32(&m, NBD_SOCK_FD, (uint32_t)sock);
	close_nest(&m, item);
	close_nest(&m, list);
	rc = transact(fd, &m, NULL, NULL);
	if (rc)
		pp_fail_os(err, errno, "cannot attach '%s' as /dev/nbd%d", serial, index);
	close(fd);
	return rc;
}

int guest_nbd_attach(int index, const char *ip, int port, const char *serial, int block_bytes,
	struct pp_error *err)
{
	struct export export;
	int rc, fd = connect_to(ip, port);

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot reach the drive '%s' at %s:%d", serial, ip, port);
	rc = handshake(fd, "", &export, err);
	if (!rc)
		rc = hand_over(index, fd, &export, serial, block_bytes, err);
	close(fd); /* the kernel holds the socket itself */
	return rc;
}

int guest_nbd_cache(const char *ip, int port, const char *word, bool *on, struct pp_error *err)
{
	const char *name = !word ? PP_LAB_EXPORT_ASK : !strcmp(word, "on") ? PP_LAB_EXPORT_ON
		: PP_LAB_EXPORT_OFF;
	struct export export;
	int rc, fd = connect_to(ip, port);

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot reach the drive at %s:%d", ip, port);
	rc = handshake(fd, name, &export, err);
	close(fd);
	*on = !rc && (export.flags & NBD_FLAG_SEND_FLUSH);
	return rc;
}

int guest_nbd_detach(int index, struct pp_error *err)
{
	struct message m;
	uint16_t family;
	int rc, fd = open_family(&family, err);

	if (fd < 0)
		return -1;
	begin(&m, family, NBD_CMD_DISCONNECT);
	add_u32(&m, NBD_ATTR_INDEX, (uint32_t)index);
	rc = transact(fd, &m, NULL, NULL);
	if (rc)
		pp_fail_os(err, errno, "cannot detach /dev/nbd%d", index);
	close(fd);
	return rc;
}
