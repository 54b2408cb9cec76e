/* SPDX-License-Identifier: MIT
 *
 * The links above a disk, as sysfs shows them; their words are those of pp_link_parse.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "drive_sysfs.h"
#include "link.h"
#include "text.h"

static void consider(const char *text, struct pp_link *link)
{
	struct pp_link candidate;

	if (pp_link_parse(text, &candidate) &&
		(link->bytes_per_s <= 0 || candidate.bytes_per_s < link->bytes_per_s))
		*link = candidate;
}

/* One folder on the way up: a PCI device or bridge, a USB device, the ATA link beneath an ataN. */
static void look_at(const struct pp_sysroot *sys, const char *dir, struct pp_link *link)
{
	const char *name = strrchr(dir, '/') + 1;
	char speed[64], number[16], text[128];
	uint64_t lanes;

	if (pp_sys_text(sys, speed, sizeof(speed), "%s/current_link_speed", dir) &&
		pp_sys_u64(sys, &lanes, "%s/current_link_width", dir) &&
		pp_text_format(text, sizeof(text), "%g GT/s x%" PRIu64, strtod(speed, NULL), lanes))
		consider(text, link);
	if (pp_sys_exists(sys, "%s/idVendor", dir) &&
		pp_sys_text(sys, speed, sizeof(speed), "%s/speed", dir) &&
		pp_text_format(text, sizeof(text), "USB %g Mbps", strtod(speed, NULL)))
		consider(text, link);
	if (strncmp(name, "ata", 3) != 0 || strlen(name + 3) >= sizeof(number))
		return;
	pp_text_copy(number, sizeof(number), name + 3);
	if (pp_sys_text(sys, speed, sizeof(speed), "/sys/class/ata_link/link%s/sata_spd", number) &&
		pp_text_format(text, sizeof(text), "SATA %.1f Gbps", strtod(speed, NULL)))
		consider(text, link);
}

bool pp_link_of_disk(const struct pp_sysroot *sys, const char *disk, struct pp_link *link)
{
	char dir[PATH_MAX], *slash;

	memset(link, 0, sizeof(*link));
	if (!pp_sys_block_dir(sys, disk, dir))
		return false;
	while ((slash = strrchr(dir, '/')) && slash > dir && strcmp(dir, "/sys/devices") != 0) {
		look_at(sys, dir, link);
		*slash = '\0';
	}
	return link->bytes_per_s > 0;
}
