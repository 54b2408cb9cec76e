/* SPDX-License-Identifier: MIT
 *
 * agent --control IP[:PORT] --key FILE --allow TARGET...: the machine under test waits for orders.
 */
#include "cmd_agent.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "src/campaign/agent.h"
#include "src/core/client.h"
#include "src/core/file.h"
#include "src/core/wire.h"

static const char usage[] =
	"Usage: plugpull-dut agent --control IP[:PORT] --key FILE --allow TARGET\n"
	"                          [OPTION]...\n"
	"Connects to the control host and does what it orders, for as long as it runs. It\n"
	"writes to allowed targets only; DATA THERE IS DESTROYED.\n"
	"\n"
	"      --control IP[:PORT]  numeric address of the control host (port 7333;\n"
	"                           [IPv6]:PORT)\n"
	"      --key FILE           the shared key (made by 'plugpull key')\n"
	"      --allow TARGET       what may be written to; may be given again and again:\n"
	"                           SERIAL  anything on the drive of this serial or WWN\n"
	"                           policy:SERIAL  the cache policy of this drive alone\n"
	"                           uuid:FSUUID  files on this file system\n"
	"                           FOLDER  files in this folder (an absolute path)\n"
	"      --name NAME          of the machine in the report (default: host name)\n"
	"      --install            run as a service from now on, at every boot\n"
	"      --uninstall          end and remove that service\n"
	"      --help               show this\n";

static void say(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "%s agent: %s\n", pp_program_name(), text);
}

static int hint(const char *what)
{
	fprintf(stderr, "%s agent: %s; try '%s agent --help'\n", pp_program_name(), what,
		pp_program_name());
	return 2;
}

static int parse_port(const char *text, uint16_t *port)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || value < 1 || value > 65535)
		return -1;
	*port = (uint16_t)value;
	return 0;
}

/* 192.0.2.1, 192.0.2.1:7333, 2001:db8::1, [2001:db8::1]:7333. */
static int parse_control(const char *text, struct pp_agent_config *config)
{
	const char *colon = strrchr(text, ':'), *start = text, *end = text + strlen(text);

	config->port = PP_WIRE_PORT;
	if (text[0] == '[') {
		start = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] && (end[1] != ':' || parse_port(end + 2, &config->port) != 0)))
			return -1;
	} else if (colon && strchr(text, ':') == colon) {
		end = colon;
		if (parse_port(colon + 1, &config->port) != 0)
			return -1;
	}
	if (end == start || (size_t)(end - start) >= sizeof(config->address))
		return -1;
	memcpy(config->address, start, (size_t)(end - start));
	config->address[end - start] = '\0';
	return pp_address_numeric(config->address) ? 0 : -1;
}

struct choice {
	struct pp_agent_config config;
	const char *control, *key, *name;
	const char *allow[PP_ALLOW_MAX];
	size_t allow_count;
	bool install, uninstall, service;
};

static int parse_options(int argc, char **argv, struct choice *choice)
{
	static const struct option options[] = {
		{ "control", required_argument, NULL, 'c' }, { "key", required_argument, NULL, 'k' },
		{ "allow", required_argument, NULL, 'a' }, { "name", required_argument, NULL, 'n' },
		{ "install", no_argument, NULL, 'i' }, { "uninstall", no_argument, NULL, 'u' },
		{ "once", no_argument, NULL, 'o' }, /* of write and verify */
		{ "service", no_argument, NULL, 's' }, /* an installed one says it of itself */
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	struct pp_error err;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'c': choice->control = optarg; break;
		case 'k': choice->key = optarg; break;
		case 'n': choice->name = optarg; break;
		case 'i': choice->install = true; break;
		case 'u': choice->uninstall = true; break;
		case 's': choice->service = true; break;
		case 'o': choice->config.once = true; break;
		case 'a':
			if (pp_allow_add(&choice->config.allow, optarg, &err) != 0)
				return hint(err.text);
			choice->allow[choice->allow_count++] = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return hint("bad option");
		}
	}
	if (optind < argc)
		return hint("expected options only");
	return -1;
}

/* The service starts us with the same options; its working folder is another. */
static int install(const struct choice *choice, struct pp_error *err)
{
	const char *arguments[2 * PP_ALLOW_MAX + 8];
	char key[4096];
	size_t i, n = 0;

	if (!pp_path_real(choice->key, key, sizeof(key)))
		return pp_fail(err, PP_ERR_USAGE, "cannot find the key file '%s'", choice->key);
	arguments[n++] = "agent";
	arguments[n++] = "--control";
	arguments[n++] = choice->control;
	arguments[n++] = "--key";
	arguments[n++] = key;
	for (i = 0; i < choice->allow_count; i++) {
		arguments[n++] = "--allow";
		arguments[n++] = choice->allow[i];
	}
	if (choice->name) {
		arguments[n++] = "--name";
		arguments[n++] = choice->name;
	}
	arguments[n] = NULL;
	return pp_agent_install(arguments, err);
}

static int serve(struct choice *choice, struct pp_error *err)
{
	choice->config.say = say;
	return pp_agent_serve(&choice->config, choice->service, err);
}

static int done(int rc, const struct pp_error *err)
{
	if (rc == 0)
		return 0;
	fprintf(stderr, "%s agent: %s\n", pp_program_name(), err->text);
	return 2;
}

int pp_cmd_agent(int argc, char **argv)
{
	static struct choice choice; /* large */
	struct pp_error err = { 0 };
	int rc;

	memset(&choice, 0, sizeof(choice));
	rc = parse_options(argc, argv, &choice);
	if (rc >= 0)
		return rc;
	if (choice.uninstall)
		return done(pp_agent_uninstall(&err), &err);
	if (!choice.control)
		return hint("--control is missing");
	if (parse_control(choice.control, &choice.config) != 0)
		return hint("--control must be a numeric address, perhaps with ':' and a port");
	if (!choice.key)
		return hint("--key is missing");
	if (choice.allow_count == 0)
		return hint("--allow is missing: nothing could be written to");
	if (choice.name && strlen(choice.name) >= sizeof(choice.config.name))
		return hint("--name is too long");
	if (choice.name)
		memcpy(choice.config.name, choice.name, strlen(choice.name) + 1);
	if (pp_key_load(choice.key, &choice.config.key, &err) != 0)
		return done(-1, &err);
	return done(choice.install ? install(&choice, &err) : serve(&choice, &err), &err);
}
