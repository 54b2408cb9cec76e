/* SPDX-License-Identifier: MIT
 *
 * What only the drive itself knows. None of these commands touches media or cache: IDENTIFY from
 * the kernel's own copy (libata reads it again after a SET FEATURES), NVMe Identify and Get
 * Features.
 */
#include "drive.h"

#include <fcntl.h>
#include <linux/hdreg.h>
#include <linux/loop.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NVME_ADMIN_IDENTIFY     0x06
#define NVME_ADMIN_GET_FEATURES 0x0a
#define NVME_CNS_NAMESPACE      0
#define NVME_CNS_CONTROLLER     1
#define NVME_FEATURE_VWC        0x06

/* O_NONBLOCK: identity must not wait for a medium, nor start one. */
static int open_quietly(const char *node)
{
	return open(node, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static int ata_identify(const char *node, uint8_t page[512])
{
	int fd = open_quietly(node);
	int rc;

	if (fd < 0)
		return -1;
	rc = ioctl(fd, HDIO_GET_IDENTITY, page);
	close(fd);
	return rc == 0 ? 0 : -1;
}

static int nvme_admin(const char *node, struct nvme_admin_cmd *cmd)
{
	int fd = open_quietly(node);
	int rc;

	if (fd < 0)
		return -1;
	cmd->timeout_ms = 10000;
	rc = ioctl(fd, NVME_IOCTL_ADMIN_CMD, cmd);
	close(fd);
	return rc == 0 ? 0 : -1; /* a positive value is the drive's own status: no answer either */
}

static int nvme_identify(const char *node, uint8_t page[4096])
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)page,
		.data_len = 4096,
		.cdw10 = NVME_CNS_CONTROLLER,
	};

	return nvme_admin(node, &cmd);
}

static int nvme_identify_ns(const char *node, uint8_t page[4096])
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)page,
		.data_len = 4096,
		.cdw10 = NVME_CNS_NAMESPACE,
	};
	int fd = open_quietly(node), id;

	if (fd < 0)
		return -1;
	id = ioctl(fd, NVME_IOCTL_ID);
	close(fd);
	if (id <= 0)
		return -1;
	cmd.nsid = (uint32_t)id;
	return nvme_admin(node, &cmd);
}

static int nvme_write_cache(const char *node, bool *on)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_GET_FEATURES,
		.cdw10 = NVME_FEATURE_VWC,
	};

	if (nvme_admin(node, &cmd) != 0)
		return -1;
	*on = cmd.result & 1;
	return 0;
}

static int loop_reference(const char *node, char reference[64])
{
	struct loop_info64 info = {0};
	int fd = open_quietly(node);
	int rc;

	if (fd < 0)
		return -1;
	rc = ioctl(fd, LOOP_GET_STATUS64, &info);
	close(fd);
	snprintf(reference, LO_NAME_SIZE, "%s", (const char *)info.lo_file_name);
	return rc == 0 ? 0 : -1;
}

static const struct pp_drive_ops ops = {
	.ata_identify = ata_identify,
	.nvme_identify = nvme_identify,
	.nvme_identify_ns = nvme_identify_ns,
	.nvme_write_cache = nvme_write_cache,
	.loop_reference = loop_reference,
};

const struct pp_sysroot pp_sysroot_live = {.root = "", .ops = &ops};
