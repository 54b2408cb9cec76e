/* SPDX-License-Identifier: MIT
 *
 * The matrix as one JSON object (RFC 8259), written here since plugpull-dut has no library for it:
 * names and numbers come from one table (matrix.h).
 */
#include <math.h>
#include <string.h>

#include "matrix_host.h"
#include "matrix_show.h"
#include "src/core/buf.h"
#include "src/core/drive.h"
#include "src/core/link.h"
#include "src/core/text.h"
#include "version.h"

#define JSON_BYTES_MAX (16U << 20)

/* A string; bytes from 0x80 on go as they are, UTF-8 being what this program speaks. */
static void put_text(struct pp_buf *buf, const char *text)
{
	const char *at;

	pp_buf_add(buf, "\"", 1);
	for (at = text; *at; at++) {
		if (*at == '"' || *at == '\\')
			pp_buf_addf(buf, "\\%c", *at);
		else if ((unsigned char)*at < 0x20)
			pp_buf_addf(buf, "\\u%04x", (unsigned)*at);
		else
			pp_buf_add(buf, at, 1);
	}
	pp_buf_add(buf, "\"", 1);
}

/* The key, after a comma unless it is the first of its object. */
static void put_key(struct pp_buf *buf, bool first, const char *indent, const char *key)
{
	pp_buf_addf(buf, "%s\n%s\"%s\": ", first ? "" : ",", indent, key);
}

static void put_string(struct pp_buf *buf, const char *indent, const char *key, const char *text)
{
	put_key(buf, false, indent, key);
	put_text(buf, text);
}

static void put_number(struct pp_buf *buf, const char *indent, const char *key, long long number)
{
	put_key(buf, false, indent, key);
	pp_buf_addf(buf, "%lld", number);
}

static void put_bool(struct pp_buf *buf, const char *indent, const char *key, bool yes)
{
	put_key(buf, false, indent, key);
	pp_buf_addf(buf, "%s", yes ? "true" : "false");
}

/* A number with a point or an exponent, as a real is; JSON knows no infinity. */
static void put_real(struct pp_buf *buf, double value)
{
	char text[40];

	pp_text_format(text, sizeof(text), "%.10g", isfinite(value) ? value : -1.0);
	pp_buf_addf(buf, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void put_value(struct pp_buf *buf, const struct pp_matrix_field *field, const void *p)
{
	switch (field->kind) {
	case PP_MATRIX_TEXT:
		put_text(buf, p);
		break;
	case PP_MATRIX_U32:
		pp_buf_addf(buf, "%lld", (long long)*(const uint32_t *)p);
		break;
	case PP_MATRIX_U64:
		pp_buf_addf(buf, "%lld", (long long)*(const int64_t *)p);
		break;
	case PP_MATRIX_DOUBLE:
		put_real(buf, *(const double *)p);
		break;
	case PP_MATRIX_BOOL:
		pp_buf_addf(buf, "%s", *(const bool *)p ? "true" : "false");
		break;
	case PP_MATRIX_PROMISE:
		put_text(buf, pp_promise_name(*(const enum pp_promise *)p));
		break;
	case PP_MATRIX_STATUS:
		put_text(buf, pp_matrix_status_name(*(const enum pp_matrix_status *)p));
		break;
	}
}

static void put_row(struct pp_buf *buf, const struct pp_matrix_row *row)
{
	const char *warning = pp_matrix_row_warning(row);
	size_t i;

	pp_buf_addf(buf, "\n  {");
	for (i = 0; i < pp_matrix_field_count; i++) {
		put_key(buf, i == 0, "   ", pp_matrix_fields[i].key);
		put_value(buf, &pp_matrix_fields[i], (const char *)row + pp_matrix_fields[i].at);
	}
	put_key(buf, false, "   ", "warning");
	if (warning)
		put_text(buf, warning);
	else
		pp_buf_addf(buf, "null");
	pp_buf_addf(buf, "\n  }");
}

/* Null where no one drive is beneath. What a hypervisor calls rotational has no platter. */
static void put_drive(struct pp_buf *buf, const char *disk)
{
	static struct pp_drive_info drive; /* large */
	struct pp_link link;

	put_key(buf, false, " ", "drive");
	if (!*disk || pp_drive_read(NULL, disk, &drive, NULL) != 0) {
		pp_buf_addf(buf, "null");
		return;
	}
	pp_link_of_disk(NULL, disk, &link);
	pp_buf_addf(buf, "{");
	put_key(buf, true, "  ", "name");
	put_text(buf, disk);
	put_string(buf, "  ", "model", drive.model);
	put_string(buf, "  ", "serial", drive.serial);
	put_string(buf, "  ", "firmware", drive.firmware);
	put_string(buf, "  ", "transport", pp_transport_name(drive.transport));
	put_bool(buf, "  ", "rotational", drive.rotational && !pp_transport_remote(drive.transport));
	put_string(buf, "  ", "write_cache", drive.write_cache);
	put_bool(buf, "  ", "fua", drive.fua);
	put_string(buf, "  ", "cache", pp_matrix_cache_of(&drive));
	put_string(buf, "  ", "link", link.text);
	put_number(buf, "  ", "logical_block_bytes", drive.logical_block_bytes);
	put_number(buf, "  ", "physical_block_bytes", drive.physical_block_bytes);
	pp_buf_addf(buf, "\n }");
}

/* By its folder: the file itself is gone. */
static void put_fs(struct pp_buf *buf, const char *path)
{
	static struct pp_stack stack; /* large */
	char folder[4096], *slash, *other;

	pp_text_copy(folder, sizeof(folder), path);
	slash = strrchr(folder, '/');
	other = strrchr(folder, '\\');
	slash = other && (!slash || other > slash) ? other : slash;
	pp_text_copy(slash ? slash + 1 : folder, slash ? sizeof(folder) - (size_t)(slash + 1 - folder)
		: sizeof(folder), ".");
	put_key(buf, false, " ", "file_system");
	if (!pp_matrix_host_fs(folder, &stack)) {
		pp_buf_addf(buf, "null");
		return;
	}
	pp_buf_addf(buf, "{");
	put_key(buf, true, "  ", "type");
	put_text(buf, stack.fs_type);
	put_string(buf, "  ", "mount_options", stack.mount_options);
	pp_buf_addf(buf, "\n }");
}

char *pp_matrix_json(const struct pp_matrix_facts *facts, const struct pp_matrix *matrix)
{
	char kernel[128] = "";
	struct pp_buf buf;
	size_t i;

	pp_matrix_host_kernel(kernel, sizeof(kernel));
	pp_buf_init(&buf, JSON_BYTES_MAX);
	pp_buf_addf(&buf, "{");
	put_key(&buf, true, " ", "format");
	pp_buf_addf(&buf, "1");
	put_string(&buf, " ", "version", PP_VERSION);
	put_string(&buf, " ", "target", facts->path);
	put_number(&buf, " ", "seconds_per_test", facts->seconds);
	put_bool(&buf, " ", "settle", facts->settle);
	put_number(&buf, " ", "compressible_percent", facts->compressible);
	put_string(&buf, " ", "kernel", kernel);
	put_fs(&buf, facts->path);
	put_drive(&buf, matrix->disk);
	put_string(&buf, " ", "disk", matrix->disk);
	put_string(&buf, " ", "no_disk_reason", matrix->no_disk_reason);
	put_string(&buf, " ", "no_trace_reason", matrix->no_trace_reason);
	put_bool(&buf, " ", "direct_works", matrix->direct_works);
	put_number(&buf, " ", "logical_block_bytes", matrix->logical_block_bytes);
	put_key(&buf, false, " ", "rows");
	pp_buf_addf(&buf, "[");
	for (i = 0; i < matrix->row_count; i++) {
		pp_buf_addf(&buf, "%s", i ? "," : "");
		put_row(&buf, &matrix->rows[i]);
	}
	pp_buf_addf(&buf, "\n ]\n}");
	if (!buf.failed)
		return buf.data;
	pp_buf_release(&buf);
	return NULL;
}
