/* SPDX-License-Identifier: MIT */
#include "lab.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/auth.h"
#include "core/file.h"
#include "core/text.h"
#include "rig.h"
#include "sim_pdu.h"

#define LINE_BYTES     8192
#define GUEST_MS       120000
#define AGENT_WORDS    128
#define PASSWORD_BYTES 12

struct pp_lab {
	struct pp_rig *rig;
	struct pp_sim_pdu *pdu;
	struct pp_lab_drive drives[PP_RIG_DRIVES_MAX]; /* as configured, for `insert` */
	int drive_count;
	char control_socket[108];
	int control_fd, stop_fds[2];
	pthread_t control;
	bool control_runs;
};

/* ---- the outlet ------------------------------------------------------------------------- */

static int outlet_off(void *ctx, struct pp_error *err)
{
	return pp_rig_cut(ctx, err);
}

static int outlet_on(void *ctx, struct pp_error *err)
{
	return pp_rig_power_on(ctx, err);
}

static double outlet_watts(void *ctx)
{
	return pp_rig_watts(ctx);
}

/* ---- commands --------------------------------------------------------------------------- */

static void say(struct pp_buf *out, json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	pp_buf_addf(out, "%s\n", text ? text : "{\"ok\": false, \"error\": \"out of memory\"}");
	free(text);
	json_decref(body);
}

static void say_done(struct pp_buf *out, int rc, const struct pp_error *err)
{
	if (rc)
		say(out, json_pack("{s:b, s:s}", "ok", 0, "error", err->text));
	else
		say(out, json_pack("{s:b}", "ok", 1));
}

static void run_guest(struct pp_lab *lab, const char *line, struct pp_buf *out)
{
	struct pp_error err = { 0 };
	struct pp_buf output;
	int status = -1;

	pp_buf_init(&output, 16 << 20);
	if (pp_rig_guest(lab->rig, line, GUEST_MS, &output, &status, &err))
		say_done(out, -1, &err);
	else
		say(out, json_pack("{s:b, s:i, s:s#}", "ok", 1, "status", status, "output",
			output.data ? output.data : "", (int)output.bytes));
	pp_buf_release(&output);
}

typedef void command_fn(struct pp_lab *lab, const char *rest, struct pp_buf *out);

static void do_state(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	(void)rest;
	pp_rig_say_state(lab->rig, out);
}

static void do_drive(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	char serial[PP_LAB_SERIAL_BYTES];
	struct pp_error err = { 0 };
	size_t start = out->bytes;
	int n = 0;

	if (sscanf(rest, "%63s %n", serial, &n) != 1 || !rest[n]) {
		pp_fail(&err, PP_ERR_USAGE, "drive SERIAL COMMAND");
		say_done(out, -1, &err);
	} else if (pp_rig_drive_command(lab->rig, serial, rest + n, out, &err)) {
		out->bytes = start;
		say_done(out, -1, &err);
	}
}

static void do_reset(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	struct pp_error err = { 0 };

	(void)rest;
	say_done(out, pp_rig_reset(lab->rig, &err), &err);
}

static void do_kill_machine(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	struct pp_error err = { 0 };

	(void)rest;
	say_done(out, pp_rig_kill_machine(lab->rig, &err), &err);
}

static void do_kill_agent(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	(void)rest;
	run_guest(lab, pp_rig_kill_agent_line(lab->rig), out);
}

static const struct pp_lab_drive *configured(const struct pp_lab *lab, const char *serial)
{
	for (int i = 0; i < lab->drive_count; i++)
		if (!strcmp(lab->drives[i].serial, serial))
			return &lab->drives[i];
	return NULL;
}

static void do_swap(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	char serial[PP_LAB_SERIAL_BYTES], new_serial[PP_LAB_SERIAL_BYTES];
	const struct pp_lab_drive *old = NULL;
	struct pp_lab_drive drive;
	struct pp_error err = { 0 };
	uint64_t size_bytes = 0;
	int rc, n = sscanf(rest, "%63s %63s %" SCNu64, serial, new_serial, &size_bytes);

	if (n >= 2)
		old = configured(lab, serial);
	if (!old) {
		rc = pp_fail(&err, PP_ERR_USAGE, "swap SERIAL NEW-SERIAL [BYTES]");
	} else {
		drive = *old;
		strcpy(drive.serial, new_serial);
		if (n == 3)
			drive.size_bytes = size_bytes;
		rc = pp_rig_swap(lab->rig, serial, &drive, &err);
	}
	say_done(out, rc, &err);
}

static void do_remove(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	struct pp_error err = { 0 };

	say_done(out, pp_rig_swap(lab->rig, rest, NULL, &err), &err);
}

static void do_insert(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	const struct pp_lab_drive *drive = configured(lab, rest);
	struct pp_error err = { 0 };
	int rc = drive ? pp_rig_swap(lab->rig, rest, drive, &err)
		: pp_fail(&err, PP_ERR_USAGE, "no drive '%s'", rest);

	say_done(out, rc, &err);
}

static void do_no_boot(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	pp_rig_set_no_boot(lab->rig, rest[0] == '1');
	say_done(out, 0, NULL);
}

static void do_pdu(struct pp_lab *lab, const char *rest, struct pp_buf *out)
{
	struct pp_error err = { 0 };
	char flaw[32] = "";
	long long ms = 0;

	sscanf(rest, "%31s %lld", flaw, &ms);
	say_done(out, pp_sim_pdu_set_flaw(lab->pdu, flaw, ms, &err), &err);
}

static const struct {
	const char *name;
	command_fn *call;
} commands[] = {
	{ "state", do_state }, { "drive", do_drive }, { "guest", run_guest }, { "reset", do_reset },
	{ "kill-machine", do_kill_machine }, { "kill-agent", do_kill_agent }, { "swap", do_swap },
	{ "remove", do_remove }, { "insert", do_insert }, { "no-boot", do_no_boot },
	{ "pdu", do_pdu },
};

void pp_lab_command(struct pp_lab *lab, const char *line, struct pp_buf *out)
{
	size_t bytes = strcspn(line, " ");
	struct pp_error err = { 0 };

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strlen(commands[i].name) == bytes && !strncmp(commands[i].name, line, bytes)) {
			commands[i].call(lab, line[bytes] ? line + bytes + 1 : "", out);
			return;
		}
	pp_fail(&err, PP_ERR_USAGE, "the lab has no command '%.*s'", (int)bytes, line);
	say_done(out, -1, &err);
}

/* ---- control socket --------------------------------------------------------------------- */

/* Waits for input; false when the lab closes. */
static bool wait_for(struct pp_lab *lab, int fd)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
		{ .fd = lab->stop_fds[0], .events = POLLIN } };

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	return !p[1].revents;
}

static void serve(struct pp_lab *lab, int fd)
{
	static char line[LINE_BYTES]; /* one client at a time */
	size_t have = 0;
	ssize_t n;

	while (wait_for(lab, fd) && (n = read(fd, line + have, sizeof(line) - 1 - have)) > 0) {
		char *end;

		have += (size_t)n;
		while ((end = memchr(line, '\n', have))) {
			size_t used = (size_t)(end - line) + 1;
			struct pp_buf out;

			*end = '\0';
			pp_buf_init(&out, 64 << 20);
			pp_lab_command(lab, line, &out);
			pp_write_all(fd, out.data, out.bytes);
			pp_buf_release(&out);
			have -= used;
			memmove(line, line + used, have);
		}
		if (have == sizeof(line) - 1)
			break;
	}
	close(fd);
}

static void *control_thread(void *arg)
{
	struct pp_lab *lab = arg;

	while (wait_for(lab, lab->control_fd)) {
		int fd = accept4(lab->control_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			serve(lab, fd);
	}
	return NULL;
}

static int open_control(struct pp_lab *lab, struct pp_error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int rc;

	strcpy(at.sun_path, lab->control_socket);
	lab->control_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (lab->control_fd < 0 || bind(lab->control_fd, (struct sockaddr *)&at, sizeof(at))
	    || listen(lab->control_fd, 8))
		return pp_fail_os(err, errno, "cannot listen on '%s'", lab->control_socket);
	if (pipe2(lab->stop_fds, O_CLOEXEC))
		return pp_fail_os(err, errno, "cannot make a pipe");
	rc = pthread_create(&lab->control, NULL, control_thread, lab);
	lab->control_runs = !rc;
	return rc ? pp_fail_os(err, rc, "cannot start a thread") : 0;
}

int pp_lab_find_part(const char *name, char *out, size_t bytes, struct pp_error *err)
{
	static const char *const folders[] = { "", "../lib/plugpull/" };
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return pp_fail_os(err, errno, "cannot find the folder of this program");
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (pp_text_format(out, bytes, "%s%s%s", self, folders[i], name) && !access(out, R_OK))
			return 0;
	return pp_fail(err, PP_ERR_SYSTEM, "cannot find '%s' beside this program or in"
		" '%s../lib/plugpull'", name, self);
}

/* ---- open and close --------------------------------------------------------------------- */

static int write_password(const char *given, char *password, size_t bytes, const char *path,
	struct pp_error *err)
{
	unsigned char random[PASSWORD_BYTES];
	char line[256];

	if (given && strlen(given) >= bytes)
		return pp_fail(err, PP_ERR_USAGE, "the PDU's password is too long");
	if (!given && pp_random_bytes(random, sizeof(random), err))
		return -1;
	if (given)
		strcpy(password, given);
	for (size_t i = 0; !given && i < sizeof(random); i++)
		snprintf(password + 2 * i, 3, "%02x", random[i]);
	snprintf(line, sizeof(line), "%s\n", password);
	return pp_file_write(path, line, strlen(line), 0600, err);
}

/* The agent's command line, and the key as it lies in the guest. */
static int set_agent(struct pp_lab *lab, const struct pp_lab_config *config,
	const struct pp_lab_info *info, struct pp_error *err)
{
	const char *words[AGENT_WORDS] = { NULL };
	char control[64];
	struct pp_buf key;
	int n = 0, rc;

	pp_buf_init(&key, 4096);
	rc = pp_file_read(info->key_file, &key, err);
	snprintf(control, sizeof(control), "%s:%d", info->listen_address, info->listen_port);
	if (config->dut) {
		words[n++] = pp_rig_dut_path(lab->rig);
		words[n++] = "agent";
		words[n++] = "--control";
		words[n++] = control;
		words[n++] = "--key";
		words[n++] = pp_rig_key_path(lab->rig);
		for (int i = 0; i < config->drive_count; i++) {
			words[n++] = "--allow";
			words[n++] = config->drives[i].serial;
		}
		for (int i = 0; config->agent_words && config->agent_words[i] && n < AGENT_WORDS - 1; i++)
			words[n++] = config->agent_words[i];
	}
	if (!rc)
		rc = pp_rig_set_agent(lab->rig, words, key.data, key.bytes, err);
	pp_buf_release(&key);
	return rc;
}

static int open_rig(struct pp_lab *lab, const struct pp_lab_config *config, struct pp_error *err)
{
	struct pp_rig_config rig = { .kind = config->rig ? config->rig : "vm",
		.drives = config->drives, .drive_count = config->drive_count, .seed = config->seed,
		.image_dir = config->work_dir, .guest_tool = config->guest_tool, .plugin = config->plugin,
		.drive_tool = config->drive_tool, .dut = config->dut, .kernel_dir = config->kernel_dir,
		.accel = config->accel, .talk = config->talk };

	lab->rig = pp_rig_open(&rig, err);
	if (!lab->rig)
		return -1;
	memcpy(lab->drives, config->drives, (size_t)config->drive_count * sizeof(*config->drives));
	lab->drive_count = config->drive_count;
	return 0;
}

static int name_things(const struct pp_lab *lab, const struct pp_lab_config *config,
	struct pp_lab_info *info, struct pp_error *err)
{
	*info = (struct pp_lab_info){ .listen_port = config->agent_port ? config->agent_port
		: PP_LAB_AGENT_PORT };
	snprintf(info->run_dir, sizeof(info->run_dir), "%s", pp_rig_run_dir(lab->rig));
	snprintf(info->listen_address, sizeof(info->listen_address), "%s",
		pp_rig_host_address(lab->rig));
	snprintf(info->accel, sizeof(info->accel), "%s", pp_rig_accel(lab->rig));
	snprintf(info->password_file, sizeof(info->password_file), "%s/pdu.password", info->run_dir);
	if (config->control_socket && strlen(config->control_socket) >= sizeof(info->control_socket))
		return pp_fail_os(err, ENAMETOOLONG, "cannot use '%s'", config->control_socket);
	if (config->control_socket)
		strcpy(info->control_socket, config->control_socket);
	else
		snprintf(info->control_socket, sizeof(info->control_socket), "%s/control", info->run_dir);
	if (config->key_file)
		snprintf(info->key_file, sizeof(info->key_file), "%s", config->key_file);
	else
		snprintf(info->key_file, sizeof(info->key_file), "%s/key", info->run_dir);
	return 0;
}

struct pp_lab *pp_lab_open(const struct pp_lab_config *config, struct pp_lab_info *info,
	struct pp_error *err)
{
	struct pp_lab *lab = calloc(1, sizeof(*lab));
	struct pp_sim_pdu_config pdu = { 0 };
	char password[128];

	if (!lab) {
		pp_fail_os(err, ENOMEM, "cannot make a lab");
		return NULL;
	}
	lab->control_fd = lab->stop_fds[0] = lab->stop_fds[1] = -1;
	if (open_rig(lab, config, err) || name_things(lab, config, info, err))
		goto fail;
	if ((!config->key_file && pp_key_generate(info->key_file, err))
	    || set_agent(lab, config, info, err)
	    || write_password(config->password, password, sizeof(password), info->password_file, err))
		goto fail;
	pdu.outlet = (struct pp_sim_outlet){ lab->rig, outlet_off, outlet_on, outlet_watts };
	pdu.password = password;
	lab->pdu = pp_sim_pdu_start(&pdu, err);
	if (!lab->pdu)
		goto fail;
	snprintf(info->pdu_url, sizeof(info->pdu_url), "%s", pp_sim_pdu_url(lab->pdu));
	snprintf(info->pdu_id, sizeof(info->pdu_id), "%s", pp_sim_pdu_id(lab->pdu));
	strcpy(lab->control_socket, info->control_socket);
	if (open_control(lab, err))
		goto fail;
	return lab;
fail:
	pp_lab_close(lab);
	return NULL;
}

void pp_lab_close(struct pp_lab *lab)
{
	if (!lab)
		return;
	/* The power goes first: it ends a command that waits for the guest. */
	pp_sim_pdu_stop(lab->pdu);
	if (lab->rig)
		pp_rig_cut(lab->rig, NULL);
	if (lab->stop_fds[1] >= 0)
		close(lab->stop_fds[1]);
	if (lab->control_runs)
		pthread_join(lab->control, NULL);
	if (lab->stop_fds[0] >= 0)
		close(lab->stop_fds[0]);
	if (lab->control_fd >= 0) {
		close(lab->control_fd);
		unlink(lab->control_socket);
	}
	pp_rig_close(lab->rig);
	free(lab);
}
