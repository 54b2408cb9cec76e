/* SPDX-License-Identifier: MIT
 *
 * The commands that ask a drive for its cache and change it. None of them flushes or touches media,
 * but for the drive's own emptying of a cache that is switched off.
 *
 * Rests on: sg_io_hdr (scsi/sg.h), SPC MODE SENSE, SAT ATA PASS-THROUGH(16), ATA ACS SET FEATURES,
 * NVMe Set Features.
 */
#include "policy_ops_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TIMEOUT_MS      20000 /* a cache that is switched off is emptied first */
#define SCSI_MODE_SENSE6  0x1a
#define SCSI_MODE_SENSE10 0x5a
#define MODE_PAGE_CACHING 0x08
#define MODE_DBD          0x08 /* no block descriptors, please */
#define MODE_WCE          0x04
#define ATA_PASS_THROUGH16 0x85
#define ATA_PROTOCOL_NONE  (3 << 1)
#define ATA_PROTOCOL_IN    (4 << 1)
#define ATA_IN_BLOCKS      0x0e /* from the device, in blocks, as many as the sector count */
#define ATA_CHECK          0x20 /* report the status registers */
#define ATA_IDENTIFY       0xec
#define ATA_SET_FEATURES   0xef
#define ATA_CACHE_ON       0x02
#define ATA_CACHE_OFF      0x82
#define ATA_STATUS_BAD     0x21 /* device fault, error */
#define NVME_SET_FEATURES  0x09
#define NVME_FEATURE_VWC   0x06

static int open_drive(const char *node, int flags)
{
	return open(node, flags | O_NONBLOCK | O_CLOEXEC);
}

/* Returns 0 or errno; sense may hold what the device said. */
static int send_scsi(const char *node, int flags, uint8_t *cdb, uint8_t cdb_bytes, void *in,
	unsigned in_bytes, uint8_t sense[32], uint8_t *status)
{
	struct sg_io_hdr io = {
		.interface_id = 'S', .cmdp = cdb, .cmd_len = cdb_bytes, .sbp = sense, .mx_sb_len = 32,
		.dxferp = in, .dxfer_len = in_bytes, .timeout = TIMEOUT_MS,
		.dxfer_direction = in_bytes ? SG_DXFER_FROM_DEV : SG_DXFER_NONE,
	};
	int fd = open_drive(node, flags), rc = 0;

	memset(sense, 0, 32);
	if (fd < 0)
		return errno;
	if (ioctl(fd, SG_IO, &io) != 0)
		rc = errno;
	close(fd);
	if (rc)
		return rc;
	*status = io.status;
	return io.host_status || (io.driver_status & 0x0f & ~0x08) ? EIO : 0;
}

static int find_page(const uint8_t *reply, size_t bytes, size_t header_bytes, size_t descriptors,
	bool *on)
{
	size_t at = header_bytes + descriptors;

	if (at + 3 > bytes || (reply[at] & 0x3f) != MODE_PAGE_CACHING || reply[at + 1] < 1)
		return EIO;
	*on = reply[at + 2] & MODE_WCE;
	return 0;
}

static int scsi_write_cache(const char *node, bool *on)
{
	uint8_t six[6] = {SCSI_MODE_SENSE6, MODE_DBD, MODE_PAGE_CACHING, 0, 64, 0};
	uint8_t ten[10] = {SCSI_MODE_SENSE10, MODE_DBD, MODE_PAGE_CACHING, 0, 0, 0, 0, 0, 64, 0};
	uint8_t reply[64] = {0}, sense[32], status = 0;
	int rc = send_scsi(node, O_RDONLY, six, sizeof(six), reply, sizeof(reply), sense, &status);

	if (rc == 0 && status == 0 && find_page(reply, sizeof(reply), 4, reply[3], on) == 0)
		return 0;
	if (rc && rc != EIO)
		return rc;
	memset(reply, 0, sizeof(reply));
	rc = send_scsi(node, O_RDONLY, ten, sizeof(ten), reply, sizeof(reply), sense, &status);
	if (rc || status)
		return rc ? rc : EIO;
	return find_page(reply, sizeof(reply), 8, (size_t)reply[6] << 8 | reply[7], on);
}

static int sat_identify(const char *node, uint8_t page[512])
{
	uint8_t cdb[16] = {ATA_PASS_THROUGH16, ATA_PROTOCOL_IN, ATA_IN_BLOCKS};
	uint8_t sense[32], status = 0;
	int rc;

	cdb[6] = 1;
	cdb[14] = ATA_IDENTIFY;
	memset(page, 0, 512);
	rc = send_scsi(node, O_RDONLY, cdb, sizeof(cdb), page, 512, sense, &status);
	return rc ? rc : status ? EIO : 0;
}

/* The status register in the ATA Status Return descriptor (SAT, 12.2.5); -1: there is none. */
static int ata_status(const uint8_t sense[32])
{
	if ((sense[0] & 0x7f) != 0x72 || sense[8] != 0x09 || sense[9] < 12)
		return -1;
	return sense[21];
}

static int ata_set_cache(const char *node, bool on)
{
	uint8_t cdb[16] = {ATA_PASS_THROUGH16, ATA_PROTOCOL_NONE, ATA_CHECK};
	uint8_t sense[32], status = 0;
	int rc, ata;

	cdb[4] = on ? ATA_CACHE_ON : ATA_CACHE_OFF;
	cdb[14] = ATA_SET_FEATURES;
	rc = send_scsi(node, O_RDWR, cdb, sizeof(cdb), NULL, 0, sense, &status);
	if (rc)
		return rc;
	/* With the check bit a good command comes back as CHECK CONDITION with the registers. */
	ata = ata_status(sense);
	if (ata >= 0)
		return ata & ATA_STATUS_BAD ? EIO : 0;
	return status ? EIO : 0;
}

static int nvme_set_cache(const char *node, bool on)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_SET_FEATURES, .cdw10 = NVME_FEATURE_VWC, .cdw11 = on,
		.timeout_ms = TIMEOUT_MS,
	};
	int fd = open_drive(node, O_RDONLY), rc;

	if (fd < 0)
		return errno;
	rc = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &cmd);
	if (rc < 0)
		rc = errno;
	else if (rc > 0)
		rc = EIO; /* the drive's own status: it refused */
	close(fd);
	return rc;
}

static int write_text(const struct pp_sysroot *sys, const char *path, const char *text)
{
	char full[4096];
	size_t bytes = strlen(text);
	ssize_t n;
	int fd, rc = 0;

	if (snprintf(full, sizeof(full), "%s%s", sys->root, path) >= (int)sizeof(full))
		return ENAMETOOLONG;
	fd = open(full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	n = write(fd, text, bytes);
	if (n < 0 || (size_t)n != bytes)
		rc = n < 0 ? errno : EIO;
	if (close(fd) != 0 && !rc)
		rc = errno;
	return rc;
}

const struct pp_policy_ops pp_policy_ops_live = {
	.scsi_write_cache = scsi_write_cache,
	.sat_identify = sat_identify,
	.ata_set_cache = ata_set_cache,
	.nvme_set_cache = nvme_set_cache,
	.lab_cache = pp_policy_lab_cache,
	.lab_set_cache = pp_policy_lab_set_cache,
	.write_text = write_text,
};
