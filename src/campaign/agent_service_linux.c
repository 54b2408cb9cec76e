/* SPDX-License-Identifier: MIT
 *
 * The agent as a systemd service (systemd.service(5), systemd.unit(5)): it must come back by itself
 * after every cut, before anybody logs in. It does not wait for the network: it tries until there is
 * one, and each second of a boot is paid for at every cut.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "src/core/buf.h"
#include "src/core/file.h"
#include "src/core/subprocess.h"

#define UNIT_NAME "plugpull-agent.service"
#define UNIT_PATH "/etc/systemd/system/" UNIT_NAME

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

int pp_agent_serve(struct pp_agent_config *config, bool service, struct pp_error *err)
{
	struct sigaction action = { .sa_handler = on_signal };

	(void)service; /* systemd ends it by a signal as well */
	config->stop = &stop;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return pp_agent_run(config, err);
}

/* "word", with what systemd would take for its own (specifiers, variables) doubled. */
static int put_word(struct pp_buf *buf, const char *word, struct pp_error *err)
{
	const char *c;

	pp_buf_add(buf, " \"", 2);
	for (c = word; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return pp_fail(err, PP_ERR_USAGE, "an argument holds a control character, which a "
				"service cannot be given");
		if (*c == '"' || *c == '\\')
			pp_buf_add(buf, "\\", 1);
		if (*c == '%' || *c == '$')
			pp_buf_add(buf, c, 1);
		pp_buf_add(buf, c, 1);
	}
	pp_buf_add(buf, "\"", 1);
	return 0;
}

int pp_agent_unit_text(const char *binary, const char *const *arguments, struct pp_buf *buf,
	struct pp_error *err)
{
	size_t i;

	pp_buf_addf(buf, "[Unit]\n"
		"Description=plugpull agent: writes and scans for power-cut tests\n"
		"StartLimitIntervalSec=0\n"
		"\n"
		"[Service]\n"
		"ExecStart=");
	if (put_word(buf, binary, err) != 0)
		return -1;
	for (i = 0; arguments[i]; i++)
		if (put_word(buf, arguments[i], err) != 0)
			return -1;
	pp_buf_addf(buf, "\nRestart=always\n"
		"RestartSec=1\n"
		"OOMScoreAdjust=-900\n"
		"\n"
		"[Install]\n"
		"WantedBy=multi-user.target\n");
	return buf->failed ? pp_fail(err, PP_ERR_SYSTEM, "no memory for a service") : 0;
}

static int systemctl(const char *verb, const char *option, const char *unit, struct pp_error *err)
{
	const char *const argv[] = { "systemctl", verb, option ? option : unit,
		option ? unit : NULL, NULL };
	struct pp_subprocess what = { .argv = argv };
	struct pp_subprocess_result result;
	struct pp_buf out;
	int rc;

	pp_buf_init(&out, 400);
	what.out = &out;
	rc = pp_subprocess_run(&what, &result, err);
	if (rc == 0 && result.exit_status != 0)
		rc = pp_fail(err, PP_ERR_SYSTEM, "systemctl %s failed: %s", verb,
			out.data ? out.data : "no reason given");
	pp_buf_release(&out);
	return rc;
}

int pp_agent_install(const char *const *arguments, struct pp_error *err)
{
	char binary[PATH_MAX];
	struct pp_buf text;
	ssize_t n = readlink("/proc/self/exe", binary, sizeof(binary) - 1);
	int rc;

	if (n < 0)
		return pp_fail_os(err, errno, "cannot find this program's own file");
	binary[n] = '\0';
	pp_buf_init(&text, 1 << 16);
	rc = pp_agent_unit_text(binary, arguments, &text, err);
	if (rc == 0)
		rc = pp_file_write(UNIT_PATH, text.data, text.bytes, 0644, err);
	pp_buf_release(&text);
	if (rc != 0 || systemctl("daemon-reload", NULL, NULL, err) != 0)
		return -1;
	return systemctl("enable", "--now", UNIT_NAME, err);
}

int pp_agent_uninstall(struct pp_error *err)
{
	if (access(UNIT_PATH, F_OK) != 0)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not there: nothing is installed", UNIT_PATH);
	if (systemctl("disable", "--now", UNIT_NAME, err) != 0)
		return -1;
	if (unlink(UNIT_PATH) != 0)
		return pp_fail_os(err, errno, "cannot remove '%s'", UNIT_PATH);
	return systemctl("daemon-reload", NULL, NULL, err);
}
