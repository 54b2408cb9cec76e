/* SPDX-License-Identifier: MIT
 *
 * Commands past the block layer. A status that is not success is never success here: the drive's
 * own code is lost in EIO, but the write is not acked.
 */
#include "method_io.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <string.h>
#include <sys/ioctl.h>

#define NVME_OPCODE_FLUSH 0x00
#define NVME_OPCODE_WRITE 0x01
#define NVME_FUA          (1U << 30) /* of command dword 12 */
#define SCSI_SYNCHRONIZE_CACHE_10 0x35
#define SCSI_TIMEOUT_MS   60000      /* a cache of many MB may take a while */
#define SENSE_BYTES       32
#define SENSE_ILLEGAL_REQUEST 5

static int init_nvme(struct pp_method_io *io, struct pp_error *err)
{
	int id = ioctl(io->fd, NVME_IOCTL_ID), block = 0;

	if (id < 0 && (errno == ENOTTY || errno == EINVAL || errno == ENOTBLK))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the device takes no NVMe commands");
	if (id < 0)
		return pp_fail_os(err, errno, "cannot find the NVMe namespace");
	if (ioctl(io->fd, BLKSSZGET, &block) != 0 || block < 512)
		return pp_fail_os(err, errno, "cannot find the block size");
	io->nvme_namespace = (uint32_t)id;
	io->block_bytes = (uint32_t)block;
	return 0;
}

/* The sense key, in either format (SPC-4, 4.5); 0 where there is none. */
static int sense_key(const uint8_t *sense, unsigned bytes)
{
	if (bytes < 3)
		return 0;
	return (sense[0] & 0x7f) >= 0x72 ? sense[1] & 0x0f : sense[2] & 0x0f;
}

/* 0, or an errno: ENOTTY where this is no SCSI device, EOPNOTSUPP where it knows no such command. */
static int scsi_cache_once(int fd)
{
	uint8_t command[10] = { SCSI_SYNCHRONIZE_CACHE_10 }, sense[SENSE_BYTES] = { 0 };
	struct sg_io_hdr header = { .interface_id = 'S', .dxfer_direction = SG_DXFER_NONE,
		.cmd_len = sizeof(command), .cmdp = command, .mx_sb_len = sizeof(sense), .sbp = sense,
		.timeout = SCSI_TIMEOUT_MS };

	if (ioctl(fd, SG_IO, &header) != 0)
		return errno;
	if (header.host_status == 0 && header.status == 0 && (header.driver_status & 0x0f) == 0)
		return 0;
	return sense_key(sense, header.sb_len_wr) == SENSE_ILLEGAL_REQUEST ? EOPNOTSUPP : EIO;
}

/* A flush writes nothing, so it may be tried. */
static int init_scsi(struct pp_method_io *io, struct pp_error *err)
{
	int code = scsi_cache_once(io->fd);

	if (code == EOPNOTSUPP)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the device refuses SYNCHRONIZE CACHE");
	if (code == ENOTTY || code == EINVAL || code == ENOTBLK)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the device takes no SCSI commands");
	return code == 0 ? 0 : pp_fail_os(err, code, "cannot send SYNCHRONIZE CACHE");
}

int pp_method_pass_init(struct pp_method_io *io, struct pp_error *err)
{
	return io->method->sync == PP_SYNC_SCSI_CACHE ? init_scsi(io, err) : init_nvme(io, err);
}

/* 0, or -1: refused by the system, or a status of the drive that is not success. */
static int nvme_send(const struct pp_method_io *io, struct nvme_passthru_cmd *command,
	int64_t *os_code)
{
	int rc = ioctl(io->fd, NVME_IOCTL_IO_CMD, command);

	if (rc == 0)
		return 0;
	*os_code = rc < 0 ? errno : EIO;
	return -1;
}

int64_t pp_method_nvme_write(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	uint64_t block = offset / io->block_bytes;
	struct nvme_passthru_cmd command = { .opcode = NVME_OPCODE_WRITE,
		.nsid = io->nvme_namespace, .addr = (uint64_t)(uintptr_t)buf, .data_len = bytes,
		.cdw10 = (uint32_t)block, .cdw11 = (uint32_t)(block >> 32),
		.cdw12 = NVME_FUA | (bytes / io->block_bytes - 1) };

	if (bytes == 0 || bytes % io->block_bytes != 0 || offset % io->block_bytes != 0) {
		*os_code = EINVAL;
		return -1;
	}
	return nvme_send(io, &command, os_code) == 0 ? (int64_t)bytes : -1;
}

int pp_method_nvme_flush(struct pp_method_io *io, int64_t *os_code)
{
	struct nvme_passthru_cmd command = { .opcode = NVME_OPCODE_FLUSH,
		.nsid = io->nvme_namespace };

	return nvme_send(io, &command, os_code);
}

int pp_method_scsi_cache(struct pp_method_io *io, int64_t *os_code)
{
	int code = scsi_cache_once(io->fd);

	*os_code = code;
	return code == 0 ? 0 : -1;
}
