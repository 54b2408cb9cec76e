/* SPDX-License-Identifier: MIT
 *
 * A rack PDU behind Debian's snmpd ("pass" directive): mock_snmp DIR -g|-n|-s OID [TYPE VALUE]. DIR/oids
 * says what this device has, a line each, "OID control ON OFF" or "OID state ON OFF" or
 * "OID text WORDS"; DIR/relay holds on or off, DIR/mode a trouble: lie (takes it, does nothing), generr
 * (switches, and answers with an error), pending (state 99), gone (no such object).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[512];

static void get(const char *name, char *out, size_t bytes)
{
	char path[600];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	out[0] = '\0';
	if (file) {
		if (!fgets(out, (int)bytes, file))
			out[0] = '\0';
		fclose(file);
	}
	out[strcspn(out, "\n")] = '\0';
}

static void put(const char *name, const char *text)
{
	char path[600];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file)
		exit(1);
	fprintf(file, "%s\n", text);
	fclose(file);
}

struct row {
	char oid[256], kind[16], on[64], off[64];
};

static int find(const char *oid, struct row *row)
{
	char path[600], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/oids", dir);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		memset(row, 0, sizeof(*row));
		if (sscanf(line, "%255s %15s %63s %63s", row->oid, row->kind, row->on, row->off) >= 3 &&
		    strcmp(row->oid, oid) == 0) {
			fclose(file);
			return 1;
		}
	}
	if (file)
		fclose(file);
	return 0;
}

static int set(const char *oid, const struct row *row, const char *value, const char *mode)
{
	int on = strcmp(value, row->on) == 0, off = strcmp(value, row->off) == 0;

	if (strcmp(row->kind, "control") != 0) {
		puts("not-writable");
		return 0;
	}
	if (!on && !off) {
		puts("wrong-value");
		return 0;
	}
	put("last", oid);
	if (strcmp(mode, "lie") != 0)
		put("relay", on ? "on" : "off");
	puts(strcmp(mode, "generr") == 0 ? "gen-error" : "DONE");
	return 0;
}

int main(int argc, char **argv)
{
	char mode[32], relay[32];
	struct row row;

	if (argc < 4)
		return 2;
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	get("mode", mode, sizeof(mode));
	get("relay", relay, sizeof(relay));
	if (strcmp(argv[2], "-n") == 0 || strcmp(mode, "gone") == 0 || !find(argv[3], &row))
		return 0;
	if (strcmp(argv[2], "-s") == 0)
		return argc < 6 ? 2 : set(argv[3], &row, argv[5], mode);
	if (strcmp(row.kind, "text") == 0)
		printf("%s\nstring\n%s\n", argv[3], row.on);
	else
		printf("%s\ninteger\n%s\n", argv[3], strcmp(mode, "pending") == 0 ? "99" :
			strcmp(relay, "on") == 0 ? row.on : row.off);
	return 0;
}
