/* SPDX-License-Identifier: MIT */
#include "netns.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

#define SLOTS      8192            /* /29 networks in 10.77.0.0/16 */
#define FAR_COUNT  5               /* addresses of the far end: 2 to 6 in its network */
#define BASE       0x0a4d0000u
#define NETNS_DIR  "/run/netns"
#define RUN_PARENT "/tmp"
#define RUN_PREFIX "plugpull-lab-"

/* $1 namespace, $2 our end of the cable, $3 run folder. Waits for the end of its input. nbdkit may
 * ignore SIGTERM while a silenced connection hangs, and the veth outlives `ip netns del`. */
static const char guard_script[] =
	"trap '' INT TERM HUP QUIT\n"
	"cat >/dev/null\n"
	"n=0\n"
	"while pids=$(ip netns pids \"$1\" 2>/dev/null) && [ -n \"$pids\" ] && [ $n -lt 200 ]; do\n"
	"	kill -9 $pids 2>/dev/null; n=$((n + 1)); sleep 0.02\n"
	"done\n"
	"ip link del \"$2\" 2>/dev/null\n"
	"ip netns del \"$1\" 2>/dev/null\n"
	"rm -rf -- \"$3\"\n";

static void name_ends(int slot, char host[16], char guest[16])
{
	snprintf(host, 16, "pp%dh", slot);
	snprintf(guest, 16, "pp%dg", slot);
}

static pid_t start_guard(const char *name, int slot, const char *run_dir, int stdin_fd,
	struct pp_error *err)
{
	char host[16], guest[16];
	const char *argv[] = { "sh", "-c", guard_script, "plugpull-lab-guard", name, host, run_dir,
		NULL };

	name_ends(slot, host, guest);
	return pp_child_start(argv, stdin_fd, NULL, err);
}

static bool address_in_use(in_addr_t address)
{
	struct ifaddrs *list, *i;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET
		    && ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr == address)
			found = true;
	freeifaddrs(list);
	return found;
}

/* A slot is ours while we hold the abstract socket of its name: the kernel lets go of it when we
 * die, whatever the way. */
static int take_slot(struct pp_netns *ns, struct pp_error *err)
{
	for (int i = 0; i < SLOTS; i++) {
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		struct in_addr address;
		int n, fd, slot = (int)(((unsigned)getpid() + (unsigned)i) % SLOTS);

		address.s_addr = htonl(BASE + (unsigned)slot * 8 + 1);
		if (address_in_use(address.s_addr))
			continue;
		fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return pp_fail_os(err, errno, "cannot make a socket");
		n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "plugpull-lab-%d", slot);
		if (bind(fd, (struct sockaddr *)&at,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
			close(fd);
			continue;
		}
		ns->slot = slot;
		ns->lock_fd = fd;
		inet_ntop(AF_INET, &address, ns->host_address, sizeof(ns->host_address));
		return 0;
	}
	return pp_fail(err, PP_ERR_SYSTEM, "no free network for the lab in 10.77.0.0/16");
}

static int run_ip(struct pp_error *err, const char *script, const char *a, const char *b,
	const char *c, const char *d)
{
	const char *argv[] = { "sh", "-ec", script, "ip", a, b, c, d, NULL };

	return pp_child_run(argv, NULL, err);
}

/* Address and length of the far end's network, as for ip-address(8). */
static void name_far(const struct pp_netns *ns, unsigned number, char out[24])
{
	struct in_addr address;
	char text[16];

	address.s_addr = htonl(BASE + (unsigned)ns->slot * 8 + 2 + number % FAR_COUNT);
	inet_ntop(AF_INET, &address, text, sizeof(text));
	snprintf(out, 24, "%s/29", text);
}

/* A socket stays in the namespace that its thread was in when it was made (setns(2)). */
static int open_socket(struct pp_netns *ns, struct pp_error *err)
{
	int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int other = open(ns->path, O_RDONLY | O_CLOEXEC);
	int rc = 0;

	if (own < 0 || other < 0 || setns(other, CLONE_NEWNET)) {
		rc = pp_fail_os(err, errno, "cannot enter '%s'", ns->path);
	} else {
		ns->socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (ns->socket_fd < 0)
			rc = pp_fail_os(err, errno, "cannot make a socket in '%s'", ns->path);
		if (setns(own, CLONE_NEWNET))
			rc = pp_fail_os(err, errno, "cannot leave '%s'", ns->path);
	}
	if (own >= 0)
		close(own);
	if (other >= 0)
		close(other);
	return rc;
}

int pp_netns_open(struct pp_netns *ns, struct pp_error *err)
{
	char host[16], guest[16], near_net[24], far_net[24];
	int ends[2];

	*ns = (struct pp_netns){ .lock_fd = -1, .guard_fd = -1, .socket_fd = -1,
		.guard = -1 };
	if (geteuid())
		return pp_fail(err, PP_ERR_REFUSED,
			"the lab needs root for a network namespace of its own (try sudo)");
	if (take_slot(ns, err))
		return -1;
	snprintf(ns->name, sizeof(ns->name), "pp-%d-%d", (int)getpid(), ns->slot);
	snprintf(ns->path, sizeof(ns->path), NETNS_DIR "/%s", ns->name);
	snprintf(ns->run_dir, sizeof(ns->run_dir), RUN_PARENT "/" RUN_PREFIX "%d-%d", (int)getpid(),
		ns->slot);
	name_ends(ns->slot, host, guest);
	snprintf(near_net, sizeof(near_net), "%s/29", ns->host_address);
	name_far(ns, 0, far_net);
	if (mkdir(ns->run_dir, 0700)) {
		pp_fail_os(err, errno, "cannot make '%s'", ns->run_dir);
		goto fail;
	}
	if (pipe2(ends, O_CLOEXEC)) {
		pp_fail_os(err, errno, "cannot make a pipe");
		goto fail;
	}
	ns->guard = start_guard(ns->name, ns->slot, ns->run_dir, ends[0], err);
	close(ends[0]);
	ns->guard_fd = ends[1];
	if (ns->guard < 0)
		goto fail;
	/* One orphan retry only: a killed machine's sockets must not live on into its next boot. */
	if (run_ip(err, "ip netns add $1; ip link add $2 type veth peer name $3 netns $1\n"
			"ip addr add $4 dev $2; ip link set $2 up; ip -n $1 link set lo up",
		    ns->name, host, guest, near_net)
	    || run_ip(err, "ip -n $1 addr add $3 dev $2; ip -n $1 link set $2 up\n"
			"nsenter --net=$4 sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries'",
		    ns->name, guest, far_net, ns->path)) {
		pp_fail_within(err, "cannot make the lab's network");
		goto fail;
	}
	if (open_socket(ns, err))
		goto fail;
	return 0;
fail:
	pp_netns_close(ns);
	return -1;
}

void pp_netns_close(struct pp_netns *ns)
{
	if (ns->socket_fd >= 0)
		close(ns->socket_fd);
	if (ns->guard_fd >= 0)
		close(ns->guard_fd);
	if (ns->guard > 0)
		while (waitpid(ns->guard, NULL, 0) < 0 && errno == EINTR)
			;
	else if (ns->run_dir[0])
		rmdir(ns->run_dir);
	if (ns->lock_fd >= 0)
		close(ns->lock_fd);
	*ns = (struct pp_netns){ .lock_fd = -1, .guard_fd = -1, .socket_fd = -1,
		.guard = -1 };
}

int pp_netns_link(const struct pp_netns *ns, bool up, struct pp_error *err)
{
	struct ifreq request = { 0 };
	char host[16], guest[16];

	name_ends(ns->slot, host, guest);
	memcpy(request.ifr_name, guest, sizeof(request.ifr_name));
	if (ioctl(ns->socket_fd, SIOCGIFFLAGS, &request))
		return pp_fail_os(err, errno, "cannot ask for the cable '%s'", guest);
	if (up)
		request.ifr_flags |= IFF_UP;
	else
		request.ifr_flags &= ~IFF_UP;
	return ioctl(ns->socket_fd, SIOCSIFFLAGS, &request)
		? pp_fail_os(err, errno, "cannot work the cable '%s'", guest) : 0;
}

int pp_netns_link_anew(const struct pp_netns *ns, unsigned number, struct pp_error *err)
{
	char host[16], guest[16], far_net[24];

	name_ends(ns->slot, host, guest);
	name_far(ns, number, far_net);
	return run_ip(err, "ip -n $1 addr flush dev $2; ip -n $1 addr add $3 dev $2\n"
		"ip -n $1 link set $2 up", ns->name, guest, far_net, NULL);
}

static void sweep_one(int pid, int slot)
{
	char name[32], run_dir[64];
	pid_t guard;

	if (kill(pid, 0) == 0 || errno != ESRCH)
		return;
	snprintf(name, sizeof(name), "pp-%d-%d", pid, slot);
	snprintf(run_dir, sizeof(run_dir), RUN_PARENT "/" RUN_PREFIX "%d-%d", pid, slot);
	guard = start_guard(name, slot, run_dir, -1, NULL); /* its input has ended already */
	if (guard > 0)
		while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
			;
}

/* Entries named PREFIX<pid>-<n>, and nothing after it. */
static void sweep_folder(const char *folder, const char *prefix)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *rest = entry->d_name + strlen(prefix);
		int pid, slot, end = 0;

		if (!strncmp(entry->d_name, prefix, strlen(prefix))
		    && sscanf(rest, "%d-%d%n", &pid, &slot, &end) == 2 && !rest[end] && pid > 0)
			sweep_one(pid, slot);
	}
	if (dir)
		closedir(dir);
}

void pp_netns_sweep(void)
{
	sweep_folder(NETNS_DIR, "pp-");
	sweep_folder(RUN_PARENT, RUN_PREFIX);
}
